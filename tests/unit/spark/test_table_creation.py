"""The statements that create a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.delta.layout import Layout
from penstock.lake.folder import LakeFolder
from penstock.spark.table_creation import TableStatement, link_named
from penstock.sql.names import Name
from penstock.sql.statement import read


@pytest.fixture
def lake(tmp_path: Path) -> LakeFolder:
    (tmp_path / "s").mkdir()
    return LakeFolder(str(tmp_path))


def test_a_table_by_a_query(lake: LakeFolder) -> None:
    """Nothing of the query is read but its names: it may hold any words."""
    layout = Layout(partition_by=("day",), comment="it's here")
    made = TableStatement.of_query(lake, Name("s", "t"), "select 'or replace' as day from s.a", layout, "/lake/s/it's")
    rest = (
        "table `s`.`t` using delta location '/lake/s/it\\'s'\n"
        f"{layout.clauses()}\nas\nselect 'or replace' as day from s.a"
    )
    assert made.text == f"create or replace {rest}"
    assert made.create == f"create {rest}"
    assert made.names == {Name("s", "t"), Name("s", "a")}


def test_a_users_statement(lake: LakeFolder) -> None:
    made = TableStatement.of_user(lake, read("create or replace table s.t as select * from s.a"), "/l")
    assert made.text == "create or replace table s.t USING delta LOCATION '/l' as select * from s.a"
    assert made.create.split() == [
        "create",
        "table",
        "s.t",
        "USING",
        "delta",
        "LOCATION",
        "'/l'",
        "as",
        "select",
        "*",
        "from",
        "s.a",
    ]
    assert made.names == {Name("s", "t"), Name("s", "a")}


def test_a_users_plain_create_replaces_nothing(lake: LakeFolder) -> None:
    made = TableStatement.of_user(lake, read("create table s.t as select 1 as id"), "/l")
    assert made.create == made.text


def test_the_location_that_a_user_names(tmp_path: Path) -> None:
    found = link_named(read(f"create table s.t using delta location '{tmp_path}' as select 1 as id"))
    assert found is not None
    assert found.location == str(tmp_path)
    assert link_named(read("create table s.t as select 1 as location")) is None
