"""How a model's SQL is written out, and how its table is kept: no Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock import PenstockError
from penstock.api import Lake, connect
from penstock.changes.config import ChangeSource
from penstock.changes.incremental.classify import Keys, Rows, Whole, shape_of
from penstock.changes.query import ChangeModel
from penstock.changes.source import Followed
from penstock.lake.relations import View
from penstock.sql.names import Name

TARGET = Name("gold", "t")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    root: Path = tmp_path_factory.mktemp("lake")
    for name in ("a", "b"):
        columns = {"id": pa.array([1], pa.int64()), "n": pa.array([1], pa.int64()), f"only_{name}": pa.array([1])}
        write_deltalake(str(root / "s" / name), pa.table(columns))
    write_deltalake(str(root / "u" / "a"), pa.table({"id": pa.array([1]), "only_u": pa.array([1])}))
    lake = connect(str(root))
    for name, query in (
        ("v", "select id, n from s.a where n > 1 -- a note"),
        ("w", "with x as (select * from s.v) select * from x"),
    ):
        lake.storage.write(f"s/{name}/_view.json", View(query, ()).to_bytes())
    return lake


def read(lake: Lake, text: str) -> ChangeModel:
    return ChangeModel.read(lake, text, TARGET)


def test_a_view_among_the_followed_stands_for_its_tables(lake: Lake) -> None:
    model = read(lake, "select w.id, b.n from s.w join s.b on w.id = b.id")
    for named, followed in (("s.w", ["s.a"]), (["s.a", "s.w"], ["s.a"]), (["s.b", "s.v"], ["s.b", "s.a"])):
        source = ChangeSource.from_mapping({"unique_key": "id", "cdf_source": named})
        assert [str(name) for name in Followed(lake, source, model, "m").names] == followed
    with pytest.raises(PenstockError, match=r"names s\.b, which the model does not read"):
        Followed(
            lake,
            ChangeSource.from_mapping({"unique_key": "id", "cdf_source": "s.b"}),
            read(lake, "select id from s.w"),
            "m",
        )


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
    assert words(model.bind([f"P{index}" for index in range(len(model.places))])) == expected
    assert "".join(place.name.identifier for place in model.places) == tables


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select 1 from nowhere", "no relation of the lake"),
        ("select 1 from s.nothing", "no such relation"),
        ("select 1 from delta.`/x`", "no relation of the lake"),
        ("select 1 from gold.t", "reads itself"),
        ("with recursive r as (select 1) select * from r", "recursive"),
        ("select from where", "can't be taken apart"),
        ("delete from s.a", "one SELECT"),
        ("from s.a |> where n > 1", "pipes"),
        ("from s.a select distinct id", "begins with FROM"),
    ],
)
def test_refused(lake, text, said):
    with pytest.raises(PenstockError, match=said):
        read(lake, text)


SHAPES = [
    ("select id, n * 2 as d from s.a where n > 1 order by id", Rows),
    ("select id from s.a union all select id from s.b", Rows),
    ("select a.id from s.a join s.b on a.id = b.id cross join s.v", Rows),
    ("select id, e from s.a lateral view explode(array(1, 2)) x as e", Rows),
    ("select a.id, only_b from s.a left join s.b on a.id = b.id", Keys),
    ("select a.id from s.a left outer join s.b on a.id = b.id join s.v on v.id = a.id", Keys),
    ("select a.id from s.a left anti join s.b on a.id = b.id", Keys),
    ("select id, sum(n) as n from s.a group by id having sum(n) > 3", Keys),
    ("select a.n as id, count(*) as c from s.a group by all", Keys),
    ("select id, max(n) over (partition by id) as m from s.a", Keys),
    ("select id from (select *, row_number() over (partition by id order by n) as r from s.a) where r = 1", Keys),
    ("select id from s.a qualify row_number() over (partition by id order by n) = 1", Keys),
    ("select distinct id from s.a", Keys),
    ("select id, count(*) filter (where n > 1) over (partition by id) as c from s.a", Keys),
    ("select id, percentile_cont(0.5) within group (order by n) over (partition by id) as c from s.a", Keys),
    ("select upper(a.id) as id, count(*) as c from s.a group by upper(id)", Keys),
    ("select id, count(*) as c from s.a join s.b using (id) group by a.id", Keys),
    ("select a.id, sum(b.n) as n from s.a left join s.b using (id) group by id", Keys),
    ("select a.*, b.n as m, sum(b.n) over (partition by a.id) as t from s.a join s.b on a.n = b.n", Keys),
    # A part of a struct of that name is no column of the subquery; and a subquery in HAVING is one.
    (
        "select only_a.id as id from (select *, row_number() over (partition by id order by n) as r from s.a) where r = 1",
        Whole,
    ),
    ("select id, sum(n) as n from s.a group by id having sum(n) > (select max(n) from s.b)", Whole),
    # The key, or an inner join, depends on what may be missing.
    ("select b.id from s.a left join s.b on a.id = b.id", Whole),
    ("select coalesce(b.id, 0) as id from s.a left join s.b on a.id = b.id", Whole),
    ("select a.id from s.a left join s.b on a.id = b.id join s.v on v.id = b.n", Whole),
    ("select a.id from s.a full join s.b on a.id = b.id", Whole),
    ("select a.id from s.a right join s.b on a.id = b.id", Whole),
    ("select id from s.a where id in (select id from s.b)", Whole),
    ("select id from s.a union select id from s.b", Whole),
    ("select a.id, t.m from s.a join (select id, max(n) as m from s.b group by id) t on t.id = a.id", Whole),
]


@pytest.mark.parametrize(("text", "shape"), SHAPES)
def test_shapes(lake, text, shape):
    assert isinstance(shape_of(read(lake, text), ("id",), "here"), shape)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("select a.id, t.m from s.a join (select id, max(n) as m from s.b group by id) t on t.id = a.id",
         "the subquery t that it reads is aggregated or has DISTINCT"),
        ("with t as (select a.id, b.n from s.a left join s.b on a.id = b.id) select id, sum(n) as n from t group by id",
         "the subquery t that it reads has a LEFT JOIN inside"),
        ("select id, max(r) as r from (select id, rank() over (order by n) as r from s.a) t group by id",
         "the subquery t that it reads has a window function"),
        ("select id, max(n) as n from (select id, n from s.a except select id, n from s.b) t group by id",
         "the subquery t that it reads has EXCEPT"),
        ("select id, max(n) as n from (select id, n from s.a where n in (select n from s.b)) t group by id",
         "the subquery t that it reads is more than projection, filter and inner joins"),
        *((f"select id, count(*) as c from s.a group by {group}", "it has ROLLUP, CUBE or GROUPING SETS")
          for group in ("rollup(id)", "cube(id)", "id, rollup(n)", "grouping sets ((id), (id, n))", "id with rollup")),
    ],
)  # fmt: skip
def test_why_a_model_is_a_whole(lake, text, why):
    assert shape_of(read(lake, text), ("id",), "here") == Whole(why)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("select id from s.a where n > (select any(n > 1) from s.b)", Whole),
        ("select a.id from s.a cross join (select mean(n) as m from s.b)", Whole),
        ("select a.id from s.a cross join (select `mean`(n) filter (where n > 1) as m from s.b)", Whole),
        ("select a.id from s.a cross join (select system.builtin.MEAN (n) as m from s.b)", Whole),
        ("select id, mean(n) as mean from s.a group by id", Keys),
        ("select id, mean(n) over (partition by id) as mean from s.a", Keys),
        ("select id, n as mean from s.a", Rows),
    ],
)
def test_aggregates_that_spark_names(lake, text, shape):
    assert isinstance(shape_of(read(lake, text), ("id",), "here", frozenset({"mean", "any", "max"})), shape)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("select id from s.a limit 3", "LIMIT"),
        ("select id from s.a tablesample (3 rows)", "TABLESAMPLE"),
        ("select id, uuid() as u from s.a", r"uuid\(\)"),
        ("select id, now() as u from s.a", r"now\(\)"),
        ("select id, current_date as u from s.a", r"current_date\(\)"),
        ("select id, shuffle(array(n)) as u from s.a", r"shuffle\(\)"),
        ("select id, reflect('java.util.UUID', 'randomUUID') as u from s.a", r"reflect\(\)"),
        ("select id from s.a where n > timestamp 'now'", "'now'"),
        ("select id from s.a where n > cast(' today' as date)", "' today'"),
        ("select id, first(n) ignore nulls as n from s.a", "aggregates without its key"),
        ("select sum(n) as id from s.a", "aggregates without its key"),
        ("select max(id) as id, n from s.a group by n", "aggregates without its key"),
        ("select id, sum(n) over (order by id) as n from s.a", "looks across keys"),
        ("select id = 'A' as id, max(n) over (partition by id = 'a') as m from s.a", "looks across keys"),
        ("select concat('A', id) as id, count(*) as n from s.a group by concat('a', id)", "GROUP BY lacks it"),
        ("select n, count(*) as c from s.a group by n", "no such column"),
        # Another table's column of that name, and a struct's, is another.
        ("select a.id, sum(a.n) over (partition by b.id) as t from s.a join s.b on a.n = b.n", "looks across keys"),
        ("select a.*, sum(a.n) over (partition by b.id) as t from s.a join s.b on a.n = b.n", "looks across keys"),
        ("select id, sum(n) over (partition by only_a.id) as t from s.a", "looks across keys"),
        # Spark groups by the column where a column and an alias have one name.
        ("select id + 1 as id, sum(n) as n from s.a group by id", "aggregates without its key"),
    ],
)
def test_shapes_that_are_refused(lake, text, said):
    with pytest.raises(PenstockError, match=said):
        shape_of(read(lake, text), ("id",), "here")


@pytest.mark.parametrize(
    ("text", "unique"),
    [
        ("select id, sum(n) as n from s.a group by id", True),
        ("select id, sum(n) as n from s.a group by id, only_a", False),
        ("select id, explode(ns) as e from (select id, collect_list(n) as ns from s.a group by id)", False),
    ],
)
def test_a_grouping_that_makes_the_key_unique(lake, text, unique):
    shape = shape_of(read(lake, text), ("id",), "here")
    assert isinstance(shape, Keys)
    assert shape.core.one_row_a_key is unique


@pytest.mark.parametrize(
    ("text", "place", "expected"),
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
def test_touched_keys(lake, text, place, expected):
    model = read(lake, text)
    shape = shape_of(model, ("id",), "here")
    assert isinstance(shape, Keys)
    bound = ChangeModel(shape.core.touched(place), model.places).bind([f"P{i}" for i in range(len(model.places))])
    assert words(bound) == expected
