"""Files in: against Structured Streaming and against one plain job, as ratios inside one run; and what a no-op costs.

python benchmarks/files.py [--files 1000] [--rows 2000] [--ledger 10000 100000 1000000] [--only ingest|noop]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from penstock import files
from penstock.lake import connect
from penstock.names import Name

BATCH = 50


def ingestion(folder: Path, number: int, rows: int) -> list[tuple[str, str]]:
    landing = folder / "landing"
    landing.mkdir()
    for index in range(number):
        ids = pa.array(range(index * rows, (index + 1) * rows), pa.int64())
        table = pa.table({"id": ids, "amount": ids.cast(pa.float64()), "text": ids.cast(pa.string())})
        pq.write_table(table, landing / f"part-{index:05}.parquet")
    lake = connect(str(folder / "lake"))
    source = files.FileSource.from_mapping(
        {"source_roots": [str(landing)], "safety_buffer_seconds": 0, "max_files_per_trigger": BATCH}
    )

    def penstock(name: str, source: files.FileSource) -> None:
        files.ingest(lake, Name.parse(name), source, "select id, amount, text from @data where amount >= 0")

    def streaming(name: str) -> None:
        schema = lake.spark.read.parquet(str(landing)).schema
        frame = lake.spark.readStream.schema(schema).option("maxFilesPerTrigger", BATCH).parquet(str(landing))
        writer = frame.where("amount >= 0").writeStream.format("delta").trigger(availableNow=True)
        writer.option("checkpointLocation", str(folder / f"checkpoint-{name}")).start(
            str(folder / name)
        ).awaitTermination()

    def plain(name: str) -> None:
        frame = lake.spark.read.parquet(str(landing)).where("amount >= 0")
        frame.write.format("delta").save(str(folder / name))

    # All three once on a few files, so that none pays for the JVM's first time.
    few = folder / "few"
    few.mkdir()
    for path in sorted(landing.iterdir())[: 3 * BATCH]:
        os.link(path, few / path.name)
    whole, landing = landing, few
    penstock("warm.up", files.FileSource(source_roots=(str(few),), safety_buffer_seconds=0))
    streaming("warm-streaming")
    plain("warm-plain")
    landing = whole

    times = {}
    for name, work in (
        ("penstock", lambda: penstock("bronze.events", source)),
        ("streaming", lambda: streaming("streaming")),
        ("plain", lambda: plain("plain")),
    ):
        began = time.perf_counter()
        work()
        times[name] = time.perf_counter() - began
    wanted = number * rows
    assert lake.sql("select count(*) from bronze.events").first()[0] == wanted
    assert lake.spark.read.format("delta").load(str(folder / "streaming")).count() == wanted
    ours = times["penstock"]
    return [
        (f"penstock, {number} files of {rows} rows, {BATCH} a batch", f"{ours:.1f} s"),
        ("Structured Streaming availableNow", f"{times['streaming']:.1f} s: {ours / times['streaming']:.2f}×"),
        ("one plain job", f"{times['plain']:.1f} s: {ours / times['plain']:.2f}×"),
    ]


def no_op(number: int) -> dict[str, float]:
    """In a process of its own, whose peak memory is then that of the no-op."""
    done = subprocess.run(
        [sys.executable, __file__, "--measure", str(number)], capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def measure(number: int) -> None:
    """A landing folder of empty files that a ledger knows all of; the listing alone, then a run."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        subprocess.run([sys.executable, __file__, "--prepare", str(number), "--folder", str(folder)], check=True)
        from penstock.files.listing import list_root

        landing = str(folder / "landing")
        list_root(landing)
        began = time.perf_counter()
        list_root(landing)
        listing = time.perf_counter() - began
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        lake = connect(str(folder / "lake"))
        source = files.FileSource.from_mapping({"source_roots": [landing], "safety_buffer_seconds": 0})
        began = time.perf_counter()
        report = files.ingest(lake, Name.parse("bronze.events"), source, "select * from @data")
        whole = time.perf_counter() - began
        assert report.nothing_new
        assert "pyspark" not in sys.modules
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"listing": listing, "run": whole, "peak": peak / 1024, "base": base / 1024}))
    finally:
        shutil.rmtree(folder)


def prepare(number: int, folder: Path) -> None:
    """Files, and the ledger that a run over them would have left: compactions in tiers, a plan for the last batch."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    from penstock.files.ledger import Compaction, Span
    from penstock.files.listing import list_root
    from penstock.files.plan import INGESTED, FilePlan, lines
    from penstock.journal import GENERATION
    from penstock.table import MARK

    landing = folder / "landing"
    for index in range(number):
        if index % 1000 == 0:
            below = landing / f"day={index // 1000:05}"
            below.mkdir(parents=True)
        with open(below / f"events-{index:08}.json", "w") as file:
            file.write("x")
    listed = list_root(str(landing)).sort_by([("modificationTime", "ascending"), ("path", "ascending")])
    batches = -(-number // BATCH)
    table = folder / "lake" / "bronze" / "events"
    rows = pa.table({"id": pa.array([1], pa.int64())})
    DeltaTable.create(str(table), schema=rows.schema, configuration={GENERATION: "0"}, raise_if_key_not_exists=False)
    mark = CommitProperties(
        app_transactions=[Transaction(MARK, batches - 1)], custom_metadata={"userMetadata": "penstock 0"}
    )
    write_deltalake(str(table), rows, mode="append", commit_properties=mark)
    assert DeltaTable(str(table)).transaction_version(MARK) == batches - 1
    sources = table / "_checkpoint" / "sources"
    sources.mkdir(parents=True)
    schema = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    first = 0
    size = 10
    while size * 10 <= batches:
        size *= 10
    while size >= 10:
        while first + size <= batches:
            part = lines(listed.slice(first * BATCH, size * BATCH), INGESTED)
            records = FilePlan(first, 0, part).records()
            done = Compaction(Span(first, first + size - 1), records, schema, (), "json")
            (sources / f"{first + size - 1}.parquet").write_bytes(done.to_bytes(0))
            first += size
        size //= 10
    for index in range(first, batches):
        plan = FilePlan(index, 0, lines(listed.slice(index * BATCH, BATCH), INGESTED), schema=schema)
        (sources / str(index)).write_bytes(plan.to_bytes())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--ledger", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--only", choices=["ingest", "noop"])
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--prepare", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure is not None:
        return measure(given.measure)
    if given.prepare is not None:
        return prepare(given.prepare, given.folder)
    lines: list[tuple[str, str]] = []
    if given.only != "ingest":
        for number in given.ledger:
            found = no_op(number)
            ratio = found["run"] / found["listing"]
            lines.append(
                (
                    f"no-op over a ledger of {number:,} files",
                    f"{found['run']:.2f} s: {ratio:.2f}× the listing ({found['listing']:.2f} s), "
                    f"peak {found['peak']:.0f} MB",
                )
            )
    if given.only != "noop":
        folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
        try:
            lines += ingestion(folder, given.files, given.rows)
        finally:
            shutil.rmtree(folder)
    width = max(len(name) for name, _ in lines)
    for name, value in lines:
        print(f"{name:<{width}}  {value}")


if __name__ == "__main__":
    main()
