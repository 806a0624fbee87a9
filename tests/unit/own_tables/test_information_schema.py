from __future__ import annotations

import json
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.api import Lake, connect
from penstock.delta.table import Column
from penstock.lake.relations import Link, View
from penstock.lake.reserved import TABLES
from penstock.sql.names import Name
from penstock.sql.wanted import EVERYTHING, Wanted


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = connect(str(tmp_path / "lake"))
    rows = pa.table(
        {
            "id": pa.array([1], pa.int64()),
            "price": pa.array([Decimal("1.20")], pa.decimal128(10, 2)),
            "tags": pa.array([["a"]], pa.list_(pa.string())),
        },
        schema=pa.schema(
            [
                pa.field("id", pa.int64(), nullable=False),
                pa.field("price", pa.decimal128(10, 2)),
                pa.field("tags", pa.list_(pa.string())),
            ]
        ),
    )
    write_deltalake(str(tmp_path / "lake" / "silver" / "orders"), rows, description="All orders")
    view = View("select id from silver.orders", (Column("id", "bigint", comment="the key"),), "Their keys")
    lake.storage.write("gold/keys/_view.json", view.to_bytes())
    (tmp_path / "raw").mkdir()
    lake.storage.write("bronze/raw/_link.json", Link(str(tmp_path / "raw"), "csv").to_bytes())
    return lake


def rows(lake: Lake, name: str, wanted: Wanted = EVERYTHING) -> list[dict[str, Any]]:
    assert lake.own_rows is not None
    found: pa.Table = lake.own_rows.rows(Name.parse(name), wanted)
    assert found.column_names == [column.name for column in TABLES[Name.parse(name)]]
    return found.to_pylist()


def test_schemata(lake: Lake) -> None:
    found = {row["schema_name"]: row["location"] for row in rows(lake, "information_schema.schemata")}
    assert found == {
        "bronze": f"{lake.root}/bronze",
        "gold": f"{lake.root}/gold",
        "information_schema": None,
        "penstock": None,
        "silver": f"{lake.root}/silver",
    }


def test_tables(lake: Lake) -> None:
    found = {f"{row['table_schema']}.{row['table_name']}": row for row in rows(lake, "information_schema.tables")}
    assert list(found) == sorted(found)
    assert found.keys() >= {"bronze.raw", "gold.keys", "silver.orders", *map(str, TABLES)}
    assert {name: row["table_type"] for name, row in found.items() if row["table_schema"] in ("bronze", "gold", "silver")} == {
        "bronze.raw": "EXTERNAL TABLE", "gold.keys": "VIEW", "silver.orders": "BASE TABLE",
    }  # fmt: skip
    orders = found["silver.orders"]
    assert abs((datetime.now(timezone.utc) - orders.pop("created")).total_seconds()) < 600
    assert abs((datetime.now(timezone.utc) - orders.pop("last_altered")).total_seconds()) < 600
    assert orders == {
        "table_catalog": "spark_catalog",
        "table_schema": "silver",
        "table_name": "orders",
        "table_type": "BASE TABLE",
        "is_insertable_into": "YES",
        "table_owner": None,
        "comment": "All orders",
        "data_source_format": "DELTA",
        "storage_path": f"{lake.root}/silver/orders",
    }
    assert (found["gold.keys"]["comment"], found["gold.keys"]["storage_path"]) == ("Their keys", None)
    assert found["bronze.raw"]["data_source_format"] == "CSV"
    assert found["information_schema.tables"]["table_type"] == "VIEW"


def test_a_table_whose_log_is_broken_is_listed_all_the_same(lake: Lake) -> None:
    first = next(Path(lake.root, "silver", "orders", "_delta_log").glob("*.json"))
    first.write_text("no json")
    found = rows(lake, "information_schema.tables", Wanted.only(table_schema="silver"))
    assert [(row["table_name"], row["table_type"], row["created"]) for row in found] == [("orders", "BASE TABLE", None)]


def test_columns(lake: Lake) -> None:
    found = rows(lake, "information_schema.columns", Wanted.only(table_schema="Silver", table_name="ORDERS"))
    shown = [
        tuple(row[name] for name in ("column_name", "ordinal_position", "is_nullable", "data_type", "numeric_precision", "numeric_scale"))
        for row in found
    ]  # fmt: skip
    assert shown == [
        ("id", 1, "NO", "bigint", None, None),
        ("price", 2, "YES", "decimal(10,2)", 10, 2),
        ("tags", 3, "YES", "array<string>", None, None),
    ]
    keys = rows(lake, "information_schema.columns", Wanted.only(table_name="keys"))
    assert [(row["table_schema"], row["column_name"], row["comment"]) for row in keys] == [("gold", "id", "the key")]
    own = rows(lake, "information_schema.columns", Wanted.only(table_schema="information_schema"))
    assert {row["table_name"] for row in own} == {"schemata", "tables", "columns"}


def test_only_wanted_relations_are_read(lake: Lake) -> None:
    Path(lake.root, "silver", "broken", "_delta_log").mkdir(parents=True)
    Path(lake.root, "silver", "broken", "_delta_log", f"{0:020}.json").write_text("no json")
    wanted = Wanted.only(table_name="orders")
    assert len(rows(lake, "information_schema.columns", wanted)) == 3


def test_raw_files_that_are_not_there_have_no_columns(lake: Lake) -> None:
    Path(lake.root).parent.joinpath("raw").rmdir()
    assert rows(lake, "information_schema.columns", Wanted.only(table_schema="bronze")) == []


def test_a_relation_with_a_location_is_listed_although_its_schema_has_no_folder(lake: Lake, tmp_path: Path) -> None:
    lake.links[Name("outside", "events")] = Link(str(tmp_path / "lake" / "silver" / "orders"))
    assert "outside" in [row["schema_name"] for row in rows(lake, "information_schema.schemata")]
    found = rows(lake, "information_schema.tables", Wanted.only(table_schema="outside"))
    assert [(row["table_name"], row["storage_path"]) for row in found] == [("events", f"{lake.root}/silver/orders")]
    assert json.dumps([row["column_name"] for row in rows(lake, "information_schema.columns", Wanted.only(table_schema="outside"))]) == '["id", "price", "tags"]'  # fmt: skip
