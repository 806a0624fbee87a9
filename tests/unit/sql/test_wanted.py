from __future__ import annotations

import logging

import pytest

from penstock.sql.wanted import EVERYTHING, Wanted, wanted_by

FILES = "select * from penstock.files"


def admitted(text: str, table: str = "files") -> list[str]:
    """Which of some rows of a table and status a query can use."""
    schema = "information_schema" if table == "columns" else "penstock"
    wanted = wanted_by(text, schema, table)
    rows = [("a", "ingested"), ("a", "waiting"), ("b", "ingested"), ("b", "waiting")]
    return [f"{name} {status}" for name, status in rows if wanted.admits(table_name=name, status=status)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (f"{FILES} where table_name = 'a'", ["a ingested", "a waiting"]),
        (f"{FILES} where 'A' = table_name and size > 3", ["a ingested", "a waiting"]),
        (f"{FILES} as f where f.table_name in ('a') and (f.status = 'waiting')", ["a waiting"]),
        (f"{FILES} where upper(table_name) = 'A' and status <> 'waiting'", ["a ingested"]),
        (f"{FILES} where status not in ('waiting', 'skipped')", ["a ingested", "b ingested"]),
        (f"{FILES} where penstock.files.status = 'waiting'", ["a waiting", "b waiting"]),
        ("from Penstock.`FILES` select * where table_name = 'b'", ["b ingested", "b waiting"]),
        (f"with f as ({FILES} where status = 'waiting') select count(*) from f where table_name = 'a'", ["a waiting", "b waiting"]),
        (f"create table s.t as {FILES} where table_name = 'a'", ["a ingested", "a waiting"]),
        (f"insert into s.t {FILES} where table_name = 'a'", ["a ingested", "a waiting"]),
        # A row that does not meet the WHERE is in no result of an outer join either.
        ("select * from s.t left join penstock.files f on f.path = t.path where f.status = 'waiting'", ["a waiting", "b waiting"]),
        # Two reads: each row that one of them can use.
        (f"{FILES} where table_name = 'a' and status = 'waiting' union all {FILES} where table_name = 'b'", ["a waiting", "b ingested", "b waiting"]),
    ],
)  # fmt: skip
def test_conditions_on_texts_leave_rows_out(text: str, rows: list[str]) -> None:
    assert admitted(text) == rows


@pytest.mark.parametrize(
    "text",
    [
        f"{FILES} where table_name = 'a' or size = 1",
        f"{FILES} where table_name like 'a%'",
        f"{FILES} where lower(status) <> 'Waiting'",
        f"{FILES} where not (table_name = 'a' and status = 'waiting')",
        f"{FILES}, s.t where table_name = 'a'",
        f"{FILES} lateral view explode(array('b')) as table_name where table_name = 'a'",
        f"{FILES} tablesample (10 rows) where table_name = 'a'",
        f"{FILES} where table_name in (select name from s.t)",
        f"{FILES} where table_name = concat('a', '')",
        f"select * from ({FILES}) where table_name = 'a'",
        f"{FILES} where table_name = 'a' union all {FILES}",
        f"merge into s.t using ({FILES} where table_name = 'a') f on true when matched then delete",
        "table penstock.files",
        "select v:a.b::int from s.t, penstock.files",
        "this is no SQL (",
        "",
    ],
)
def test_everything_is_wanted_if_the_conditions_do_not_tell(text: str) -> None:
    assert len(admitted(text)) == 4


def test_the_columns_of_one_relation_as_dbt_profiler_asks_for_them() -> None:
    text = """
      select
    *
  from `spark_catalog`.INFORMATION_SCHEMA.COLUMNS
  where lower(table_schema) = lower('Silver')
    and lower(table_name) = lower('orders')
  order by ordinal_position asc
    """
    wanted = wanted_by(text, "information_schema", "columns")
    assert wanted.admits(table_schema="silver", table_name="orders")
    assert not wanted.admits(table_schema="gold")
    assert not wanted.admits(table_schema="silver", table_name="items")


def test_a_command_is_read_without_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert wanted_by("optimize penstock.files", "penstock", "files") == EVERYTHING
    assert caplog.records == []


def test_rows_with_given_values() -> None:
    wanted = Wanted.only(table_schema="bronze", table_name="events")
    assert wanted.admits(table_schema="bronze")
    assert not wanted.admits(table_schema="bronze", table_name="x")
