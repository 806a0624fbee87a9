"""Which queries are linear, and why others are not: no Spark."""

from __future__ import annotations

import pytest
from sqlglot import parse_one

from penstock.changes.incremental.linear import is_linear, reads_in, why_not_linear
from penstock.changes.query import PLACEHOLDER


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("select a, b + 1 from t where a > 1", ""),
        ("select a from t join u using (a) cross join v", ""),
        ("select a from t union all select a from u", ""),
        ("select a from (select a from t) x lateral view explode(array(1)) y as z", ""),
        ("select a from values (1), (2) as v(a)", ""),
        ("select a from t union select a from u", "has UNION"),
        ("select a from t except select a from u", "has EXCEPT"),
        ("select distinct a from t", "is aggregated or has DISTINCT"),
        ("select max(a) as a from t", "is aggregated"),
        ("select a from t left join u using (a)", "has a LEFT JOIN inside"),
        ("select a from t full outer join u using (a)", "has a FULL OUTER JOIN inside"),
        ("select rank() over (order by a) as r from t", "has a window function"),
        ("select a from t where a in (select a from u)", "is more than projection, filter and inner joins"),
    ],
)
def test_linear(text: str, why: str) -> None:
    tree = parse_one(text, read="spark")
    assert is_linear(tree) == (why == "")
    relation = parse_one(f"select 1 from ({text}) x", read="spark").args["from_"].this
    assert why_not_linear(relation) == (f"the subquery x that it reads {why}" if why else "")


def test_the_table_reads_below_a_node() -> None:
    text = f"select 1 from {PLACEHOLDER}2 as a join (select 1 from {PLACEHOLDER}0 as b) x join other"
    assert sorted(reads_in(parse_one(text, read="spark"))) == [0, 2]
