"""The same work on S3 and on the local disk, one after the other in one Spark. The server is on this machine.

So this measures requests and commits, not a network. It is versitygw where PENSTOCK_S3_SERVER names it, as in
`make bench`, else the server of the tests.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median

from benchmarks.changes import timed
from benchmarks.report import Measurement, show
from penstock.api import Lake, connect
from tests.places.s3 import S3

_FILES, _PER_FILE, _BATCH, _ROUNDS = 100, 1000, 10, 5
_ROWS = 200_000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        base = Path(folder).resolve()
        _land(base / "landing")
        with S3.open(base) as store:
            disk = connect(str(base / "disk"), storage_options=store.storage_options)
            s3 = connect(store.location(base / "s3"), storage_options=store.storage_options)
            landings = {disk: str(base / "landing"), s3: store.location(base / "landing")}
            for lake in landings:
                lake.sql("create table warm.up as select 1 as id")
                lake.sql("insert into warm.up values (2)")
            measurements = [
                _compared(work, run, s3, disk, note)
                for work, run, note in (
                    ("append a row", _append, f"median of {_ROUNDS}"),
                    (f"a table of {_ROWS:,} rows", _table, f"median of {_ROUNDS}"),
                    ("merge of changes, 1 %", _merge, f"median of {_ROUNDS}"),
                )
            ]
            ingest = {lake: timed(lambda lake=lake: _ingest(lake, landings[lake])) for lake in landings}  # type: ignore[misc]
            again = {lake: timed(lambda lake=lake: _ingest(lake, landings[lake])) for lake in landings}  # type: ignore[misc]
            measurements += [
                Measurement(
                    f"{_FILES} files of {_PER_FILE:,} rows, {_BATCH} a batch", ingest[s3], "disk", ingest[disk]
                ),
                Measurement("the same, nothing new", again[s3], "disk", again[disk]),
            ]
    show("stores", "S3 against the local disk", measurements)


def _compared(work: str, run: Callable[[Lake, int], None], s3: Lake, disk: Lake, note: str) -> Measurement:
    took: dict[Lake, list[float]] = {s3: [], disk: []}
    for turn in range(_ROUNDS):
        for lake, seconds in took.items():
            seconds.append(timed(lambda lake=lake, turn=turn: run(lake, turn)))  # type: ignore[misc]
    return Measurement(work, median(took[s3]), "disk", median(took[disk]), note=note)


def _append(lake: Lake, turn: int) -> None:
    lake.sql(f"insert into warm.up values ({turn})")


def _table(lake: Lake, turn: int) -> None:
    lake.sql(
        "create or replace table made.orders tblproperties ('delta.enableChangeDataFeed' = 'true') "
        f"as select id, id % 97 as n from range({_ROWS})"
    )


def _merge(lake: Lake, turn: int) -> None:
    lake.sql(f"update made.orders set n = n + 1 where id % 100 = {turn}")
    lake.merge_changes("made.kept", key="id", select="select id, n * 2 as n from made.orders")


def _land(folder: Path) -> None:
    folder.mkdir()
    for number in range(_FILES):
        rows = ({"id": number * _PER_FILE + row, "name": f"n{row}"} for row in range(_PER_FILE))
        (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _ingest(lake: Lake, root: str) -> None:
    lake.ingest("made.events", roots=[root], max_files_per_trigger=_BATCH, safety_buffer_seconds=0)


if __name__ == "__main__":
    main()
