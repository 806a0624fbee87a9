"""One batch is read at a time, and the next one ahead of it."""

from __future__ import annotations

import dataclasses
import threading
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock.delta.table import Column
from penstock.files import FileSource
from penstock.files.batch import Batches
from penstock.files.plan import FilePlan
from penstock.files.reading.reader import ReadRequest
from penstock.files.records import INGESTED, lines
from penstock.files.roots import Roots
from penstock.files.source import FILES
from penstock.spark.reading.file_schema import FileSchema
from penstock.steps import no_step

SCHEMA = FileSchema({"type": "struct", "fields": []}, ("day",))
STATE: Any = SimpleNamespace(table=SimpleNamespace(columns=[Column("id", "bigint")]))


class FakeReader:
    """Reads nothing, and remembers what was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[tuple[str, ...], str]] = []
        self.dropped: list[tuple[str, ...]] = []
        self.fails = False

    def read(self, request: ReadRequest) -> Any:
        thread = threading.current_thread().name.split("_")[0]
        self.asked.append((request.paths, thread))
        if self.fails:
            raise ValueError("broken")
        drop = lambda spark: self.dropped.append(request.paths)  # noqa: E731
        made = [Column("id", "bigint"), Column("new", "string")]
        return SimpleNamespace(request=request, schema=SCHEMA, format="json", made=made, drop=drop)


def files(*names: str) -> pa.Table:
    rows = [{"path": f"/in/{name}", "modificationTime": 1, "size": 2} for name in names]
    return lines(pa.Table.from_pylist(rows, schema=FILES), INGESTED)


def plan(*names: str, **more: Any) -> FilePlan:
    return FilePlan(2, 1, files(*names), roots=Roots(("/in",)), **more)


@pytest.fixture
def reader() -> FakeReader:
    return FakeReader()


@pytest.fixture
def batches(reader: FakeReader) -> Any:
    spark: Any = SimpleNamespace(joined=lambda work: work)
    ledger: Any = SimpleNamespace(schema=FileSchema({"known": 1}))
    source = FileSource.from_mapping({"source_roots": ["/in"], "on_schema_change": "sync_all_columns"})
    made = Batches("/lake/a/b", source, reader, ledger, spark, no_step)  # type: ignore[arg-type]
    yield made
    made.close()


def test_the_plan_gets_the_schema_and_is_read_once(batches, reader):
    read, reading = batches.read(plan("a"), STATE)
    assert (read.schema, read.format) == (SCHEMA, "json")
    assert batches.read(read, STATE) == (read, reading)
    assert reader.asked == [(("/in/a",), "MainThread")]


def test_a_request_has_what_the_plan_and_the_ledger_know(batches):
    request = batches.request(files("a"), plan("a"), STATE)
    assert request.known == FileSchema({"known": 1})
    assert request.columns == (Column("id", "bigint"),)
    assert batches.request(files("a"), plan("a", replace=True), STATE) == ReadRequest(("/in/a",), ("/in",))
    planned = plan("a", schema=SCHEMA, format="json")
    assert batches.request(files("a"), planned, STATE).schema == SCHEMA


def ahead(batches: Batches, reader: FakeReader) -> None:
    batches.read_ahead(files("b"), plan("a", schema=SCHEMA, format="json"), STATE)
    batches._ahead[1].exception(timeout=10)  # type: ignore[index]
    assert reader.asked == [(("/in/b",), "penstock-ahead")]


def test_a_batch_that_was_read_ahead_is_taken(batches, reader, monkeypatch):
    ahead(batches, reader)
    monkeypatch.setattr(batches._ledger, "schema", SCHEMA)
    batches.read(plan("b"), STATE)
    assert len(reader.asked) == 1


def test_another_batch_than_the_one_ahead_is_read(batches, reader):
    ahead(batches, reader)
    batches.read(plan("c"), STATE)
    assert reader.dropped == [("/in/b",)]
    assert len(reader.asked) == 2


def test_a_batch_that_failed_ahead_is_read_again(batches, reader, monkeypatch):
    reader.fails = True
    ahead(batches, reader)
    monkeypatch.setattr(batches._ledger, "schema", SCHEMA)
    with pytest.raises(ValueError, match="broken"):
        batches.read(plan("b"), STATE)


def test_nothing_is_read_ahead_of_the_first_batch(batches, reader):
    first = plan("a", replace=True, schema=SCHEMA)
    batches.read_ahead(files("b"), first, STATE)
    batches.read_ahead(files(), dataclasses.replace(first, replace=False), STATE)
    assert reader.asked == []


def test_only_more_than_new_columns_change_the_table_before_the_batch(batches):
    _, reading = batches.read(plan("a"), STATE)
    assert batches.misfit(reading) is None
    reading.made[0] = Column("other", "bigint")
    assert batches.misfit(reading) is not None
    reading.request = ReadRequest((), ())
    assert batches.misfit(reading) is None


def test_readings_are_dropped_at_the_end(batches, reader):
    batches.read(plan("a"), STATE)
    ahead_of = plan("a", schema=SCHEMA, format="json")
    batches.read_ahead(files("b"), ahead_of, STATE)
    batches.close()
    assert sorted(reader.dropped) == [("/in/a",), ("/in/b",)]
