"""The affected keys of a model, from its text alone: no Spark."""

from __future__ import annotations

import pytest

from penstock.api import Lake
from penstock.changes.incremental.classify import classify
from penstock.changes.incremental.way import Keys
from penstock.changes.query import ChangeQuery
from penstock.sql.names import Name


def read(lake: Lake, text: str) -> ChangeQuery:
    return ChangeQuery.read(lake, text, Name("gold", "t"))


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "unique"),
    [
        ("select id, sum(n) as n from s.a group by id", True),
        ("select id, sum(n) as n from s.a group by id, only_a", False),
        ("select id, explode(ns) as e from (select id, collect_list(n) as ns from s.a group by id)", False),
    ],
)
def test_a_grouping_that_makes_the_key_unique(lake, text, unique):
    way = classify(read(lake, text), ("id",), "here")
    assert isinstance(way, Keys)
    assert way.affected.one_row_a_key is unique


@pytest.mark.parametrize(
    ("text", "number", "expected"),
    [
        ("select a.id, sum(a.n) as n from s.a a where a.limit > 5 group by a.id", 0,
         "select a.id from P0 a where a.limit > 5"),
        ("select o.*, c.n as m from s.a o join s.v c on o.n = c.id left join s.b r on r.n = o.id", 0,
         "select `o`.`id` from P0 o join ( select id, n from P1 as `a` where n > 1 ) c on o.n = c.id left join P2 r on r.n = o.id"),
        ("select a.id, b.n from s.a a left join s.b b on a.id = b.id where b.id is null", 0,
         "select a.id from P0 a left join P1 b on a.id = b.id where b.id is null"),
        ("select a.id, b.n from s.a a left join s.b b on a.id = b.id where b.id is null", 1,
         "select a.id from P0 a inner join P1 b on a.id = b.id"),
        ("select a.id from s.a a cross join s.v left anti join s.b b on a.id = b.id where a.n > 1", 2,
         "select a.id from P0 a cross join ( select id, n from P1 as `a` where n > 1 ) as `v` left semi join P2 b on a.id = b.id where a.n > 1"),
        ("select n + 1 as id, sum(only_a) as x from s.a where n > 2 group by 1 having sum(only_a) > 1", 0,
         "select n + 1 as id from P0 as `a` where n > 2"),
        ("select k as id, m from (select *, id as k, max(n) over (partition by id) as m from s.a) where m > 3", 0,
         "select id as k from P0 as `a`"),
    ],
)  # fmt: skip
def test_touched_keys(lake, text, number, expected):
    query = read(lake, text)
    way = classify(query, ("id",), "here")
    assert isinstance(way, Keys)
    bound = query.with_text(way.affected.touched(number)).bind([f"P{i}" for i in range(len(query.reads))])
    assert words(bound) == expected
