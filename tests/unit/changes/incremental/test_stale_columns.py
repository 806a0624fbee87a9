"""Which other columns of a table make rows that stayed read otherwise: from the text alone."""

from __future__ import annotations

import pytest

from penstock.changes.incremental.stale_columns import ColumnsRead
from penstock.changes.query import PLACEHOLDER, ChangeQuery
from penstock.changes.source_log import SourceChanges

OLD = (("id", "bigint"), ("n", "int"), ("v", "string"))
MORE = (*OLD, ("extra", "string"))
LESS = OLD[:2]
WIDER = (OLD[0], ("n", "double"), OLD[2])
TURNED = OLD[::-1]


def stale(text: str, after: tuple[tuple[str, str], ...], ours: tuple[str, ...] = ("id",)) -> bool:
    query = ChangeQuery(text.replace("{a}", f"{PLACEHOLDER}0 as a"), ())
    return ColumnsRead(query, "m").why_stale(SourceChanges((), OLD, after), ours) is not None


@pytest.mark.parametrize(
    "text",
    ["select id, v from {a}", "select *  from {a}", "select a.* from {a}", "select * except (n) from {a}",
     "select id, count(*) as c from {a} group by id", "select id from (select * from {a}) as b"],
)  # fmt: skip
def test_another_column_is_no_matter(text):
    assert not stale(text, MORE)
    assert not stale(text, OLD)
    assert not stale(text, TURNED)


@pytest.mark.parametrize(
    "text",
    ["select id, struct(*) as row from {a}", "select id, struct(a.*) as row from {a}", "select id, hash(*) as h from {a}",
     "select id, count(a.*) as c from {a} group by id", "select * from {a} union all select * from b",
     "select id, count(*) from (select distinct * from {a}) group by id", "select * from {a} natural join b",
     "select x from (select * from {a}) as c(x, y, z)"],
)  # fmt: skip
def test_a_model_computes_with_all_columns(text):
    assert stale(text, MORE)
    assert stale(text, TURNED)
    assert not stale(text, OLD)


def test_a_column_matters_where_it_is_read():
    assert stale("select id, n from {a}", WIDER)
    assert stale("select * from {a}", WIDER)
    assert not stale("select id, v from {a}", WIDER)
    assert stale("select id, upper(v) as loud from {a}", LESS)
    assert not stale("select id, n from {a}", LESS)
    assert stale("select id, upper(extra) as loud from {a}", MORE)
    assert stale("select * from {a}", MORE, ("id", "extra"))
    assert not stale("select id from {a}", MORE, ("id", "extra"))
