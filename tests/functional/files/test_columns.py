"""Files whose SELECT has other types, or other fields, than the table."""

from __future__ import annotations

import pytest

from penstock import PenstockError

INTS = "select id, n from @data"
HALVES = "select id, n + 0.5d as n from @data"
SAID = "n is double in the model and bigint in the table: fractions are cut off"


def columns(landing) -> dict[str, str]:
    return {column.name: column.type for column in landing.lake.columns(landing.name)}


def two_more(landing) -> None:
    for id in (2, 3):
        landing.json(f"{id}.json", {"id": id, "n": id})


@pytest.mark.parametrize("policy", ["ignore", "append_new_columns"])
def test_a_lossy_cast_is_warned_about_once(landing, policy):
    landing.json("1.json", {"id": 1, "n": 1})
    landing.ingest(INTS)
    two_more(landing)
    report = landing.ingest(HALVES, on_schema_change=policy, max_files_per_trigger=1)
    assert len(report.batches) == 2
    (warning,) = report.warnings
    assert SAID in warning
    assert landing.rows() == [(1, 1), (2, 2), (3, 3)]
    assert landing.ingest(HALVES, on_schema_change=policy).warnings == []


def test_a_lossy_cast_fails(landing):
    landing.json("1.json", {"id": 1, "n": 1})
    landing.ingest(INTS)
    two_more(landing)
    with pytest.raises(PenstockError, match=r"of another type: n \(double, in the table bigint\)"):
        landing.ingest(HALVES, on_schema_change="fail")
    assert landing.rows() == [(1, 1)]


def test_sync_takes_the_type(landing):
    landing.json("1.json", {"id": 1, "n": 1})
    landing.ingest(INTS)
    two_more(landing)
    report = landing.ingest(HALVES, on_schema_change="sync_all_columns", max_files_per_trigger=1)
    (warning,) = report.warnings
    assert "n was bigint and becomes double: digits are rounded off" in warning
    assert landing.rows() == [(1, 1.0), (2, 2.5), (3, 3.5)]
    landing.json("4.json", {"id": 4, "n": 4})
    report = landing.ingest(INTS, on_schema_change="sync_all_columns")
    assert "n was double and becomes bigint: fractions are cut off" in report.warnings[0]
    assert landing.rows() == [(1, 1), (2, 2), (3, 3), (4, 4)]


def test_what_fits_is_silent(landing):
    landing.json("1.json", {"id": 1, "n": 1})
    landing.ingest(INTS)
    two_more(landing)
    assert landing.ingest("select id, cast(n as int) as n from @data").warnings == []


def gained(landing) -> None:
    landing.json("1.json", {"id": 1, "p": {"a": 1}, "l": [{"x": 1}]})
    landing.ingest(on_schema_change="append_new_columns")
    landing.json("2.json", {"id": 2, "p": {"a": 2, "b": {"c": "new"}}, "l": [{"y": 2, "x": 3}]})


def test_fields_that_a_struct_gains_are_added(landing):
    gained(landing)
    report = landing.ingest(on_schema_change="append_new_columns")
    assert report.warnings == []
    assert columns(landing)["p"] == "struct<a:bigint,b:struct<c:string>>"
    assert columns(landing)["l"] == "array<struct<x:bigint,y:bigint>>"
    assert landing.rows("id, p.a, p.b.c, l[0].x, l[0].y") == [(1, 1, None, 1, None), (2, 2, "new", 3, 2)]
    landing.json("3.json", {"id": 3, "p": {"a": 3}})
    landing.ingest(on_schema_change="append_new_columns")
    assert landing.rows("id, p.b.c")[2] == (3, None)


def test_fields_that_a_struct_gains_fail(landing):
    gained(landing)
    with pytest.raises(PenstockError, match=r"new: (p\.b, l\.element\.y|l\.element\.y, p\.b)"):
        landing.ingest(on_schema_change="fail")
    assert landing.rows("id") == [(1,)]


def test_fields_of_the_select_that_the_table_lacks(landing):
    landing.json("1.json", {"id": 1})
    landing.ingest("select id, named_struct('a', id, 'b', -id) as s from @data")
    landing.json("2.json", {"id": 2})
    turned = "select id, named_struct('new', 'x', 'b', -id, 'a', id) as s from @data"
    (warning,) = landing.ingest(turned).warnings
    assert "s.new (string) is not in the table: its values are not stored" in warning
    assert landing.rows("id, s.a, s.b") == [(1, 1, -1), (2, 2, -2)], "fields go by name"
    landing.json("3.json", {"id": 3})
    landing.ingest(turned, on_schema_change="sync_all_columns")
    assert landing.rows("id, s.a, s.b, s.new") == [(1, 1, -1, None), (2, 2, -2, None), (3, 3, -3, "x")]


def test_what_can_t_be_cast_is_named(landing):
    landing.json("1.json", {"id": 1, "n": 1})
    landing.ingest(INTS)
    two_more(landing)
    for policy in ("ignore", "sync_all_columns"):
        with pytest.raises(PenstockError, match=r"n is array<bigint> in the model and bigint in the table"):
            landing.ingest("select id, array(n) as n from @data", on_schema_change=policy)
    assert landing.rows() == [(1, 1)]
