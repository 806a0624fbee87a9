"""The SELECT in which a model's rows meet, and the tables of its columns: no Spark."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from penstock.changes.incremental.column_scope import ColumnScope
from penstock.changes.incremental.keyed_select import KeysUnknown, descend
from penstock.changes.query import PLACEHOLDER, ChangeQuery, TableRead
from penstock.sql.names import Name

A, B = f"{PLACEHOLDER}0 as a", f"{PLACEHOLDER}1 as b"
READS = (
    TableRead(Name("s", "a"), "/s/a", ("id", "n", "info")),
    TableRead(Name("s", "b"), "/s/b", ("id", "m")),
)


@pytest.mark.parametrize(
    ("text", "depth", "keys", "multiplies"),
    [
        ("select id from a", 0, ("id",), False),
        (
            "select k as id from (select id as k, max(n) over (partition by id) as m from a) where m > 1",
            1,
            ("k",),
            False,
        ),
        ("select * from (select * from (select id from a))", 2, ("id",), False),
        ("select id, explode(ns) from (select id, collect_list(n) as ns from a group by id)", 1, ("id",), True),
        # A key that is computed, or a subquery whose columns get other names.
        ("select k + 1 as id from (select id as k from a)", 0, ("id",), False),
        ("select id from (select n from a) as t(id)", 0, ("id",), False),
        ("select t.x.id from (select id, x from a) t", 0, ("id",), False),
    ],
)
def test_descend(text: str, depth: int, keys: tuple[str, ...], multiplies: bool) -> None:
    found = descend(parse_one(text, read="spark"), ("ID",))
    assert (found.depth, found.keys, found.multiplies) == (depth, keys, multiplies)


def test_a_union_has_no_such_select() -> None:
    with pytest.raises(KeysUnknown, match="it is a UNION"):
        descend(parse_one("select id from a union select id from b", read="spark"), ("id",))


@pytest.mark.parametrize(
    ("text", "spelled"),
    [
        (f"select a.id, n, m, upper(A.N) from {A} join {B} on a.n = b.m",
         ["leaf_0_id", "leaf_0_n", "leaf_1_m", "upper(leaf_0_n)"]),
        # A column of two tables, and a field of a struct, belong to no single table.
        (f"select id, info.id from {A} join {B} on a.n = b.m", ["id", "info.id"]),
        (f"select id, a.id, b.id from {A} join {B} using (id)", ["id", "id", "id"]),
        (f"select id, a.id, b.id from {A} left join {B} using (id)", ["leaf_0_id", "leaf_0_id", "leaf_1_id"]),
    ],
)  # fmt: skip
def test_columns_have_the_names_of_their_tables(text: str, spelled: list[str]) -> None:
    keyed = descend(parse_one(text, read="spark"), ())
    scope = ColumnScope.of(ChangeQuery(text, READS), keyed)
    assert [scope.spelled(item.unalias()) for item in keyed.select.expressions] == spelled


def test_letter_case_matters_in_texts_alone() -> None:
    keyed = descend(parse_one(f"select N = 'A', n = 'A', n = 'a' from {A}", read="spark"), ())
    scope = ColumnScope.of(ChangeQuery("", READS), keyed)
    first, second, third = (scope.spelled(item) for item in keyed.select.expressions)
    assert first == second != third
