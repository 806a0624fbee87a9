"""Tables of (SQL, what is made of it)."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.sql import statement as sql
from penstock.sql.names import Name

READ = [
    ("select a.b from s.t", ("SELECT", None, None)),
    ("/* c */ create or replace table `s`.`t` using delta as select 1", ("CREATE", "TABLE", "s.t")),
    ("with x as (select 1) insert into s.t select * from x", ("INSERT", None, "s.t")),
    ("with x as (select 1) select * from x", ("SELECT", None, None)),
    ("from s.a insert into s.t select *", ("INSERT", None, "s.t")),
    ("merge into s.t as d using x on d.a = x.a when matched then delete", ("MERGE", None, "s.t")),
    ("merge with schema evolution into s.t using x on true when matched then delete", ("MERGE", "SCHEMA", "s.t")),
    ("insert overwrite table s.t partition (a) select 1", ("INSERT", "TABLE", "s.t")),
    ("update s.t set a = 1", ("UPDATE", None, "s.t")),
    ("delete from s.t where id = 7", ("DELETE", None, "s.t")),
    ("truncate table s.t", ("TRUNCATE", "TABLE", "s.t")),
    ("optimize s.t zorder by (a)", ("OPTIMIZE", None, "s.t")),
    ("vacuum s.t", ("VACUUM", None, "s.t")),
    ("restore table s.t to version as of 3", ("RESTORE", "TABLE", "s.t")),
    ("drop table if exists s.t", ("DROP", "TABLE", "s.t")),
    ("drop view s.t", ("DROP", "VIEW", "s.t")),
    ("alter table s.t rename to s.u", ("ALTER", "TABLE", "s.t")),
    ("describe history s.t", ("DESCRIBE", None, None)),
    ("show tblproperties s.t", ("SHOW", None, None)),
    ("insert into spark_catalog.s.t select 1", ("INSERT", None, "s.t")),
    ("insert into delta.`/some/path` select 1", ("INSERT", None, None)),
    ("insert into other.s.t select 1", ("INSERT", None, None)),
    ("drop table other.silver.orders", ("DROP", "TABLE", None)),
    ("create view other.x.y as select 1", ("CREATE", "VIEW", None)),
    ("alter table other.a.b rename to s.t", ("ALTER", "TABLE", None)),
    ("create table other.a.b.c (id int)", ("CREATE", "TABLE", None)),
    ("drop schema other.gold cascade", ("DROP", "SCHEMA", None)),
    ("create schema other.gold", ("CREATE", "SCHEMA", None)),
    ("drop function s.f", ("DROP", "FUNCTION", None)),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_a_statement_is_read(text: str, expected: tuple[str, str | None, str | None]) -> None:
    statement = sql.read(text)
    target = None if statement.target is None else str(statement.target)
    assert (statement.verb, statement.object, target) == expected
    assert statement.is_query == (expected[0] in ("SELECT", "DESCRIBE", "SHOW"))
    assert statement.changes_data != statement.is_query


SCHEMAS = [
    ("create schema if not exists gold", "gold"),
    ("drop schema gold cascade", "gold"),
    ("drop database Spark_Catalog.`gold`", "gold"),
    ("drop schema other.gold cascade", None),
    ("create namespace a.b.c", None),
    ("drop table gold", None),
]


@pytest.mark.parametrize(("text", "schema"), SCHEMAS)
def test_a_schema_of_another_catalog_is_not_the_lakes(text: str, schema: str | None) -> None:
    assert sql.read(text).schema == schema


SHOWN = [
    ("show tables in silver", sql.Shown(relations_of="silver")),
    ("show tables from spark_catalog.silver like 'a*'", sql.Shown(relations_of="silver")),
    ("show tables in other.silver", sql.Shown()),
    ("show schemas", sql.Shown(schemas=True)),
    ("show schemas in spark_catalog", sql.Shown(schemas=True)),
    ("show schemas in other", sql.Shown()),
]


@pytest.mark.parametrize(("text", "expected"), SHOWN)
def test_what_a_show_lists(text: str, expected: sql.Shown) -> None:
    assert sql.shown(text) == expected


OWN_WORDS = [
    ("create table s.t as select 'Berlin' as location, `location` from x", ("OR",), ()),
    ("create or replace table s.t using delta location 'p' as select 1 as location", ("OR", "REPLACE"), ("LOCATION",)),
    ("create table s.t (location string) using delta", (), ()),
    ("create table s.t shallow clone s.u version as of 3 location 'p'", (), ("VERSION", "LOCATION")),
    ("create or replace view s.v as select 1 where exists (select 1)", ("REPLACE",), ()),
    ("create view if not exists s.v as select 1", ("EXISTS",), ()),
    ("drop table if exists s.t", ("EXISTS",), ()),
    ("drop schema s cascade", (), ("CASCADE",)),
    ("drop schema `cascade`", (), ()),
    ("alter table s.t rename to s.`column`", (), ("RENAME", "TO")),
]


@pytest.mark.parametrize(("text", "before", "after"), OWN_WORDS)
def test_a_statements_own_words(text: str, before: tuple[str, ...], after: tuple[str, ...]) -> None:
    """Those of its query are not: a column may be called `location`."""
    statement = sql.read(text)
    known = {"REPLACE", "EXISTS", "LOCATION", "CASCADE", "RENAME", "TO", "VERSION", "COLUMN"}
    assert set(statement.before) & known == set(before) & known
    assert set(statement.after) & known == set(after)


def test_a_temporary_view_changes_nothing_on_disk() -> None:
    statement = sql.read("create or replace temporary view x as select 1")
    assert statement.temporary
    assert not statement.changes_data


def test_a_text_that_cannot_be_read_is_passed_on() -> None:
    assert sql.read("select 'unclosed").verb == "SELECT"
    assert sql.mentioned("select 'unclosed from s.t") == set()


MENTIONED = [
    ("select * from s.t", {("s", "t")}),
    ("select * from `S`.`T` x join u.v on x.a = v.b", {("s", "t"), ("u", "v"), ("x", "a"), ("v", "b")}),
    ("select 's.t' from a.b -- c.d\n/* e.f */", {("a", "b")}),
    ("select * from cat.s.t", {("cat", "s")}),
    ("select s.t.id, x.a.b.c from spark_catalog.s.t join cat.s.u", {("s", "t"), ("x", "a"), ("cat", "s")}),
    ("select f(x).a.b from s.t", {(")", "a"), ("s", "t")}),
    ("select 1.5, x.* from s.t x", {("s", "t")}),
    ("optimize s.t", {("s", "t")}),
]


@pytest.mark.parametrize(("text", "expected"), MENTIONED)
def test_the_names_in_a_text(text: str, expected: set[tuple[str, str]]) -> None:
    assert sql.mentioned(text) == expected


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
    assert sql.with_location(sql.read(before), "/l") == after


def test_only_delta_tables_are_made() -> None:
    with pytest.raises(PenstockError, match="Delta table, not parquet"):
        sql.with_location(sql.read("create table s.t using parquet as select 1"), "/l")


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
    assert sql.view_text(sql.read(text)) == expected


def test_the_text_and_the_string_after_words() -> None:
    assert Name.parse(sql.text_after(sql.read("alter table s.t rename to s.`u v`"), "RENAME", "TO")) == Name("s", "u v")
    assert sql.string_after(sql.read("create table s.t location '/own' as select 1"), "LOCATION") == "/own"
