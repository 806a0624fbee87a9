"""The reserved schemas: own tables are found, nothing is written there, and a lake that has such a schema keeps it."""

from __future__ import annotations

import logging
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.api import Lake, connect
from penstock.errors import PenstockError
from penstock.lake.relations import Link, View
from penstock.lake.reserved import DESCRIPTIONS, SCHEMAS, TABLES
from penstock.sql.names import Name

COLUMNS = Name("information_schema", "columns")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    write_deltalake(str(tmp_path / "silver" / "orders"), pa.table({"id": pa.array([1], pa.int64())}))
    return connect(str(tmp_path))


def test_own_tables_are_found_and_are_not_relations_on_disk(lake: Lake) -> None:
    assert lake.get("Information_Schema.COLUMNS").kind == "system table"
    assert [column.name for column in lake.columns("information_schema.columns")][:3] == [
        "table_catalog", "table_schema", "table_name",
    ]  # fmt: skip
    assert lake.schemas() == ["silver"]
    assert [str(relation) for relation in lake.tables()] == ["silver.orders"]
    assert [relation.name for relation in lake.own_relations("information_schema")] == sorted(
        (name for name in TABLES if name.schema == "information_schema"), key=str
    )
    assert lake.own_relations("silver") == []
    assert lake.find(Name("penstock", "no_such_table")) is None


def test_names_in_a_text(lake: Lake) -> None:
    text = (
        "select * from `INFORMATION_SCHEMA`.columns c join spark_catalog.information_schema.tables t using (table_name)"
    )
    assert lake.mentioned(text) == {COLUMNS, Name("information_schema", "tables")}
    assert lake.mentioned("select * from identifier('Information_Schema.columns')") == {COLUMNS}


def test_each_own_table_is_described() -> None:
    assert {name.schema for name in TABLES} <= set(SCHEMAS)
    for name, columns in TABLES.items():
        assert DESCRIPTIONS[name]
        assert all(column.comment for column in columns)


@pytest.mark.parametrize(
    "write",
    [
        lambda lake: lake.create_schema("penstock"),
        lambda lake: lake.create_schema("Information_Schema"),
        lambda lake: lake.drop_schema("penstock"),
        lambda lake: lake.drop(COLUMNS, missing_ok=True),
        lambda lake: lake.rename(COLUMNS, Name("silver", "c")),
        lambda lake: lake.rename(Name("silver", "orders"), COLUMNS),
        lambda lake: lake.rename(Name("silver", "orders"), Name("penstock", "orders")),
        lambda lake: lake.write_view(COLUMNS, "select 1 as a", []),
        lambda lake: lake.link(Name("penstock", "x"), Link("/elsewhere")),
        lambda lake: lake.location_of(Name("penstock", "orders")),
        lambda lake: lake.sql("insert into information_schema.columns select 1"),
        lambda lake: lake.sql("create table penstock.orders as select 1 as id"),
        lambda lake: lake.sql("merge into information_schema.tables t using s.x on true when matched then delete"),
        lambda lake: lake.sql("drop view if exists information_schema.tables"),
        lambda lake: lake.sql("create schema if not exists penstock"),
        lambda lake: lake.ingest("penstock.files", roots=["landing"]),
        lambda lake: lake.clone(Name("silver", "orders"), Name("penstock", "orders")),
        lambda lake: lake.write(None, "penstock.orders"),
    ],
)
def test_nothing_is_written_there(lake: Lake, write) -> None:
    with pytest.raises(PenstockError, match=r"reserved for the lake's own tables|one of the lake's own tables"):
        write(lake)
    assert lake.storage.folders("") == ["silver"]


def test_an_own_table_is_no_table_of_delta(lake: Lake) -> None:
    with pytest.raises(PenstockError, match="is a system table, not a Delta table"):
        lake.delta("information_schema.columns")
    with pytest.raises(PenstockError, match="is a system table, so it has no Delta log"):
        lake.log_of("information_schema.columns")
    with pytest.raises(PenstockError, match="set `loaded_at_field`"):
        lake.last_modified("information_schema.columns")


def test_a_view_may_read_an_own_table(lake: Lake) -> None:
    query = "select table_name from information_schema.tables"
    lake.write_view(Name("gold", "names"), query, [])
    assert lake.view_is_current(Name("gold", "names"), query)
    assert View.from_bytes(lake.storage.read("gold/names/_view.json"), "").inputs.keys() == {
        "information_schema.tables"
    }


def test_a_lake_that_has_such_a_schema_keeps_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rows = pa.table({"id": pa.array([1], pa.int64())})
    write_deltalake(str(tmp_path / "penstock" / "orders"), rows)
    write_deltalake(str(tmp_path / "information_schema" / "columns"), rows)
    lake = connect(str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert lake.get("penstock.orders").kind == "table"
        assert caplog.records == []
        assert [column.name for column in lake.columns("information_schema.columns")] == ["id"]
        assert lake.get("information_schema.columns").kind == "table"
        assert len(caplog.records) == 1
        lake.create_schema("penstock")
        lake.create_schema("penstock")
        assert len(caplog.records) == 2
    assert "ALTER TABLE penstock.… RENAME TO" in caplog.text
    assert lake.get("information_schema.tables").kind == "system table"
    assert "information_schema.columns" not in map(str, lake.own_relations("information_schema"))
    lake.rename(Name("penstock", "orders"), Name("penstock", "orders_2"))
    lake.rename(Name("information_schema", "columns"), Name("silver", "kept"))
    assert lake.get("information_schema.columns").kind == "system table"
    lake.drop(Name("penstock", "orders_2"))
    lake.drop_schema("penstock")
    assert "penstock" not in lake.schemas()
    with pytest.raises(PenstockError, match="reserved"):
        lake.create_schema("penstock")


def test_a_relation_with_the_name_of_an_own_table_may_be_built_again(tmp_path: Path) -> None:
    columns = tmp_path / "information_schema" / "columns"
    rows = pa.table({"id": pa.array([1], pa.int64())})
    write_deltalake(str(columns), rows)
    lake = connect(str(tmp_path))
    lake.drop(COLUMNS)
    # dbt drops a relation of another kind before it creates the new one.
    assert lake.find(COLUMNS) is None
    assert lake.location_of(COLUMNS) == str(columns)
    write_deltalake(str(columns), rows)
    assert lake.get("information_schema.columns").kind == "table"
    lake.drop(COLUMNS)
    assert connect(str(tmp_path)).get("information_schema.columns").kind == "system table"
