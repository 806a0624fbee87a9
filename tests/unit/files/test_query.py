from __future__ import annotations

import pytest

from penstock import PenstockError
from penstock.files import FileQuery


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("select * from @data", "select * from landed"),
        (
            "select '@data' from @DATA -- @data\n where `@data` > 1 /* #IF */;",
            "select '@data' from landed -- @data\n where `@data` > 1 /* #IF */",
        ),
        (
            "with a as (select * from @data d) select a.x from a join s.t on @data.id = 1",
            "with a as (select * from landed d) select a.x from a join s.t on landed.id = 1",
        ),
        ("from @data select id", "from landed select id"),
        ("select x, '#IF', r'\\' from @data", "select x, '#IF', r'\\' from landed"),
    ],
)
def test_data_is_bound_and_the_rest_is_left_alone(before, after):
    assert FileQuery.read(before).bind("landed") == after


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        ("#IF x\nselect * from @data", 1, 1, "#IF is preprocessor syntax"),
        ("select *\nfrom @data\n#DECLARE y", 3, 1, "#DECLARE is preprocessor"),
        ("select #FOO from @data", 1, 8, "#FOO"),
        ("select * from @data\n  join @other", 2, 8, "@other is not known"),
        ("select 1;\nselect * from @data", 2, 1, "second statement"),
        ("insert into x select * from @data", 1, 1, "INSERT"),
        ("with a as (select 1) insert into x select * from @data", 1, 1, "INSERT"),
        ("delete from x", 1, 1, "DELETE"),
        ("declare x int", 1, 1, "scripting"),
    ],
)
def test_what_is_not_one_select_is_rejected_with_its_position(text, line, column, says):
    with pytest.raises(PenstockError, match=f"Line {line}, column {column}: .*{says}"):
        FileQuery.read(text)


def test_a_model_reads_data():
    with pytest.raises(PenstockError, match="does not read @data"):
        FileQuery.read("select 1")


@pytest.mark.parametrize(
    ("text", "across"),
    [
        ("select id, upper(name) from @data where x > 1", None),
        ("select d.id, r.name from @data d join s.r r on r.id = d.id", None),
        ("select explode(items) from @data", None),
        ("select count(*) from @data", "the aggregate"),
        ("select id from @data group by id", "GROUP BY"),
        ("select distinct id from @data", "DISTINCT"),
        ("select row_number() over (order by id) from @data", "a window function"),
        ("select id from @data limit 3", "LIMIT"),
    ],
)
def test_what_looks_across_rows_is_named(text, across):
    found = FileQuery.read(text).across_rows
    assert found == across or (across is not None and found is not None and found.startswith(across))


def test_virtual_columns_are_those_named():
    assert FileQuery.read("select *, Source_File_URI from @data where 'source_file_length' = x").virtual == (
        "source_file_uri",
    )


def test_a_virtual_column_that_the_star_brings_too_is_there_once():
    model = FileQuery.read("select *, source_file_uri from @data")
    assert model.once("q", ["id", "source_file_uri", "source_file_uri"]) == (
        "select `id`, `source_file_uri` from (\nq\n) as penstock_rows(`id`, `source_file_uri`, `source_file_uri 2`)"
    )
    assert model.once("q", ["id", "source_file_uri"]) is None
