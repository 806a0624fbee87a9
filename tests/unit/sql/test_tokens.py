"""Tables of (SQL, the names in it)."""

from __future__ import annotations

import pytest

from penstock.sql.tokens import mentioned

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
    assert mentioned(text) == expected


def test_a_text_that_cannot_be_read_names_nothing() -> None:
    assert mentioned("select 'unclosed from s.t") == set()
