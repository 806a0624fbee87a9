from __future__ import annotations

import collections
import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError, TableNotFoundError

from penstock.api import connect
from penstock.delta.layout import Layout
from penstock.delta.table import MARK, Table
from penstock.errors import CommitConflict
from penstock.files import FileSource, IngestReport
from penstock.files.job import FileJob
from penstock.files.query import FileQuery
from penstock.files.roots import located
from penstock.protocol.plan import properties_of
from penstock.protocol.run import run_job
from penstock.spark.reading.file_schema import FileSchema
from penstock.sql.names import Name
from tests.s3_server import S3, serve

SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


NO_SPARK = SimpleNamespace(commit_marks=None, check_commits=lambda location: None)
NO_READING = SimpleNamespace(query="", made=[], warnings=[])


class RustBatches:
    """Batches that delta-rs reads and writes, in Spark's place."""

    def __init__(self, job: FileJob) -> None:
        self.job = job

    def read(self, plan, state):
        return dataclasses.replace(plan, schema=FileSchema(SCHEMA), format="json"), NO_READING

    def misfit(self, reading):
        return None

    def read_ahead(self, files, plan, state):
        pass

    def append(self, plan, reading, note, state):
        try:
            table = DeltaTable(self.job.location, storage_options=self.job.lake.storage_options or None)
        except TableNotFoundError as error:
            raise CommitConflict(str(error)) from error
        self.job.insert(table, plan, note, "append")

    def drop(self):
        pass

    def close(self):
        pass


class RustJob(FileJob):
    """The same job with delta-rs in Spark's place: the protocol at the speed of a unit test."""

    def _make_batches(self):
        return RustBatches(self)

    def _ids(self, paths: list[str]) -> list[int]:
        """The rows of some files."""
        lines = [line for path in paths for line in Path(path).read_text().splitlines()]
        return [json.loads(line)["id"] for line in lines if line.strip()]

    def _rows(self, plan) -> pa.Table:
        ids = self._ids(located(plan.read)["path"].to_pylist())
        return pa.table({"id": pa.array(ids, pa.int64())})

    def create_table(self, plan, query, note, *, layout=None):
        # Spark makes the table and fills it in one commit, which delta-rs can't: good enough for one process.
        table = DeltaTable.create(
            self.location,
            schema=self._rows(plan).schema,
            mode="overwrite",
            configuration=properties_of(plan),
            commit_properties=CommitProperties(custom_metadata={"userMetadata": note}),
            raise_if_key_not_exists=False,
            storage_options=self.lake.storage_options or None,
        )
        self.insert(table, plan, note, "overwrite")

    def insert(self, table: DeltaTable, plan, note: str, mode: str) -> None:
        mark = CommitProperties(
            app_transactions=[Transaction(MARK, plan.number)],
            custom_metadata={"userMetadata": note},
            max_commit_retries=0,
        )
        if (table.transaction_version(MARK) or -1) >= plan.number:
            return
        try:
            write_deltalake(table, self._rows(plan), mode=mode, commit_properties=mark)
        except CommitFailedError as error:
            raise CommitConflict(str(error)) from error
        if plan.batch_id % 10 == 9:
            DeltaTable(self.location, storage_options=self.lake.storage_options or None).create_checkpoint()


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

    def work(self, step=lambda name: None, **config: Any) -> RustJob:
        given = {"source_roots": [str(self.landing)], "safety_buffer_seconds": 0, **config}
        source = FileSource.from_mapping(given)
        return RustJob(
            self.lake, self.name, source, FileQuery.read("select id from @data"), NO_SPARK, Layout(), step=step
        )

    def run(self, *, full_refresh: bool = False, step=lambda name: None, **config: Any) -> IngestReport:
        job = self.work(step, **config)
        run_job(job, replace=full_refresh)
        return job.report

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


@pytest.fixture
def s3() -> Iterator[S3]:
    with serve() as server:
        yield server
