"""Weights carried through a model's SELECT: no Spark."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from penstock.changes.incremental.carry import carrying


@pytest.mark.parametrize(
    ("text", "carried"),
    [
        ("select a from t", "select a, w from t"),
        ("select a -- the key\nfrom t as x where a > 0", "select a, w -- the key\nfrom t as x where a > 0"),
        ("select * from t", "select * from t"),
        ("select x.*, 1 as one from t x", "select x.*, 1 as one from t x"),
        ("select * except (b) from t", "select * except (b) from t"),
        ("select a is distinct from b as d from t", "select a is distinct from b as d, w from t"),
        ("select extract(year from d) y, trim(both from s) s from t", "select extract(year from d) y, trim(both from s) s, w from t"),
        ("select a from (select a, b from t) as x where b", "select a, w from (select a, b, w from t) as x where b"),
        ("select a from (select * from (select a from t) y) x", "select a, w from (select * from (select a, w from t) y) x"),
        ("select explode(list) as item from t", "select explode(list) as item, w from t"),
    ],
)  # fmt: skip
def test_chains(text: str, carried: str) -> None:
    assert carrying(text, parse_one(text, read="spark"), "w") == carried


@pytest.mark.parametrize(
    "text",
    [
        "select to_json(struct(*)) as j from t",
        "select id, info.* from t",
        "select id, info.* from t as x",
        "select a from t where hash(*) > 0",
        "select x.k from t as x(k)",
        "select k from (select a from t) as x(k)",
        "select a from t join u on t.a = u.a",
        "select a from t, u",
        "select a from t union all select a from u",
        "select item from t lateral view explode(list) as item",
        "from t select a",
        "select 1 as a",
    ],
)
def test_more_than_a_chain(text: str) -> None:
    assert carrying(text, parse_one(text, read="spark"), "w") is None
