"""Files in: against Structured Streaming and against one plain job, as ratios inside one run; and what a no-op costs."""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.report import Measurement, show
from penstock import files
from penstock.api import connect
from penstock.sql.names import Name

BATCH = 50
_FILES, _ROWS = 1000, 2000
_ROUNDS = 3
_LEDGERS = (10_000, 100_000, 1_000_000)


def ingestion(folder: Path, number: int, rows: int) -> list[Measurement]:
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

    def penstock(name: str) -> None:
        files.ingest(
            lake,
            Name("bronze", name),
            source,
            "select id, amount, text from @data where amount >= 0",
            runner=lake.runner,
        )

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

    peers: dict[str, Callable[[str], None]] = {"penstock": penstock, "streaming": streaming, "plain": plain}
    times: dict[str, list[float]] = {name: [] for name in peers}
    for turn in range(_ROUNDS + 1):
        # Each goes first once: the JVM gets faster all the time, and who comes last would gain by it.
        names = deque(peers)
        names.rotate(turn)
        for name in names:
            began = time.perf_counter()
            peers[name](f"{name}{turn}")
            if turn > 0:  # the round before is for the JVM's first time
                times[name].append(time.perf_counter() - began)
    wanted = number * rows
    assert lake.sql(f"select count(*) from bronze.penstock{_ROUNDS}").first()[0] == wanted
    assert lake.spark.read.format("delta").load(str(folder / f"streaming{_ROUNDS}")).count() == wanted
    medians = {name: median(taken) for name, taken in times.items()}
    work, note = f"ingest {number:,} files of {rows:,} rows, {BATCH} a batch", f"medians of {_ROUNDS} rounds"
    ours = medians["penstock"]
    return [
        Measurement(work, ours, "Structured Streaming availableNow", medians["streaming"], 0.5, note),
        Measurement(work, ours, "one plain job over all files", medians["plain"], 4, note),
    ]


def no_op(number: int) -> Measurement:
    """In a process of its own, whose peak memory is then that of the no-op."""
    command = [sys.executable, "-m", "benchmarks.files", "--measure", str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    target = 1.5 if number == max(_LEDGERS) else None
    peak = f"peak {found['peak']:.0f} MB"
    return Measurement(
        f"plan a no-op over {number:,} ledger files", found["run"], "listing them", found["listing"], target, peak
    )


def measure(number: int) -> None:
    """A landing folder of empty files that a ledger knows all of; the listing alone, then a run."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        prepare = [sys.executable, "-m", "benchmarks.files", "--prepare", str(number), "--folder", str(folder)]
        subprocess.run(prepare, check=True)
        from penstock.files.source import list_root

        landing = str(folder / "landing")
        list_root(landing)
        began = time.perf_counter()
        list_root(landing)
        listing = time.perf_counter() - began
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        lake = connect(str(folder / "lake"))
        source = files.FileSource.from_mapping({"source_roots": [landing], "safety_buffer_seconds": 0})
        began = time.perf_counter()
        report = files.ingest(lake, Name.parse("bronze.events"), source, "select * from @data", runner=lake.runner)
        whole = time.perf_counter() - began
        assert report.nothing_new
        assert "pyspark" not in sys.modules
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"listing": listing, "run": whole, "peak": peak / 1024, "base": base / 1024}))
    finally:
        shutil.rmtree(folder)


def no_op_on_s3(number: int) -> Measurement:
    """The same with landing folder and lake on an S3 on loopback."""
    command = [sys.executable, "-m", "benchmarks.files", "--measure-s3", str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    target = 1.5 if number == max(_LEDGERS) else None
    peak = f"peak {found['peak']:.0f} MB"
    work = f"plan a no-op over {number:,} ledger keys on S3"
    return Measurement(work, found["run"], "listing them by obstore", found["listing"], target, peak)


def measure_s3(number: int) -> None:
    """Keys that a ledger on the same store knows all of; obstore's listing alone, then a run."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    command = [sys.executable, "-m", "benchmarks.listing_server", str(number), str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        prepare = [sys.executable, "-m", "benchmarks.files", "--prepare-s3", str(number), "--folder", str(folder)]
        subprocess.run(prepare, check=True)
        import obstore
        from obstore.store import S3Store

        assert server.stdout is not None
        endpoint = f"http://127.0.0.1:{int(server.stdout.readline())}"
        keys = {"endpoint": endpoint, "access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
        store = S3Store("bucket", config=keys, client_options={"allow_http": True})
        began = time.perf_counter()
        listed = sum(chunk.num_rows for chunk in obstore.list(store, "in", chunk_size=20_000, return_arrow=True))
        listing = time.perf_counter() - began
        assert listed == number
        base = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        lake = connect("s3://bucket/lake", storage_options={**keys, "allow_http": True})
        source = files.FileSource.from_mapping({"source_roots": ["s3://bucket/in"], "safety_buffer_seconds": 0})
        began = time.perf_counter()
        report = files.ingest(lake, Name.parse("bronze.events"), source, "select * from @data", runner=lake.runner)
        whole = time.perf_counter() - began
        assert report.nothing_new
        assert "pyspark" not in sys.modules
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(json.dumps({"listing": listing, "run": whole, "peak": peak / 1024, "base": base / 1024}))
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder)


def prepare_s3(number: int, folder: Path) -> None:
    """The ledger of made-up keys."""
    from benchmarks.listing_server import MODIFIED, path_of
    from penstock.files.source import FILES

    paths = pa.array([f"s3://bucket/in/{path_of(index)}" for index in range(number)], pa.string())
    listed = pa.table([paths, pa.repeat(MODIFIED * 1000, number), pa.repeat(1, number)], schema=FILES)
    write_ledger(listed, folder / "lake" / "bronze" / "events")


def prepare(number: int, folder: Path) -> None:
    """Files, and the ledger of a run over them."""
    from penstock.files.source import list_root

    landing = folder / "landing"
    for index in range(number):
        if index % 1000 == 0:
            below = landing / f"day={index // 1000:05}"
            below.mkdir(parents=True)
        with open(below / f"events-{index:08}.json", "w") as file:
            file.write("x")
    listed = list_root(str(landing)).sort_by([("modificationTime", "ascending"), ("path", "ascending")])
    write_ledger(listed, folder / "lake" / "bronze" / "events")


def write_ledger(listed: pa.Table, table: Path) -> None:
    """The ledger that a run over these files would have left: compactions in tiers, a plan for the last batch."""
    from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

    from penstock.delta.table import MARK
    from penstock.files.compaction import Compaction, NumberRange
    from penstock.files.plan import FilePlan
    from penstock.files.records import INGESTED, lines
    from penstock.protocol.state import GENERATION
    from penstock.spark.reading.file_schema import FileSchema

    batches = -(-listed.num_rows // BATCH)
    rows = pa.table({"id": pa.array([1], pa.int64())})
    DeltaTable.create(str(table), schema=rows.schema, configuration={GENERATION: "0"}, raise_if_key_not_exists=False)
    mark = CommitProperties(
        app_transactions=[Transaction(MARK, batches - 1)], custom_metadata={"userMetadata": "penstock 0"}
    )
    write_deltalake(str(table), rows, mode="append", commit_properties=mark)
    assert DeltaTable(str(table)).transaction_version(MARK) == batches - 1
    sources = table / "_checkpoint" / "sources"
    sources.mkdir(parents=True)
    schema = FileSchema(
        {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}
    )
    first = 0
    size = 10
    while size * 10 <= batches:
        size *= 10
    while size >= 10:
        while first + size <= batches:
            part = lines(listed.slice(first * BATCH, size * BATCH), INGESTED)
            records = FilePlan(first, 0, part).records()
            done = Compaction(NumberRange(first, first + size - 1), records, schema, "json")
            (sources / f"{first + size - 1}.parquet").write_bytes(done.to_bytes(0))
            first += size
        size //= 10
    for index in range(first, batches):
        plan = FilePlan(index, 0, lines(listed.slice(index * BATCH, BATCH), INGESTED), schema=schema)
        (sources / str(index)).write_bytes(plan.to_bytes())


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        show("files", "Files in", ingestion(Path(folder), _FILES, _ROWS))


def ledger() -> None:
    measured = [measure(number) for measure in (no_op, no_op_on_s3) for number in _LEDGERS]
    show("ledger", "A run that finds no new file", measured)


def child() -> None:
    """The steps that `no_op` runs in processes of their own."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--measure", type=int)
    parser.add_argument("--prepare", type=int)
    parser.add_argument("--measure-s3", type=int)
    parser.add_argument("--prepare-s3", type=int)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    if given.measure is not None:
        measure(given.measure)
    elif given.measure_s3 is not None:
        measure_s3(given.measure_s3)
    elif given.prepare_s3 is not None:
        prepare_s3(given.prepare_s3, given.folder)
    else:
        prepare(given.prepare, given.folder)


if __name__ == "__main__":
    child()
