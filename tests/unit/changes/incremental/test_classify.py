"""The way in which a model's table is kept, from its text alone: no Spark."""

from __future__ import annotations

import pytest

from penstock import PenstockError
from penstock.api import Lake
from penstock.changes.incremental.classify import classify
from penstock.changes.incremental.way import Keys, Rows, Whole
from penstock.changes.query import ChangeQuery
from penstock.sql.names import Name


def read(lake: Lake, text: str) -> ChangeQuery:
    return ChangeQuery.read(lake, text, Name("gold", "t"))


WAYS = [
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


@pytest.mark.parametrize(("text", "way"), WAYS)
def test_ways(lake, text, way):
    assert isinstance(classify(read(lake, text), ("id",), "here"), way)


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
    assert classify(read(lake, text), ("id",), "here") == Whole(why)


@pytest.mark.parametrize(
    ("text", "way"),
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
def test_aggregates_that_spark_names(lake, text, way):
    assert isinstance(classify(read(lake, text), ("id",), "here", frozenset({"mean", "any", "max"})), way)


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
def test_models_that_are_refused(lake, text, said):
    with pytest.raises(PenstockError, match=said):
        classify(read(lake, text), ("id",), "here")
