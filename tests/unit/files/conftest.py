from __future__ import annotations

import collections
import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from penstock.delta.layout import Layout
from penstock.delta.table import MARK, Table
from penstock.files import FileSource, IngestReport
from penstock.files.job import FileWork
from penstock.files.query import Model
from penstock.files.roots import located
from penstock.lake.lake import connect
from penstock.protocol.journal import Lost, properties_of
from penstock.sql.names import Name

SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


class RustWork(FileWork):
    """The same work with delta-rs in Spark's place: the protocol at the speed of a unit test."""

    def _read(self, plan, state):
        plan = dataclasses.replace(plan, schema=SCHEMA, format="json")
        self._reading = (plan, NoReading())
        return plan

    def run(self, plan, state):
        self._reading = (plan, NoReading())
        super().run(plan, state)

    def _read_ahead(self, plan, state):
        pass

    def _ids(self, paths: list[str]) -> list[int]:
        """The rows of some files."""
        lines = [line for path in paths for line in Path(path).read_text().splitlines()]
        return [json.loads(line)["id"] for line in lines if line.strip()]

    def _write(self, plan, reading, note, state):
        ids = self._ids(located(plan.read)["path"].to_pylist())
        rows = pa.table({"id": pa.array(ids, pa.int64())})
        options = self.lake.storage_options or None
        mark = CommitProperties(
            app_transactions=[Transaction(MARK, plan.number)],
            custom_metadata={"userMetadata": note},
            max_commit_retries=0,
        )
        if plan.replace:
            # Spark makes the table and fills it in one commit, which delta-rs can't: good enough for one process.
            table = DeltaTable.create(
                self.location,
                schema=rows.schema,
                mode="overwrite",
                configuration=properties_of(plan),
                commit_properties=CommitProperties(custom_metadata={"userMetadata": note}),
                raise_if_key_not_exists=False,
                storage_options=options,
            )
        else:
            try:
                table = DeltaTable(self.location, storage_options=options)
            except TableNotFoundError as error:
                raise Lost(str(error)) from error
        if (table.transaction_version(MARK) or -1) >= plan.number:
            return
        try:
            write_deltalake(table, rows, mode="overwrite" if plan.replace else "append", commit_properties=mark)
        except CommitFailedError as error:
            raise Lost(str(error)) from error
        if plan.batch_id % 10 == 9:
            DeltaTable(self.location, storage_options=options).create_checkpoint()


class NoReading:
    def drop(self, runner):
        pass


class Shop:
    """A landing folder and a table that it goes into."""

    def __init__(self, folder: Path) -> None:
        self.landing = folder / "landing"
        self.landing.mkdir()
        self.lake = connect(str(folder / "lake"))
        self.name = Name("bronze", "events")
        self.table = folder / "lake" / "bronze" / "events"
        self.sources = self.table / "_checkpoint" / "sources"
        self.expected: collections.Counter[int] = collections.Counter()
        self._next = 0

    def land(self, name: str | None = None, *, at: float | None = None, rows: int = 1) -> Path:
        """A file of new ids, written at a moment."""
        path = self.landing / (name or f"file-{self._next:05}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        ids = range(self._next, self._next + rows)
        self._next += rows
        path.write_text("".join(json.dumps({"id": id}) + "\n" for id in ids))
        if at is not None:
            os.utime(path, (at, at))
        self.expected.update(ids)
        return path

    def work(self, step=lambda name: None, **config: Any) -> RustWork:
        given = {"source_roots": [str(self.landing)], "safety_buffer_seconds": 0, **config}
        source = FileSource.from_mapping(given)
        return RustWork(self.lake, self.name, source, Model.read("select id from @data"), None, Layout(), None, step)

    def run(self, *, full_refresh: bool = False, step=lambda name: None, **config: Any) -> IngestReport:
        work = self.work(step, **config)
        work.journal.drive(work, replace=full_refresh, step=step)
        return work.report

    @property
    def generation(self) -> int:
        """The number at which the table's ledger begins."""
        return int(Table.open(str(self.table)).properties["penstock.generation"])

    def plan(self, batch: int) -> Path:
        """The plan of a batch, counted from the beginning of the ledger."""
        return self.sources / str(self.generation + batch)

    def compaction(self, batch: int) -> Path:
        return self.sources / f"{self.generation + batch}.parquet"

    def rows(self) -> collections.Counter[int]:
        if not (self.table / "_delta_log").exists():
            return collections.Counter()
        return collections.Counter(DeltaTable(str(self.table)).to_pyarrow_table()["id"].to_pylist())

    def check(self) -> None:
        assert self.rows() == self.expected


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)
