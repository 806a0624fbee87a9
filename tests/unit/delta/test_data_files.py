"""The statistics of a table's files, from its log."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.delta.table import Table


@pytest.fixture
def location(tmp_path: Path) -> str:
    location = str(tmp_path / "t")
    for day, ids in (("a", [1, 5]), ("b", [7, None]), ("c", [None])):
        rows = pa.table({"id": pa.array(ids, pa.int64()), "day": [day] * len(ids)})
        write_deltalake(location, rows, partition_by=["day"], mode="append")
    return location


def test_files_and_rows_are_counted(location: str) -> None:
    found = Table.open(location).statistics()
    assert (found.files, found.rows) == (3, 5)
    assert found.bytes > 0


def test_a_table_without_files_has_no_rows(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), pa.table({"id": pa.array([], pa.int64())}))
    table = Table.open(str(tmp_path))
    assert (table.statistics().rows, table.extremes("id")) == (0, [])


def test_extremes_of_each_file_that_has_values(location: str) -> None:
    assert sorted(Table.open(location).extremes("ID") or []) == [(1, 5), (7, 7)]
    assert sorted(Table.open(location).extremes("day") or []) == [("a", "a"), ("b", "b"), ("c", "c")]


def test_a_file_without_statistics_has_unknown_rows_and_extremes(location: str) -> None:
    for commit in Path(location, "_delta_log").glob("*2.json"):
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for action in actions:
            action.get("add", {}).pop("stats", None)
        commit.write_text("\n".join(map(json.dumps, actions)))
    table = Table.open(location)
    assert (table.statistics().rows, table.extremes("id")) == (None, None)
