"""From one type to another: the verdict for each pair, and the SQL that takes a value there."""

import pytest

from penstock.sql.casts import Verdict, changes, convert, effect, merged, parse, verdict

KEPT, CHECKED, LOSSY, REFUSED = Verdict.LOSSLESS, Verdict.CHECKED, Verdict.LOSSY, Verdict.REFUSED


@pytest.mark.parametrize(
    ("query_type", "table_type", "expected"),
    [
        ("int", "int", KEPT),
        ("integer", "INT", KEPT),
        ("int", "bigint", KEPT),
        ("bigint", "int", CHECKED),
        ("int", "double", KEPT),
        ("int", "float", LOSSY),
        ("smallint", "float", KEPT),
        ("bigint", "double", LOSSY),
        ("float", "double", KEPT),
        ("double", "float", LOSSY),
        ("double", "int", LOSSY),
        ("double", "decimal(38,18)", LOSSY),
        ("decimal(10,2)", "decimal(12,4)", KEPT),
        ("decimal(10,2)", "decimal(12,2)", KEPT),
        ("decimal(10,2)", "decimal(10,3)", CHECKED),
        ("decimal(10,2)", "decimal(10,1)", LOSSY),
        ("decimal(9,0)", "int", KEPT),
        ("decimal(10,0)", "int", CHECKED),
        ("decimal(10,2)", "bigint", LOSSY),
        ("int", "decimal(12,2)", KEPT),
        ("int", "decimal(11,2)", CHECKED),
        ("bigint", "decimal(19,0)", KEPT),
        ("decimal(15,3)", "double", KEPT),
        ("decimal(16,3)", "double", LOSSY),
        ("timestamp", "date", LOSSY),
        ("date", "timestamp", KEPT),
        ("timestamp", "timestamp_ntz", LOSSY),
        ("timestamp_ntz", "timestamp", LOSSY),
        ("string", "int", LOSSY),
        ("int", "string", KEPT),
        ("timestamp", "string", LOSSY),
        ("binary", "string", LOSSY),
        ("string", "varchar(3)", KEPT),
        ("varchar(30)", "char(3)", KEPT),
        ("void", "struct<a:int>", KEPT),
        ("boolean", "int", LOSSY),
        ("boolean", "date", REFUSED),
        ("int", "date", REFUSED),
        ("int", "binary", REFUSED),
        ("string", "struct<a:int>", REFUSED),
        ("array<int>", "map<int,int>", REFUSED),
        ("array<int>", "string", LOSSY),
        ("struct<a:int,b:int>", "struct<B:bigint,A:int>", KEPT),
        ("struct<a:int>", "struct<a:int,b:int>", KEPT),
        ("struct<a:int,b:int>", "struct<a:int>", LOSSY),
        ("array<double>", "array<int>", LOSSY),
        ("map<string,struct<a:bigint>>", "map<string,struct<a:int>>", CHECKED),
        ("map<bigint,int>", "map<string,int>", KEPT),
        ("struct<x:array<struct<a:string>>>", "struct<x:array<struct<a:varchar(9)>>>", KEPT),
        ("interval day to second", "int", LOSSY),
    ],
)
def test_what_becomes_of_values(query_type, table_type, expected):
    assert verdict(parse(query_type), parse(table_type)) is expected


@pytest.mark.parametrize(
    "text",
    [
        "int",
        "decimal(10,2)",
        "interval day to second",
        "array<map<string,struct<a:int>>>",
        "struct<`a-b`:int,`t``ick`:array<decimal(38,18)>,c:varchar(3)>",
        "struct<>",
        "map<struct<a:int>,char(3)>",
    ],
)
def test_a_type_is_taken_apart_and_put_together(text):
    assert str(parse(text)) == text


def test_spaces_do_not_matter():
    assert str(parse("struct<a : int, b: array< decimal(10, 2) >>")) == "struct<a:int,b:array<decimal(10,2)>>"


def test_each_place_is_named():
    found = changes(
        parse("struct<a:array<struct<n:double,added:int>>,m:map<string,date>>"),
        parse("struct<A:array<struct<n:int,old:int>>,m:map<string,timestamp>>"),
        "payload",
    )
    assert [str(change) for change in found] == [
        "payload.A.element.n is double in the model and int in the table",
        "payload.A.element.old (int) is not in the model",
        "payload.A.element.added (int) is not in the table",
        "payload.m.value is date in the model and timestamp in the table",
    ]


@pytest.mark.parametrize(
    ("table_type", "query_type", "expected"),
    [
        ("int", "double", "int"),
        ("struct<a:int>", "struct<b:date,a:double>", "struct<a:int,b:date>"),
        ("array<struct<a:int>>", "array<struct<a:int,b:int>>", "array<struct<a:int,b:int>>"),
        ("map<int,struct<a:int>>", "map<int,struct<c:struct<d:int>>>", "map<int,struct<a:int,c:struct<d:int>>>"),
    ],
)
def test_fields_that_are_new(table_type, query_type, expected):
    assert str(merged(parse(table_type), parse(query_type))) == expected


@pytest.mark.parametrize(
    ("query_type", "table_type", "expected", "bare"),
    [
        ("int", "int", "x", "x"),
        ("string", "varchar(3)", "x", "x"),
        ("double", "int", "cast(x as int)", "x"),
        (
            "struct<b:int,a:int>",
            "struct<a:int,b:bigint,c:date>",
            "if(x is null, null, struct(x.`a` as `a`, cast(x.`b` as bigint) as `b`, cast(null as date) as `c`))",
            "if(x is null, null, struct(x.`a` as `a`, x.`b` as `b`, cast(null as date) as `c`))",
        ),
        (
            "array<array<double>>",
            "array<array<int>>",
            "transform(x, penstock_item_0 -> transform(penstock_item_0, penstock_item_1 -> cast(penstock_item_1 as int)))",
            "x",
        ),
        (
            "map<int,double>",
            "map<string,int>",
            "transform_keys(transform_values(x, (penstock_key_0, penstock_item_0) -> cast(penstock_item_0 as int)), "
            "(penstock_key_0, penstock_item_0) -> cast(penstock_key_0 as string))",
            "x",
        ),
    ],
)
def test_the_sql_that_takes_a_value_there(query_type, table_type, expected, bare):
    assert convert("x", parse(query_type), parse(table_type)) == expected
    assert convert("x", parse(query_type), parse(table_type), cast_plain=False) == bare


@pytest.mark.parametrize(
    ("query_type", "table_type", "expected"),
    [
        ("double", "int", "fractions are cut off"),
        ("decimal(10,2)", "decimal(10,0)", "fractions are rounded"),
        ("decimal(10,2)", "decimal(10,1)", "digits are rounded off"),
        ("bigint", "double", "digits are rounded off"),
        ("bigint", "int", "a value that is too large fails the run"),
        ("timestamp", "date", "the time of day is cut off"),
        ("string", "int", "values are parsed from their text"),
        ("timestamp_ntz", "timestamp", "session's time zone"),
    ],
)
def test_it_is_said_in_words(query_type, table_type, expected):
    assert expected in effect(parse(query_type), parse(table_type))
