"""The table that a run writes."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock import PenstockError, connect
from penstock.delta.table import Column
from penstock.protocol.target import replaces
from penstock.sql.names import Name

NAME = Name("silver", "orders")


def test_a_run_replaces_for_a_full_refresh_only(tmp_path: Path) -> None:
    assert not replaces(connect(str(tmp_path)), NAME, full_refresh=False)
    assert replaces(connect(str(tmp_path)), NAME, full_refresh=True)


def test_a_view_is_replaced(tmp_path: Path) -> None:
    lake = connect(str(tmp_path))
    lake.create_schema("silver")
    lake.write_view(NAME, "select 1 as id", [Column("id", "int")])
    assert replaces(lake, NAME, full_refresh=False)


def test_a_relation_over_files_elsewhere_is_refused(tmp_path: Path) -> None:
    lake = connect(str(tmp_path / "lake"))
    (tmp_path / "files").mkdir()
    folder = tmp_path / "lake" / "silver" / "orders"
    folder.mkdir(parents=True)
    location = str(tmp_path / "files")
    folder.joinpath("_link.json").write_text(f'{{"format_version": 1, "location": "{location}", "format": "parquet"}}')
    assert lake.get(NAME).kind == "files"
    with pytest.raises(PenstockError, match="over files elsewhere"):
        replaces(lake, NAME, full_refresh=False)


def test_a_read_only_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="read"):
        replaces(connect(str(tmp_path), read_only=True), NAME, full_refresh=False)
