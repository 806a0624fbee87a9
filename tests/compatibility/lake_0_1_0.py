"""The lake that 0.1.0 wrote (`tests/data/0.1.0`), unpacked for a test, and its models run by the current code."""

from __future__ import annotations

import json
import os
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, QueryBuilder

from penstock.api import Lake, connect
from penstock.changes import MergeReport
from penstock.delta.layout import Layout
from penstock.files import FileQuery, FileSource, IngestReport, Listings
from penstock.sql.names import Name
from penstock.windows import DatedPath, FileSelect, Request, Target, Window, WindowRun, WindowSettings

DATA = Path(__file__).parents[1] / "data" / "0.1.0"
WRITTEN_AT = "/tmp/penstock-0.1.0"
"""Where the lake lay when it was written; 0.1.0 records absolute paths."""
LATER = 1_780_000_000
"""Modification time of the first file that a test lands: after all files of the lake, and whole seconds as they are."""

Row = dict[str, Any]


@dataclass
class OldLake:
    """The lake and its landing files below one folder."""

    place: Path
    session: Mapping[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    """Warnings of the last run of windows."""
    _landed: int = 0

    def __post_init__(self) -> None:
        text = (DATA / "models.json").read_text().replace("{place}", str(self.place))
        self.models: dict[str, dict[str, Any]] = json.loads(text)

    @property
    def lake(self) -> Lake:
        """A new handle, as the next process has it."""
        return connect(str(self.place / "lake"), session=self.session)

    # Runs of the models

    def ingest(self, name: str, *, full_refresh: bool = False, **source: Any) -> IngestReport:
        model = self.models["files"][name]
        keys = {**model["source"], **source}
        return self.lake.ingest(name, select=model["select"], full_refresh=full_refresh, **keys)

    def merge_changes(self, name: str) -> MergeReport:
        model = self.models["changes"][name]
        return self.lake.merge_changes(name, key=model["unique_key"], select=model["select"])

    def run_windows(
        self, name: str, first: str, end: str, *, named: bool = False, full_refresh: bool = False
    ) -> list[str]:
        """Run the days from `first` up to `end`, as dbt does; returns a message for each."""
        lake, model = self.lake, self.models["windows"][name]
        settings = WindowSettings.from_config(model["config"])
        path = DatedPath(settings.source_path or "")
        target = Target(lake, Name.parse(name), settings, Layout(), lake.runner)
        source = FileSource.from_mapping({"source_roots": [path.root], "safety_buffer_seconds": 0})
        query = FileQuery.read(model["select"], name)
        select = FileSelect(lake, lake.runner, query, source, path, settings, Listings())
        windows = tuple(Window.of(first, end).steps("day"))
        self.warnings = []
        request = Request(windows, named=named, full_refresh=full_refresh)
        run = WindowRun(target, request, warn=self.warnings.append)
        return [run.run(window, target, select).message for window in windows]

    def run_all(self, first: str, end: str) -> None:
        """Run every model once, windows for the days from `first` up to `end`."""
        for name in self.models["files"]:
            self.ingest(name)
        for name in self.models["changes"]:
            self.merge_changes(name)
        for name in self.models["windows"]:
            self.run_windows(name, first, end)

    # Landing files

    def land(self, path: str, *rows: Row) -> None:
        """Write a JSON file, younger than all before it."""
        file = self.place / "landing" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        at = LATER + 60 * self._landed
        os.utime(file, (at, at))
        self._landed += 1

    def land_day(self, day: int) -> None:
        self.land(
            f"readings/2026/04/{day:02}/0.json", {"id": 10 * day, "at": f"2026-04-{day:02}T07:00:00Z", "value": day / 2}
        )

    def landed(self, folder: str, files: str = "*.json") -> list[Row]:
        """The rows of all landing files that are JSON, with times as times."""
        found: list[Row] = []
        for file in sorted((self.place / "landing" / folder).rglob(files)):
            try:
                found += [json.loads(line) for line in file.read_text().splitlines()]
            except ValueError:
                continue
        return [
            {**row, "at": datetime.fromisoformat(row["at"].replace("Z", "+00:00"))} if "at" in row else row
            for row in found
        ]

    # The tables

    def table(self, name: str) -> Path:
        return self.place.joinpath("lake", *name.split("."))

    def rows(self, name: str, version: int | None = None) -> list[Row]:
        """A table's rows, without a JVM."""
        table = DeltaTable(str(self.table(name)), version)
        return pa.table(QueryBuilder().register("t", table).execute("select * from t").read_all()).to_pylist()

    def marks(self, name: str) -> dict[int, int]:
        """The version that each mark was committed by, for the commits that are still in the log."""
        found = {}
        for commit in sorted((self.table(name) / "_delta_log").glob("*.json")):
            for line in commit.read_text().splitlines():
                action = json.loads(line)
                if "txn" in action:
                    found[action["txn"]["version"]] = int(commit.stem)
        return found

    def plan(self, name: str, number: int | None = None) -> Row:
        """The header of a plan; of the newest one without a number."""
        folder = self.table(name) / "_checkpoint" / "sources"
        number = max(int(file.name) for file in folder.iterdir() if file.name.isdigit()) if number is None else number
        text = (folder / str(number)).read_text()
        return json.JSONDecoder().raw_decode(text)[0]


def unpack(folder: Path, session: Mapping[str, Any] | None = None) -> OldLake:
    """Unpack the lake of 0.1.0 into a folder, as if 0.1.0 had written it there today."""
    place = Path(os.path.realpath(folder))
    with tarfile.open(DATA / "lake.tar.gz") as tar:
        tar.extractall(place, filter="data")
    for file in _ledger_files(place):
        times = file.stat()
        if file.suffix == ".parquet":
            _move_compaction(file, str(place))
        else:
            text = file.read_text()
            if WRITTEN_AT not in text:
                continue
            file.write_text(text.replace(WRITTEN_AT, json.dumps(str(place), ensure_ascii=False)[1:-1]))
        os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    _make_recent(place / "lake")
    return OldLake(place, session)


def _ledger_files(place: Path) -> Iterator[Path]:
    """The files that may hold absolute paths: the records of ledgers, and commits, whose notes may quote a path."""
    for pattern in ("_checkpoint/sources/*", "_checkpoint/*.json", "_delta_log/*.json"):
        yield from place.glob(f"lake/*/*/{pattern}")


def _move_compaction(file: Path, place: str) -> None:
    table = pq.ParquetFile(file).read()
    metadata = table.schema.metadata
    for name in ("path", "reason"):
        moved = pc.replace_substring(table[name], WRITTEN_AT, place)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), moved)
    pq.write_table(table.replace_schema_metadata(metadata), file, compression="zstd")


def _make_recent(lake: Path) -> None:
    """Shift all times of the lake so that its newest file is of now: Delta deletes commits of more than 30 days ago."""
    files = [file for file in lake.rglob("*") if file.is_file()]
    shift = time.time_ns() - max(file.stat().st_mtime_ns for file in files)
    for file in files:
        at = file.stat().st_mtime_ns + shift
        os.utime(file, ns=(at, at))
