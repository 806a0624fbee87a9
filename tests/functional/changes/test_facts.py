"""Spark's plan has the last word on how a model is kept: its functions are what Spark takes them for."""

from __future__ import annotations

import pytest

from penstock import PenstockError
from penstock.changes import ChangeSource, merge_changes
from penstock.changes.plan import ChangePlan
from penstock.spark.facts import UNKNOWN, Call, Input, facts
from penstock.sql.names import Name


@pytest.fixture
def c(world):
    world.sql(
        "create table {s}.c {feed} as select id, id % 4 as g, cast(id as int) as n, concat('n', id) as name from range(12)"
    )
    return world


def seen(world, query):
    return facts(world.lake.runner.query(query.format(s=world.schema)))


def test_facts_of_a_query(c):
    c.sql("create view {s}.v as select * from {s}.c where n > 1")
    found = seen(
        c,
        "select g, mean(n) as m, any(n > 3) as some, row_number() over (order by g) as place "
        "from (select *, explode(array(1, 2)) as x from {s}.v) where id in (select id from {s}.c) group by g",
    )
    assert found.known
    assert found.aggregates == (Call("mean", "mean(n)"), Call("any", "any(n > 3)"))
    assert [call.name for call in found.windows] == ["row_number"]
    assert [call.name for call in found.generators] == ["explode"]
    assert found.unstable == ()
    assert found.subqueries == 1
    assert {(read.kind, read.version) for read in found.inputs} == {("delta", 0), ("view", None)}
    (table,) = [read for read in found.inputs if read.kind == "delta"]
    assert table.name.endswith(f"{c.schema}/c")
    (view,) = [read for read in found.inputs if read.kind == "view"]
    assert view.text == f"select * from {c.schema}.c where n > 1"


def test_the_inputs_of_a_query_over_files(c, tmp_path):
    c.lake.runner.spark.range(3).write.json(str(tmp_path / "in"))
    found = facts(c.lake.runner.spark.read.json(str(tmp_path / "in")))
    assert found.inputs == (Input("files", f"file:{tmp_path}/in", text="JsonFileFormat"),)


def test_a_query_without_a_plan_is_unknown(c):
    class Remote:
        pass

    assert facts(Remote()) is UNKNOWN
    assert not UNKNOWN.known


UNSTABLE = [
    "current_date()", "current_date", "curdate()", "now()", "current_timestamp()", "current_timestamp",
    "localtimestamp()", "current_time()", "current_timezone()", "unix_timestamp()", "user()", "user", "current_user()",
    "session_user()", "current_database()", "current_schema()", "current_catalog()", "current_path()", "version()",
    "uuid()", "rand()", "rand(1)", "randn()", "random()", "randstr(3)", "randstr(3, 1)", "uniform(1, 5)",
    "uniform(1, 5, 7)", "shuffle(array(1, 2))", "monotonically_increasing_id()", "spark_partition_id()",
    "input_file_name()", "input_file_block_start()", "reflect('java.lang.Math', 'random')",
    "java_method('java.lang.Math', 'random')", "try_reflect('java.lang.Math', 'random')", "session.unsteady",
    "in_python(1)", "in_sql(1)", "date 'today'", "timestamp 'now'", "system.builtin.now()",
]  # fmt: skip


@pytest.mark.parametrize(
    "select",
    [
        "select id, {call} as x from {{s}}.c",
        "select id, max(n) as m, {call} as x from {{s}}.c group by id",
        "select id, (select max(n) from {{s}}.c) as m, {call} as x from {{s}}.c",
    ],
    ids=["rows", "keys", "whole"],
)
def test_unstable_functions_are_refused_at_the_first_run(c, select):
    spark = c.lake.runner.spark
    spark.sql("declare or replace variable unsteady int default 3")
    spark.udf.register("in_python", lambda x: x, "int")
    spark.sql("create or replace temporary function in_sql(x int) returns timestamp return timestampadd(day, x, now())")
    wrong = []
    for call in UNSTABLE:
        try:
            c.merge(select.format(call=call))
            wrong.append(call)
        except PenstockError as error:
            if "is not deterministic" not in str(error):
                wrong.append(f"{call}: {error}")
    assert wrong == []
    assert c.lake.find(Name.parse(c.target)) is None, "nothing was written"
    assert not c.path().exists(), "not even a plan"


def test_a_sketch_that_throws_dice_is_refused(c):
    with pytest.raises(PenstockError, match=r"is not deterministic.* kll_sketch_agg_bigint"):
        c.merge("select id, kll_sketch_agg_bigint(n) as x from {s}.c group by id")


def test_the_metadata_of_files_is_refused(c, tmp_path):
    c.lake.runner.spark.range(3).write.json(str(tmp_path / "in"))
    assert [str(call) for call in seen(c, "select _metadata.file_path, id from {s}.c").unstable] == [
        "_metadata.file_path"
    ]


def test_functions_in_sql_are_judged_by_their_body(c):
    c.lake.runner.spark.sql("create or replace temporary function plain(x int) returns int return x + 1")
    select = "select id, plain(n) as n from {s}.c"
    c.merge(select)
    c.sql("update {s}.c set n = 50 where id = 1")
    assert c.merge(select).way == "rows"
    c.check(select)


@pytest.mark.parametrize(
    "mean",
    ["mean(n)", "std(n)", "try_sum(n)", "try_avg(n)", "count_if(every(n > 1))", "`mean`(n)", "system.builtin.mean(n)", "MEAN ( n )"],
)  # fmt: skip
def test_an_aggregate_that_only_spark_knows_is_not_taken_for_a_row(c, mean):
    """The table kept a row that a full refresh did not have."""
    mean = mean if "every" not in mean else "cast(some(n > 10) as int)"
    select = f"select c.g, count(*) k from {{s}}.c c cross join (select {mean} m from {{s}}.c) a where c.n > a.m group by c.g"
    c.merge(select, "g")
    c.check(select)
    c.sql("update {s}.c set n = 1000 where id = 0")
    report = c.merge(select, "g")
    c.check(select)
    assert report.way == "whole"
    assert "aggregate" in report.windows[0].whole


def test_a_scalar_subquery_and_a_global_aggregate_that_only_spark_knows(c):
    select = "select id, n from {s}.c where n > (select mean(n) from {s}.c)"
    c.merge(select)
    c.sql("update {s}.c set n = 1000 where id = 0")
    c.merge(select)
    c.check(select)
    with pytest.raises(PenstockError, match=r"aggregates without its key.*there is no GROUP BY"):
        c.merge("select try_sum(n) as id from {s}.c", target=f"{c.schema}.other")
    assert c.lake.find(Name(c.schema, "other")) is None


def test_an_aggregate_in_a_function_of_sql(c):
    c.lake.runner.spark.sql(
        f"create or replace temporary function top() returns int return (select max(n) from {c.schema}.c)"
    )
    select = "select id, n - top() as below from {s}.c"
    c.merge(select)
    c.sql("update {s}.c set n = 1000 where id = 0")
    assert c.merge(select).way == "whole"
    c.check(select)


def test_a_plan_that_was_made_by_the_text_alone_is_run_as_spark_sees_it(c):
    """It lies in the log already, with nothing in it that says that the model is a whole."""
    select = "select id, n from {s}.c cross join (select mean(n) m from {s}.c) a where n > m"
    c.merge(select)
    c.sql("update {s}.c set n = 1000 where id = 0")

    def killed(at: str) -> None:
        if at == "write":
            raise KeyboardInterrupt

    source = ChangeSource.from_mapping({"unique_key": ["id"]})
    with pytest.raises(KeyboardInterrupt):
        merge_changes(
            c.lake, Name.parse(c.target), source, select.format(s=c.schema), runner=c.lake.runner, step=killed
        )
    plan = max(c.path().rglob("_checkpoint/sources/*"), key=lambda path: int(path.name))
    assert ChangePlan.from_bytes(int(plan.name), plan.read_bytes(), str(plan)).whole == ""
    c.merge(select)
    c.check(select)


def test_a_run_without_changes_asks_nothing(c, monkeypatch):
    c.merge("select id, mean(n) as m from {s}.c group by id")
    monkeypatch.setattr("penstock.changes.preparation.facts", lambda query: pytest.fail("it was asked"))
    assert c.merge("select id, mean(n) as m from {s}.c group by id").nothing_new


@pytest.mark.parametrize(
    ("aggregate", "told"),
    [
        ("collect_list(n)", True), ("sort_array(collect_list(n))", False), ("size(collect_set(n))", False),
        ("any_value(n)", True), ("listagg(name) within group (order by name)", False), ("max_by(n, name)", True),
        ("max(n)", False), ("any_value(/* within group */ n)", True),
        (f"listagg(concat({', '.join(['name'] * 60)})) within group (order by name)", False),
    ],
)  # fmt: skip
def test_aggregates_by_the_order_of_rows_are_told_when_the_table_is_built(c, aggregate, told):
    select = f"select g, {aggregate} as x from {{s}}.c group by g"
    warnings = c.merge(select, "g").warnings
    assert bool([text for text in warnings if "in any order" in text]) == told
    c.sql("delete from {s}.c where id = 1")
    assert c.merge(select, "g").warnings == []


def test_the_aggregates_of_a_pivot(c):
    """Spark tells their place in the text as that of the whole clause."""
    select = "select * from (select g, n, id % 2 as part from {s}.c) pivot (mean(n) for part in (0 as p0, 1 as p1))"
    c.merge(select, "g")
    c.sql("update {s}.c set n = 1000 where id = 0")
    assert c.merge(select, "g").way == "whole"
    c.check(select)
