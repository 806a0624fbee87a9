"""The tables of files in plans and ledgers."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.files.records import LINES, SKIPPED, lines, schema_from_header, schema_to_header, without
from penstock.files.source import FILES
from penstock.spark.reading.file_schema import FileSchema


def files(*rows: tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(FILES.names, row, strict=True)) for row in rows], schema=FILES)


def test_lines_have_a_status_and_a_reason():
    assert lines(files(("/a", 1, 2)), SKIPPED, "empty").to_pylist() == [
        {"path": "/a", "modificationTime": 1, "size": 2, "place": None, "status": "skipped", "reason": "empty"}
    ]
    assert lines(files(), SKIPPED).schema == LINES


@pytest.mark.parametrize(
    ("known", "left"),
    [
        ([], ["/a", "/b"]),
        ([("/a", 1, 1)], ["/b"]),
        ([("/a", 2, 1)], ["/a", "/b"]),
        ([("/a", 1, 2)], ["/a", "/b"]),
        # A path that the ledger has twice: a rewritten file that was ingested again.
        ([("/a", 2, 2), ("/a", 1, 1)], ["/b"]),
        ([("/a", 1, 1), ("/b", 1, 1)], []),
    ],
)
def test_files_are_known_by_path_time_and_size(known, left):
    assert without(files(("/a", 1, 1), ("/b", 1, 1)), files(*known))["path"].to_pylist() == left


def test_the_schema_in_a_header():
    schema = FileSchema({"type": "struct", "fields": []}, ("day",))
    assert schema_to_header(schema) == {"folders": ["day"], "schema": schema.struct}
    assert schema_from_header(schema_to_header(schema)) == schema
    assert schema_from_header(schema_to_header(None)) is None
    assert schema_from_header({}) is None
