"""Whether the text of a SELECT keeps `source_file_uri`, by which the earlier rows of a rewritten file are found."""

from __future__ import annotations

import pytest

from penstock.files.query import FileQuery

KEPT = [
    "select id, source_file_uri from @data",
    "select id, SOURCE_FILE_URI from @data",
    "select *, source_file_uri from @data",
    "select d.id, d.source_file_uri as source_file_uri from @data d join names n on n.id = d.id",
    "with d as (select *, source_file_uri from @data) select * from (select * from d where id > 1) e",
    "select source_file_uri, count(*) as n from @data group by source_file_uri",
    "select id, upper(source_file_uri) as upper_uri, source_file_uri from @data",
    "select id, source_file_uri from @data where a union all select id, source_file_uri from @data where b",
    "with d as (select *, source_file_uri from @data) (select * from d) union all (select * from d)",
    "select id from @data union all select id + 1 from @data",
    "select id, 'source_file_uri' as text from @data",
    "select id from @data",
]
CHANGED = [
    ("select id, upper(source_file_uri) as source_file_uri from @data", "UPPER(source_file_uri) AS source_file_uri"),
    ("select id, path as Source_File_Uri from @data", "path AS Source_File_Uri"),
    ("select id, max(source_file_uri) source_file_uri from @data group by id", "MAX(source_file_uri)"),
    ("select id, null as source_file_uri from @data", "NULL AS source_file_uri"),
    ("with d as (select lower(source_file_uri) as source_file_uri from @data) select * from d", "LOWER"),
    ("select * from (select cast(source_file_uri as string) as source_file_uri from @data)", "CAST"),
    ("select * from (select id, path from @data) as t(id, source_file_uri)", "the column list of t"),
    ("with t(id, source_file_uri) as (select id, path from @data) select * from t", "the column list of t"),
    ("select id, source_file_uri from @data union all select id, 'x' from @data", "a UNION"),
    ("select source_file_uri, id from @data union all select id, source_file_uri from @data", "a UNION"),
    ("select *, source_file_uri from @data union all select *, path from @data", "a UNION"),
    (
        "select id, source_file_uri from @data union (select 1, 'x' union all select id, source_file_uri from @data)",
        "a UNION",
    ),
]


@pytest.mark.parametrize("select", KEPT)
def test_a_select_that_takes_it_as_it_is(select: str) -> None:
    assert FileQuery.read(select).changes_file_uri is None


@pytest.mark.parametrize(("select", "part"), CHANGED)
def test_a_select_that_computes_it_from_something_else(select: str, part: str) -> None:
    assert part in (FileQuery.read(select).changes_file_uri or "")


def test_a_union_that_cannot_be_parsed_is_not_trusted() -> None:
    select = "select v:a.b::int as id, source_file_uri from @data"
    assert FileQuery.read(select).changes_file_uri is None
    assert "UNION" in (FileQuery.read(f"{select} union all {select}").changes_file_uri or "")
