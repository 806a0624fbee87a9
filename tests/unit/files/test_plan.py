"""The bytes of a plan."""

from __future__ import annotations

import dataclasses
import json

import pyarrow as pa
import pytest

from penstock import PenstockError
from penstock.files.plan import FilePlan
from penstock.files.records import INGESTED, QUARANTINED, SKIPPED, lines
from penstock.files.roots import Roots
from penstock.files.source import FILES
from penstock.spark.reading.file_schema import FileSchema

ROWS = [{"path": f"/in/{name}.json", "modificationTime": 1, "size": 2} for name in ("a", "ü\n")]
PLAN = FilePlan(
    number=7,
    generation=5,
    lines=lines(pa.Table.from_pylist(ROWS, schema=FILES), INGESTED),
    schema=FileSchema({"type": "struct", "fields": []}, ("day",)),
    format="json",
    roots=Roots(("/in",), {"in": "/in"}, {}),
    voided=(6, "a file vanished"),
    ledger="uuid",
    model="digest",
    selection={"source_patterns": ["a"]},
    time=1,
)


def test_a_plan_is_read_as_it_was_written():
    assert FilePlan.from_bytes(7, PLAN.to_bytes(), "here") == PLAN
    assert PLAN.batch_id == 2


def test_the_keys_on_disk_stay():
    header, first, _ = map(json.loads, PLAN.to_bytes().splitlines())
    assert header == {
        "format_version": 2,
        "kind": "files",
        "ledger": "uuid",
        "number": 7,
        "generation": 5,
        "batchId": 2,
        "replace": False,
        "files": 2,
        "time": 1,
        "source_format": "json",
        "roots": ["/in"],
        "written": {"in": "/in"},
        "aliases": {},
        "folders": ["day"],
        "schema": {"type": "struct", "fields": []},
        "model": "digest",
        "selection": {"source_patterns": ["a"]},
        "voided": {"number": 6, "reason": "a file vanished"},
    }
    assert first == {
        "path": "/in/a.json",
        "modificationTime": 1,
        "size": 2,
        "batchId": 2,
        "batchProcessingTime": 1,
        "status": "ingested",
    }


def test_the_path_that_a_file_is_read_from_is_called_place_on_disk():
    roots = Roots(("/link",), {"/link": "/in"}, {"/link": "/in"})
    listed = pa.Table.from_pylist([{**ROWS[0], "path": "/link/a.json"}], schema=FILES)
    plan = dataclasses.replace(PLAN, lines=lines(roots.identify(listed), INGESTED))
    line = json.loads(plan.to_bytes().splitlines()[1])
    assert (line["path"], line["place"]) == ("/in/a.json", "/link/a.json")


def test_only_files_of_these_statuses_are_read():
    table = pa.Table.from_pylist(ROWS, schema=FILES)
    parts = [lines(table.slice(0, 1), INGESTED), lines(table.slice(1, 1), SKIPPED, "empty")]
    plan = dataclasses.replace(PLAN, lines=pa.concat_tables(parts))
    assert plan.read.num_rows == plan.with_status(SKIPPED).num_rows == 1
    assert plan.with_status(QUARANTINED).num_rows == 0


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda data: data[: data.rindex(b"\n", 0, -1) + 1], "1 of 2 lines"),
        (lambda data: data.replace(b'"number": 7', b'"number": 8'), "its header says that it is plan 8"),
        (lambda data: data.replace(b'"kind": "files"', b'"kind": "changes"'), "records changes, not files"),
        (lambda data: data.replace(b'"size": 2', b'"sise": 2'), "lacks path, size or modificationTime"),
        (lambda data: b"garbage", "can't be read"),
    ],
)
def test_a_damaged_plan_is_an_error_that_names_its_file(damage, says):
    with pytest.raises(PenstockError, match=rf"(?s){says}.*sources/7"):
        FilePlan.from_bytes(7, damage(PLAN.to_bytes()), "sources/7")


def test_the_next_step_depends_on_whether_the_batch_is_in_the_table():
    with pytest.raises(PenstockError, match=r"is not in the table\. Move the plan's file away"):
        FilePlan.from_bytes(7, b"", "sources/7")
    with pytest.raises(PenstockError, match="--full-refresh"):
        FilePlan.from_bytes(7, b"", "sources/7", committed=True)
