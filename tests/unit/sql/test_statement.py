"""Tables of (SQL, what is read from it)."""

from __future__ import annotations

import pytest

from penstock.sql import statement as sql

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
