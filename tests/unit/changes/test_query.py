"""How a model's SQL is written out: no Spark."""

from __future__ import annotations

import pytest

from penstock import PenstockError
from penstock.api import Lake
from penstock.changes.config import ChangeSource
from penstock.changes.query import ChangeQuery
from penstock.changes.source import FollowedSources
from penstock.sql.names import Name

TARGET = Name("gold", "t")


def read(lake: Lake, text: str) -> ChangeQuery:
    return ChangeQuery.read(lake, text, TARGET)


def test_a_view_among_the_followed_stands_for_its_tables(lake: Lake) -> None:
    model = read(lake, "select w.id, b.n from s.w join s.b on w.id = b.id")
    for named, followed in (("s.w", ["s.a"]), (["s.a", "s.w"], ["s.a"]), (["s.b", "s.v"], ["s.b", "s.a"])):
        source = ChangeSource.from_mapping({"unique_key": "id", "cdf_source": named})
        assert [str(name) for name in FollowedSources(lake, source, model, "m").names] == followed
    with pytest.raises(PenstockError, match=r"names s\.b, which the model does not read"):
        FollowedSources(
            lake,
            ChangeSource.from_mapping({"unique_key": "id", "cdf_source": "s.b"}),
            read(lake, "select id from s.w"),
            "m",
        )


def test_an_own_table_of_the_lake_has_no_changes(lake: Lake) -> None:
    with pytest.raises(PenstockError, match=r"reads penstock\.files, one of the lake's own tables"):
        read(lake, "select f.path, a.id from penstock.files f join s.a on true")


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("text", "expected", "tables"),
    [
        ("select id from s.a", "select id from P0 as `a`", "a"),
        ("select x.id from s.a x, s.b as y;", "select x.id from P0 x, P1 as y", "ab"),
        ("select s.a.id, a.n from `s`.`a`", "select `a`.id, a.n from P0 as `a`", "a"),
        ("select 's.a' from spark_catalog.s.a -- s.b", "select 's.a' from P0 as `a`", "a"),
        ("select id from s.v", "select id from ( select id, n from P0 as `a` where n > 1 ) as `v`", "a"),
        ("select 1 from s.w", "select 1 from ( select * from ( select * from ( select id, n from P0 as `a` where n > 1 ) as `v` ) as `x` ) as `w`", "a"),
        ("with c as (select id from s.a) select 1 from c join c d on c.id = d.id",
         "select 1 from ( select id from P0 as `a` ) as `c` join ( select id from P1 as `a` ) d on c.id = d.id", "aa"),
        ("with c(k) as (select id from s.a), unused as (select 1 from s.b) select k from c",
         "select k from (select * from ( select id from P0 as `a` ) as `c`(k)) as `c`", "a"),
        ("select 1 from (with c as (select 1 from s.a) select * from c) z",
         "select 1 from (select * from ( select 1 from P0 as `a` ) as `c` ) z", "a"),
        ("select s.a.id, u.a.id, a.n, a.only_u, x.id from s.a join u.a on s.a.id = u.a.id and exists (select a.n from u.a x)",
         "select `penstock_s_a`.id, `penstock_u_a`.id, `penstock_s_a`.n, `penstock_u_a`.only_u, x.id from P0 as "
         "`penstock_s_a` join P1 as `penstock_u_a` on `penstock_s_a`.id = `penstock_u_a`.id and exists (select "
         "`penstock_s_a`.n from P2 x)", "aaa"),
        ("select a.id from s.a union all select a.id from u.a",
         "select `penstock_s_a`.id from P0 as `penstock_s_a` union all select `penstock_u_a`.id from P1 as `penstock_u_a`", "aa"),
        ("select 1 from s.a version as of 3 join s.b using (id)", "select 1 from s.a version as of 3 join P0 as `b` using (id)", "b"),
    ],
)  # fmt: skip
def test_written_out(lake, text, expected, tables):
    model = read(lake, text)
    assert words(model.bind([f"P{index}" for index in range(len(model.reads))])) == expected
    assert "".join(table.name.identifier for table in model.reads) == tables


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select 1 from nowhere", "not a relation of the lake"),
        ("select 1 from s.nothing", "does not exist"),
        ("select 1 from delta.`/x`", "not a relation of the lake"),
        ("select 1 from gold.t", "reads itself"),
        ("with recursive r as (select 1) select * from r", "recursive"),
        ("select from where", "Cannot parse this SQL"),
        ("delete from s.a", "one SELECT"),
        ("from s.a |> where n > 1", "pipes"),
        ("from s.a select distinct id", "begins with FROM"),
    ],
)
def test_refused(lake, text, said):
    with pytest.raises(PenstockError, match=said):
        read(lake, text)
