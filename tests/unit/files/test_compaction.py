"""The bytes of a compaction, and which numbers it covers."""

from __future__ import annotations

import dataclasses
import io
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import PenstockError
from penstock.files.compaction import Compaction, NumberRange, path_of_compaction, tier
from penstock.files.plan import FilePlan
from penstock.files.records import INGESTED, RECORDS, lines
from penstock.files.roots import Roots
from penstock.files.source import FILES
from penstock.spark.reading.file_schema import FileSchema

FILE = pa.Table.from_pylist([{"path": "/in/a.json", "modificationTime": 1, "size": 2}], schema=FILES)
COMPACTION = Compaction(
    NumberRange(10, 19),
    FilePlan(12, 0, lines(FILE, INGESTED)).records(),
    FileSchema({"type": "struct", "fields": []}, ("day",)),
    "json",
    9,
    "uuid",
    Roots(("/in",), {"in": "/in"}, {}),
)


def test_a_compaction_is_read_as_it_was_written():
    found = Compaction.from_bytes(COMPACTION.to_bytes(0), "here")
    assert dataclasses.replace(found, records=COMPACTION.records) == COMPACTION
    assert found.records.to_pylist() == COMPACTION.records.to_pylist()


def test_the_keys_on_disk_stay():
    schema = pq.read_schema(io.BytesIO(COMPACTION.to_bytes(3)))
    assert schema.names == RECORDS.names
    assert "place" in schema.names
    assert json.loads(schema.metadata[b"penstock"]) == {
        "format_version": 2,
        "ledger": "uuid",
        "generation": 3,
        "roots": ["/in"],
        "written": {"in": "/in"},
        "aliases": {},
        "first": 10,
        "last": 19,
        "folders": ["day"],
        "schema": {"type": "struct", "fields": []},
        "source_format": "json",
        "voided": 9,
    }
    assert path_of_compaction(19) == "_checkpoint/sources/19.parquet"


def test_a_compaction_of_0_1_0_has_no_roots_and_no_path_beside_the_name():
    header = {"format_version": 1, "first": 0, "last": 9, "schema": None}
    records = COMPACTION.records.drop_columns(["place"])
    sink = io.BytesIO()
    pq.write_table(records.replace_schema_metadata({b"penstock": json.dumps(header).encode()}), sink)
    found = Compaction.from_bytes(sink.getvalue(), "here")
    assert found.roots is found.ledger is None
    assert found.records.schema.names == RECORDS.names
    assert found.records["place"].to_pylist() == [None]


@pytest.mark.parametrize("damage", [b"", b"garbage", COMPACTION.to_bytes(0)[:-9]])
def test_a_damaged_compaction_is_an_error_that_names_its_file(damage):
    with pytest.raises(PenstockError, match=r"can't be read.*19\.parquet.*--full-refresh"):
        Compaction.from_bytes(damage, "19.parquet")


def test_a_compaction_of_a_later_format_is_an_error():
    header = {"format_version": 99}
    sink = io.BytesIO()
    pq.write_table(COMPACTION.records.replace_schema_metadata({b"penstock": json.dumps(header).encode()}), sink)
    with pytest.raises(PenstockError, match="Upgrade"):
        Compaction.from_bytes(sink.getvalue(), "19.parquet")


@pytest.mark.parametrize(
    ("last", "generation", "first"),
    [(9, 0, 0), (19, 0, 10), (99, 0, 0), (199, 0, 100), (999, 0, 0), (1099, 1000, 1000)],
)
def test_ten_compactions_make_one_of_the_next_tier(last, generation, first):
    assert tier(last, generation, 10) == NumberRange(first, last)
