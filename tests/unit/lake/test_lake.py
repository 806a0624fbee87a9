"""The lake without Spark: tables written by delta-rs, views and links by hand."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

import penstock
from penstock.api import Lake
from penstock.delta.table import Column
from penstock.errors import NotFound, PenstockError, UnreadableTable, UnsupportedTable
from penstock.lake.relations import Link, View
from penstock.sql.names import Name

ORDERS = Name("silver", "orders")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return penstock.connect(str(tmp_path / "lake"))


def make_table(lake: Lake, name: Name = ORDERS, location: str | None = None, **columns: list[object]) -> None:
    rows = columns or {"id": [1, 2, 3], "name": ["a", "b", None]}
    write_deltalake(location or f"{lake.root}/{name.schema}/{name.identifier}", pa.table(rows), mode="overwrite")


def make_view(lake: Lake, name: Name, query: str) -> None:
    view = View(query, (Column("id", "bigint"),), None, lake._digests(lake.mentioned(query) - {name}))
    lake.storage.write(f"{name.schema}/{name.identifier}/_view.json", view.to_bytes())


def test_connecting_writes_and_starts_nothing(lake: Lake) -> None:
    assert not Path(lake.root).exists()
    assert lake.tables() == []


def test_what_is_on_disk_is_what_there_is(lake: Lake) -> None:
    make_table(lake)
    make_view(lake, Name("gold", "v"), "select id from silver.orders")
    (Path(lake.root) / "silver" / "notes").mkdir()
    assert [(str(found), found.kind) for found in lake.tables()] == [("gold.v", "view"), ("silver.orders", "table")]
    assert lake.columns("silver.orders") == [Column("id", "bigint"), Column("name", "string")]
    assert lake.columns("gold.v") == [Column("id", "bigint")]


def test_names_know_no_case_and_folders_may(lake: Lake) -> None:
    make_table(lake, location=f"{lake.root}/Silver/Orders")
    assert lake.get("SILVER.orders").location.endswith("/Silver/Orders")


def test_a_view_beside_an_older_table_is_a_view(lake: Lake) -> None:
    make_table(lake)
    make_view(lake, ORDERS, "select 1 as id")
    assert lake.get("silver.orders").kind == "view"


def test_mentioned_names_are_those_whose_schema_is_there(lake: Lake) -> None:
    make_table(lake)
    assert lake.mentioned("select o.id from silver.orders o join other.t on delta.`/x/y`.a = 1") == {ORDERS}


def test_a_corrupt_log_is_named_and_is_not_missing(lake: Lake) -> None:
    make_table(lake)
    next(Path(lake.root).glob("silver/orders/_delta_log/*.json")).write_text("{garbage")
    assert lake.get("silver.orders").kind == "table"
    with pytest.raises(UnreadableTable, match="silver/orders"):
        lake.log_of("silver.orders")


def test_a_newer_protocol_is_told_apart_from_a_corrupt_log(lake: Lake) -> None:
    make_table(lake)
    log = next(Path(lake.root).glob("silver/orders/_delta_log/*.json"))
    lines = [line for line in log.read_text().splitlines() if '"protocol"' not in line]
    newer = '{"protocol":{"minReaderVersion":3,"minWriterVersion":7,"readerFeatures":["x"],"writerFeatures":["x"]}}'
    log.write_text("\n".join([newer, *lines]))
    with pytest.raises(UnsupportedTable, match="newer Delta protocol"):
        lake.log_of("silver.orders")


def test_dropping_removes_one_relation(lake: Lake) -> None:
    make_table(lake)
    make_table(lake, Name("silver", "other"))
    lake.drop(ORDERS)
    assert [str(found) for found in lake.tables()] == ["silver.other"]
    assert not (Path(lake.root) / "silver" / "orders").exists()


def test_dropping_refuses_what_is_no_relation(lake: Lake) -> None:
    notes = Path(lake.root) / "silver" / "notes"
    notes.mkdir(parents=True)
    (notes / "plan.txt").write_text("keep me")
    with pytest.raises(NotFound):
        lake.drop(Name("silver", "notes"))
    lake.drop(Name("silver", "notes"), missing_ok=True)
    lake.drop_schema("silver")
    assert (notes / "plan.txt").read_text() == "keep me"


@pytest.mark.parametrize(
    "statement",
    [
        "drop table other.silver.orders",
        "drop schema other.silver cascade",
        "alter table other.silver.orders rename to silver.moved",
        "create or replace view other.silver.orders as select 1 as id",
        "create schema other.gold",
    ],
)
def test_another_catalogs_names_go_to_spark(lake: Lake, monkeypatch: pytest.MonkeyPatch, statement: str) -> None:
    make_table(lake)
    given: list[str] = []

    class Spark(Exception):
        pass

    def start(runner: object) -> None:
        given.append(statement)
        raise Spark

    monkeypatch.setattr("penstock.spark.runner.Runner.spark", property(start))
    with pytest.raises(Spark):
        lake.sql(statement)
    assert given == [statement]
    assert [str(found) for found in lake.tables()] == ["silver.orders"]
    assert lake.schemas() == ["silver"]


def test_a_table_does_not_leave_for_another_catalog(lake: Lake) -> None:
    make_table(lake)
    with pytest.raises(PenstockError, match=r"other\.x\.y"):
        lake.sql("alter table silver.orders rename to other.x.y")
    assert [str(found) for found in lake.tables()] == ["silver.orders"]


def test_the_lakes_own_catalog_may_be_written(lake: Lake) -> None:
    make_table(lake)
    lake.sql("alter table spark_catalog.silver.orders rename to spark_catalog.gold.orders")
    assert [str(found) for found in lake.tables()] == ["gold.orders"]
    lake.sql("drop schema spark_catalog.gold cascade")
    assert lake.tables() == []


def test_dropping_a_link_leaves_the_data(lake: Lake, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    make_table(lake, location=elsewhere)
    lake.link(ORDERS, Link(elsewhere))
    assert lake.get("silver.orders").location == elsewhere
    lake.drop(ORDERS)
    assert lake.find(ORDERS) is None
    assert (tmp_path / "elsewhere" / "_delta_log").exists()


def test_its_owner_drops_the_data_but_never_the_lake(lake: Lake, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    make_table(lake, location=str(elsewhere))
    lake.link(ORDERS, Link(str(elsewhere)))
    lake.drop(ORDERS, owns_location=True)
    assert not elsewhere.exists()
    for root in (lake.root, str(tmp_path)):
        make_table(lake, location=root)
        lake.links[ORDERS] = Link(root)
        with pytest.raises(PenstockError, match="holds the lake itself"):
            lake.drop(ORDERS, owns_location=True)
        assert Path(lake.root).exists()


def test_renaming_moves_the_folder_and_overwrites_nothing(lake: Lake) -> None:
    make_table(lake)
    make_table(lake, Name("silver", "taken"))
    with pytest.raises(PenstockError, match="exists already"):
        lake.rename(ORDERS, Name("silver", "taken"))
    lake.rename(ORDERS, Name("gold", "orders"))
    assert [str(found) for found in lake.tables()] == ["gold.orders", "silver.taken"]


def test_a_view_is_current_until_its_text_or_an_input_changes(lake: Lake) -> None:
    make_table(lake)
    name, query = Name("gold", "v"), "select id from silver.orders"
    make_view(lake, name, query)
    assert lake.view_is_current(name, query)
    assert not lake.view_is_current(name, query + " ")
    assert not lake.view_is_current(name, query, description="new")
    assert not lake.view_is_current(name, query, comments={"id": "the key"})
    make_table(lake)
    assert lake.view_is_current(name, query), "new rows are no new columns"
    write_deltalake(
        f"{lake.root}/silver/orders", pa.table({"id": [1], "extra": ["x"]}), mode="append", schema_mode="merge"
    )
    assert not lake.view_is_current(name, query)


@pytest.mark.parametrize("content", ["{garbage", "[]", '{"sql": "select 1"}'])
def test_a_view_file_that_is_not_ours_is_an_error(lake: Lake, content: str) -> None:
    lake.storage.write("gold/v/_view.json", content.encode())
    with pytest.raises(PenstockError, match=r"gold/v/_view\.json"):
        lake.columns("gold.v")


def test_a_view_file_of_a_later_format_is_an_error(lake: Lake) -> None:
    lake.storage.write("gold/v/_view.json", b'{"format_version": 99, "sql": "select 1", "columns": []}')
    with pytest.raises(PenstockError, match="Upgrade"):
        lake.columns("gold.v")


def test_read_only_refuses_to_write(tmp_path: Path) -> None:
    writable = penstock.connect(str(tmp_path / "lake"))
    make_table(writable)
    lake = penstock.connect(str(tmp_path / "lake"), read_only=True)
    attempts = [
        lambda: lake.create_schema("x"),
        lambda: lake.drop(ORDERS),
        lambda: lake.rename(ORDERS, Name("a", "b")),
        lambda: lake.sql("delete from silver.orders"),
        lambda: lake.delta("silver.orders"),
    ]
    for attempt in attempts:
        with pytest.raises(PenstockError, match="reading only"):
            attempt()
    assert [str(found) for found in lake.tables()] == ["silver.orders"]


def test_freshness_and_statistics_come_from_the_log(lake: Lake) -> None:
    make_table(lake)
    make_view(lake, Name("gold", "v"), "select id from silver.orders")
    numbers = lake.log_of("silver.orders").statistics()
    assert (numbers.rows, numbers.files) == (3, 1)
    assert lake.last_modified("gold.v") == lake.last_modified("silver.orders") == lake.log_of(ORDERS).last_modified


def test_a_folder_whose_name_is_no_relations_is_passed_over(lake: Lake) -> None:
    make_table(lake)
    for stray in ("silver/a..b", "c..d/orders"):
        (Path(lake.root) / stray).mkdir(parents=True)
    assert [str(found) for found in lake.tables()] == ["silver.orders"]


def test_a_drop_does_not_forget_what_the_caller_told(lake: Lake, tmp_path: Path) -> None:
    elsewhere = str(tmp_path / "elsewhere")
    make_table(lake, location=elsewhere)
    lake.links[ORDERS] = Link(elsewhere)
    lake.link(ORDERS, Link(elsewhere))
    lake.drop(ORDERS)
    assert lake.location_of(ORDERS) == elsewhere
    assert lake.kept_link(ORDERS) is None
    assert lake.is_ours(ORDERS, elsewhere)


def test_a_link_to_nothing_can_be_dropped(lake: Lake, tmp_path: Path) -> None:
    lake.link(ORDERS, Link(str(tmp_path / "gone")))
    lake.drop(ORDERS)
    assert lake.link_of(ORDERS) is None


def test_a_location_without_a_table_is_named(lake: Lake, tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    lake.links[ORDERS] = Link(gone)
    for look in (lake.get, lake.columns, lake.last_modified):
        with pytest.raises(NotFound, match=rf"no Delta table .*silver\.orders \({gone}\)"):
            look("silver.orders")


@pytest.mark.parametrize("location", ["landing", "landing/one.csv", "landing/*.csv"])
def test_files_are_dated_in_a_folder_alone_and_by_a_pattern(lake: Lake, tmp_path: Path, location: str) -> None:
    (tmp_path / "landing").mkdir()
    (tmp_path / "landing" / "one.csv").write_text("id\n1\n")
    os.utime(tmp_path / "landing" / "one.csv", (1_700_000_000, 1_700_000_000))
    lake.links[ORDERS] = Link(str(tmp_path / location), "csv")
    assert lake.last_modified(ORDERS).timestamp() == 1_700_000_000
