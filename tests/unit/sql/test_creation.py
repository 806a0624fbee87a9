"""Tables of (CREATE or ALTER, its parts)."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.sql import creation as sql
from penstock.sql.names import Name
from penstock.sql.statement import read

LOCATED = [
    ("create table s.t as select 1", "create table s.t USING delta LOCATION '/l' as select 1"),
    ("create table s.t using delta as select 1", "create table s.t using delta LOCATION '/l' as select 1"),
    (
        "create or replace table `s`.`t` using delta partitioned by (x) as select 1 as x",
        "create or replace table `s`.`t` using delta LOCATION '/l' partitioned by (x) as select 1 as x",
    ),
    ("create table s.t (a int, b decimal(3,2))", "create table s.t (a int, b decimal(3,2)) USING delta LOCATION '/l'"),
    ("create table s.t location '/own' as select 1", "create table s.t location '/own' as select 1"),
    ("create table s.t shallow clone s.u;", "create table s.t shallow clone s.u LOCATION '/l'"),
]


@pytest.mark.parametrize(("before", "after"), LOCATED)
def test_a_table_is_made_in_its_folder(before: str, after: str) -> None:
    assert sql.with_location(read(before), "/l") == after


def test_only_delta_tables_are_made() -> None:
    with pytest.raises(PenstockError, match="Delta table, not parquet"):
        sql.with_location(read("create table s.t using parquet as select 1"), "/l")


VIEWS = [
    ("create view s.v as select 1 as a", sql.ViewText("select 1 as a", (), None)),
    (
        "create or replace view s.v (a comment 'x, (y', b) comment 'hey' as\nselect 1, 2;",
        sql.ViewText("select 1, 2", ("a", "b"), "hey"),
    ),
    ("create view s.v as with c as (select 1 as a) select * from c", None),
]


@pytest.mark.parametrize(("text", "expected"), VIEWS)
def test_create_view_is_taken_apart(text: str, expected: sql.ViewText | None) -> None:
    expected = expected or sql.ViewText("with c as (select 1 as a) select * from c", (), None)
    assert sql.view_text(read(text)) == expected


def test_the_text_and_the_string_after_words() -> None:
    assert Name.parse(sql.text_after(read("alter table s.t rename to s.`u v`"), "RENAME", "TO")) == Name("s", "u v")
    assert sql.string_after(read("create table s.t location '/own' as select 1"), "LOCATION") == "/own"
