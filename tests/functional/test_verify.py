"""`penstock verify` finds one row that was tampered with, in files and in changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from penstock.api import Lake, connect
from penstock.changes import ChangeSource
from penstock.files import FileSource
from penstock.inspection.table_ledger import TableLedger
from penstock.inspection.verification import Verification, verify_changes, verify_files

FILES = "select id, cast(price as double) as price, source_file_uri from @data where id <> 3"
MODEL = "select id, price * 2 as doubled from bronze.prices"


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    folder = tmp_path / "landing"
    folder.mkdir()
    for file in range(3):
        rows = [{"id": file * 4 + row, "price": row} for row in range(4)]
        (folder / f"{file}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


@pytest.fixture
def lake(tmp_path: Path, landing: Path) -> Lake:
    lake = connect(str(tmp_path / "lake"))
    properties = {"delta.enableChangeDataFeed": "true"}
    lake.ingest("bronze.prices", select=FILES, roots=[str(landing)], safety_buffer_seconds=0, properties=properties)
    lake.merge_changes("gold.doubled", key="id", select=MODEL)
    return lake


def of_files(lake: Lake, landing: Path) -> Verification:
    source = FileSource.from_mapping({"source_roots": [str(landing)]})
    return verify_files(TableLedger.open(lake, "bronze.prices"), source, FILES, lake.runner)


def of_changes(lake: Lake) -> Verification:
    source = ChangeSource.from_mapping({"unique_key": "id"})
    return verify_changes(TableLedger.open(lake, "gold.doubled"), source, MODEL, lake.runner)


def test_one_row_that_was_tampered_with(lake: Lake, landing: Path) -> None:
    assert of_files(lake, landing).is_right
    assert of_changes(lake).is_right
    # Changes: the model is compared at the version that its last commit recorded, whatever its source has become.
    lake.sql("delete from bronze.prices where id = 5")
    assert of_changes(lake).is_right
    lake.sql("update gold.doubled set doubled = 99 where id = 7")
    lake.sql("insert into gold.doubled select * from gold.doubled where id = 2")
    found = of_changes(lake)
    assert (found.rows, found.missing, found.extra) == (12, 1, 2)
    rows = {(one.kind, json.loads(one.row)["id"], one.computed, one.found) for one in found.examples}
    assert rows == {("missing", 7, 1, 0), ("extra", 7, 0, 1), ("different", 2, 1, 2)}
    assert any("changed by others: UPDATE" in note for note in found.notes)
    # Files: one row of the second file is gone.
    found = of_files(lake, landing)
    assert (found.compared, found.missing, found.extra) == ("rows by file", 1, 0)
    (one,) = found.examples
    assert (one.kind, one.row.rsplit("/", 1)[-1], one.computed, one.found) == ("different", "1.json", 4, 3)
    # A file that is gone can't be read again, and its rows are left out on both sides.
    (landing / "1.json").unlink()
    found = of_files(lake, landing)
    assert found.is_right
    assert "vanished or changed" in found.notes[-1]
