"""Every aggregate that Spark lists, wherever it may stand: the table is what a full refresh would build, or refused."""

from __future__ import annotations

import os
import random
import time

import pytest

from penstock import PenstockError
from penstock.changes.incremental.classify import classify, classify_seen
from penstock.changes.incremental.way import Keys, Whole
from penstock.changes.query import ChangeQuery
from penstock.spark.facts import facts
from penstock.sql.names import Name
from tests.functional.changes.conftest import World

LONG = int(os.environ.get("PENSTOCK_SEQUENCES", "40")) > 100
"""All of them are built and changed by `make chaos`; a few, chosen anew each time, by `make test`."""
FEW = 4
SEED = int(os.environ.get("PENSTOCK_SEED", time.time_ns() % 1_000_000))

PLACES = {
    "scalar subquery": "select id, n, (select {call} from {{s}}.a) as x from {{s}}.a",
    "join": "select b.id, b.n, t.x from {{s}}.a b join (select {call} as x from {{s}}.a) t on t.x is not null or b.n > 0",
    "join by key": "select b.id, t.x from {{s}}.a b join (select g, {call} as x from {{s}}.a group by g) t on t.g = b.g",
    "group by": "select g as id, {call} as x from {{s}}.a group by g",
    "window": "select id, {call} over (partition by id order by n) as x from {{s}}.a",
}
# How those are called that do not take one number.
CALLS = {
    "any": "any(flag)", "some": "some(flag)", "every": "every(flag)", "bool_and": "bool_and(flag)",
    "bool_or": "bool_or(flag)", "count_if": "count_if(flag)", "approx_percentile": "approx_percentile(n, 0.5)",
    "percentile_approx": "percentile_approx(n, 0.5)", "percentile": "percentile(n, 0.5)", "median": "median(n)",
    "percentile_cont": "percentile_cont(0.5) within group (order by n)",
    "percentile_disc": "percentile_disc(0.5) within group (order by n)",
    "approx_top_k_combine": "approx_top_k_combine(top, 10)", "bitmap_and_agg": "bitmap_and_agg(bits)",
    "bitmap_or_agg": "bitmap_or_agg(bits)", "bitmap_construct_agg": "bitmap_construct_agg(bitmap_bit_position(id))",
    "count_min_sketch": "count_min_sketch(n, 0.5d, 0.5d, 1)", "histogram_numeric": "histogram_numeric(n, 3)",
    "hll_union_agg": "hll_union_agg(hll)", "theta_union_agg": "theta_union_agg(theta)",
    "theta_intersection_agg": "theta_intersection_agg(theta)", "kll_merge_agg_bigint": "kll_merge_agg_bigint(kll)",
    "kll_merge_agg_double": "kll_merge_agg_double(kll_double)", "kll_merge_agg_float": "kll_merge_agg_float(kll_float)",
    "kll_sketch_agg_double": "kll_sketch_agg_double(x)",
    "kll_sketch_agg_float": "kll_sketch_agg_float(cast(n as float))", "listagg": "listagg(name)",
    "string_agg": "string_agg(name, '-')", "max_by": "max_by(name, n)", "min_by": "min_by(name, n)",
    **{name: f"{name}(n, id)" for name in ("corr", "covar_pop", "covar_samp")},
    **{
        f"regr_{name}": f"regr_{name}(n, id)"
        for name in ("avgx", "avgy", "count", "intercept", "r2", "slope", "sxx", "sxy", "syy")
    },
    **{f"tuple_sketch_agg_{type}": f"tuple_sketch_agg_{type}(id, {of})" for type, of in (("double", "x"), ("integer", "n"))},
    **{f"tuple_{work}_agg_{type}": f"tuple_{work}_agg_{type}(tuple_{type})"
       for work in ("union", "intersection") for type in ("double", "integer")},
    "ntile": "ntile(2)", "nth_value": "nth_value(n, 1)", "lag": "lag(n)", "lead": "lead(n)",
    **{name: f"{name}()" for name in ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist")},
}  # fmt: skip
# They go with a metric view, or with ROLLUP and CUBE, and Spark refuses them elsewhere.
ELSEWHERE = {"measure", "grouping", "grouping_id"}


def listed(world: World, group: str) -> list[str]:
    """What Spark's registry has in a group of functions."""
    registry = world.lake.runner.spark._jsparkSession.sessionState().functionRegistry()
    found, names = registry.listFunction().iterator(), []
    while found.hasNext():
        name = found.next()
        if registry.lookupFunction(name).get().getGroup() == group:
            names.append(name.funcName())
    assert set(names) <= {row[0].rpartition(".")[2] for row in world.lake.runner.spark.sql("show functions").collect()}
    return sorted(set(names))


@pytest.fixture
def a(world: World) -> World:
    world.sql(
        "create table {s}.a {feed} as select id, g, n, cast(n as double) as x, concat('n', n) as name, n > 3 as flag, "
        "bitmap_construct_agg(bitmap_bit_position(id)) as bits, hll_sketch_agg(id) as hll, theta_sketch_agg(id) as theta, "
        "kll_sketch_agg_bigint(n) as kll, kll_sketch_agg_double(cast(n as double)) as kll_double, "
        "kll_sketch_agg_float(cast(n as float)) as kll_float, tuple_sketch_agg_double(id, cast(n as double)) as tuple_double, "
        "tuple_sketch_agg_integer(id, n) as tuple_integer, approx_top_k_accumulate(n) as top "
        "from (select id, id % 3 as g, cast(id as int) as n from range(8)) group by id, g, n"
    )
    return world


def change(world: World, chance: random.Random, turn: int) -> list[str]:
    done = []
    for _ in range(chance.randrange(1, 4)):
        one, number = chance.randrange(8), chance.randrange(200)
        text = chance.choice(
            [
                f"update {{s}}.a set n = {number}, x = {number}, flag = {number} > 50, name = 'm{number}' where id = {one}",
                f"update {{s}}.a set g = {chance.randrange(4)} where id = {one}",
                f"delete from {{s}}.a where id = {one}",
                f"insert into {{s}}.a select * except (id, n), id + 100 + {turn * 1000 + number}, {number} as n "
                f"from {{s}}.a where id = {one}",
            ]
        )
        if text.startswith("insert"):
            text = (
                f"insert into {{s}}.a (id, g, n, x, name, flag, bits, hll, theta, kll, kll_double, kll_float, tuple_double, "
                f"tuple_integer, top) select {100 + turn * 1000 + number}, g, {number}, {number}, name, flag, bits, hll, "
                f"theta, kll, kll_double, kll_float, tuple_double, tuple_integer, top from {{s}}.a where id = {one} and not "
                f"exists (select 1 from {{s}}.a where id = {100 + turn * 1000 + number})"
            )
        done.append(text)
        world.sql(text)
    return done


def test_every_aggregate_is_seen_wherever_it_stands(a: World) -> None:
    """None is taken for a function of its row; neither is a window function."""
    wrong, refused = [], set()
    cases = [(name, place) for name in listed(a, "agg_funcs") for place in PLACES if place != "window"]
    cases += [(name, "window") for name in listed(a, "window_funcs")]
    for name, place in cases:
        if name in ELSEWHERE:
            continue
        select = PLACES[place].format(call=CALLS.get(name, f"{name}(n)")).format(s=a.schema)
        model = ChangeQuery.read(a.lake, select, Name.parse(a.target))
        try:
            seen = facts(a.lake.runner.query(select))
            by_text, way = classify(model, ("id",), ""), classify_seen(model, ("id",), "", seen)
        except PenstockError as error:
            if "is not deterministic" in str(error):
                refused.add(name)
            else:
                wrong.append(f"{name}, {place}: {str(error).splitlines()[0][:300]}")
            continue
        called = {call.name for call in (seen.windows if place == "window" else seen.aggregates)}
        wanted = Keys if place in ("group by", "window") else Whole
        if name not in called or not isinstance(way, wanted):
            wrong.append(f"{name}, {place}: {by_text} by the text, {way}")
    assert wrong == []
    assert refused == {
        f"kll_{work}_agg_{type}" for work in ("sketch", "merge") for type in ("bigint", "double", "float")
    }


def test_tables_with_any_aggregate_are_those_of_a_full_refresh(a: World) -> None:
    print(f"PENSTOCK_SEED={SEED}")
    chance = random.Random(SEED)
    names = [name for name in listed(a, "agg_funcs") if name not in ELSEWHERE]
    names, many = (names, 4) if LONG else (chance.sample(names, FEW), 2)
    models = [(name, place) for name in names for place in chance.sample(list(PLACES)[:4], many)]
    refused, by_order, told = set(), set(), []
    for turn in range(4 if LONG else 2):
        told += change(a, chance, turn) if turn else []
        for name, place in models:
            target = f"{name}_{place.replace(' ', '_')}"
            if target in refused:
                continue
            select = PLACES[place].format(call=CALLS.get(name, f"{name}(n)"))
            try:
                report = a.merge(select, "id", f"{a.schema}.{target}")
                if any("in any order" in warning for warning in report.warnings):
                    by_order.add(name)
                if name not in by_order:
                    made, wanted = a.rows(f"select * from {{s}}.{target}"), a.rows(select)
                    assert made == wanted, f"too many: {made - wanted}, missing: {wanted - made}"
            except (AssertionError, PenstockError) as error:
                if turn or "is not deterministic" not in str(error):
                    raise AssertionError(f"{name}, {place}, after {told}: {error}") from error
                refused.add(target)
