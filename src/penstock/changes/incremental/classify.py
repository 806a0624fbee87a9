"""Which of three ways keeps a model's table up to date: one classifier on the syntax tree, told by Spark's plan.

- `Rows`: every row of the result comes from one row of each place (projection, filter, UNION ALL, inner joins), so the
  model of the changes is the change of the model.
- `Keys`: the keys that a change can touch are known (LEFT, SEMI and ANTI joins, GROUP BY and windows by the key), and
  the model is computed again for those.
- `Whole`: the model is computed again as a whole and compared with the table: right for everything else that has a key.

Before Spark runs, `shape_of` reads the text alone, for the plan that is written down and for early errors. Where Spark
runs anyway, `shape_as_seen` has the last word: the analyzed plan says what is an aggregate, a window, a generator or
unstable, and which operators there are; the tree only says where.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from penstock.changes.incremental.affected_keys import Core
from penstock.changes.incremental.carry import carrying
from penstock.changes.incremental.weights import WEIGHT
from penstock.changes.query import PLACE, ChangeModel, parse
from penstock.errors import PenstockError
from penstock.spark.facts import Facts
from penstock.sql import tokens as sql

_LIMITS: dict[type[exp.Expr], str] = {
    exp.Limit: "LIMIT",
    exp.Fetch: "FETCH",
    exp.Offset: "OFFSET",
    exp.TableSample: "TABLESAMPLE",
}
# Functions that answer differently the next time, or on another day: refused before Spark starts. Spark's plan has the
# last word; a date such as `date 'today'` is seen here alone, as Spark's parser makes a constant of it.
_UNSTEADY = {
    "RAND", "RANDN", "RANDOM", "RANDSTR", "UNIFORM", "UUID", "SHUFFLE", "MONOTONICALLY_INCREASING_ID",
    "SPARK_PARTITION_ID", "INPUT_FILE_NAME", "INPUT_FILE_BLOCK_START", "INPUT_FILE_BLOCK_LENGTH",
    "CURRENT_TIMESTAMP", "NOW", "CURRENT_DATE", "CURDATE", "CURRENT_TIME", "LOCALTIMESTAMP", "CURRENT_USER", "USER",
    "SESSION_USER", "CURRENT_TIMEZONE", "CURRENT_DATABASE", "CURRENT_SCHEMA", "CURRENT_CATALOG", "REFLECT",
    "JAVA_METHOD",
}  # fmt: skip
_UNSTEADY_DATES = {"now", "today", "tomorrow", "yesterday"}
_UNSTEADY_NODES = tuple(
    getattr(exp, name)
    for name in (
        "Rand", "Randn", "Randstr", "Uuid", "MonotonicallyIncreasingId", "CurrentTimestamp", "CurrentTimestampLTZ",
        "CurrentDate", "CurrentDatetime", "CurrentTime", "Localtimestamp", "CurrentUser", "SessionUser",
        "CurrentSchema", "CurrentDatabase", "CurrentCatalog", "CurrentTimezone", "Shuffle",
    )
    if hasattr(exp, name)
)  # fmt: skip


@dataclass(frozen=True)
class Rows:
    apart: frozenset[tuple[int, int]]
    """Places that lie in different branches of a UNION ALL: what changes in one does not meet the other."""
    carried: str | None = None
    """The model's text with the weights of its rows, where it is a chain of SELECTs over one place."""


@dataclass(frozen=True)
class Keys:
    core: Core


@dataclass(frozen=True)
class Whole:
    why: str


Shape = Rows | Keys | Whole


_MARK = "penstock_aggregate_"
# Operators that make each row of one row, or of one row of each of their sides.
_BY_ROW = {
    "Project", "Filter", "Union", "SubqueryAlias", "View", "LogicalRelation", "LocalRelation", "OneRowRelation", "Range",
    "Generate", "Sort", "ResolvedHint", "Repartition", "RepartitionByExpression", "RebalancePartitions",
    "Join Inner", "Join Cross",
}  # fmt: skip
# Those that a core may have besides: `Keys` computes again whatever meets in a key.
_BY_KEY = _BY_ROW | {"Join LeftOuter", "Join LeftSemi", "Join LeftAnti", "Aggregate", "Distinct", "Window"}
_AGGREGATING = ("Aggregate", "Distinct")


def shape_of(
    model: ChangeModel, unique_key: tuple[str, ...], where: str, aggregates: frozenset[str] = frozenset()
) -> Shape:
    """The way to keep this model's table, from its text; an error that says what to do where there is none.

    `aggregates` are the functions that Spark takes for such; sqlglot knows some of them by itself.
    """
    tree = parse(model.text, where)
    _refuse_unsteady(tree, where)
    if unknown := {name for name in aggregates if not _is_known(name)}:
        try:
            tree = _marked(model.text, where, unknown)
        except PenstockError:
            return Whole(f"it has {', '.join(sorted(unknown))} where sqlglot can't read another aggregate")
    if is_linear(tree):
        carried = carrying(model.text, tree, WEIGHT) if len(model.places) == 1 else None
        return Rows(frozenset(_apart(tree)), carried)
    core = Core.find(model, tree, unique_key, where)
    return Whole(core) if isinstance(core, str) else Keys(core)


def shape_as_seen(model: ChangeModel, unique_key: tuple[str, ...], where: str, seen: Facts) -> Shape:
    """The way to keep this model's table, as Spark sees the model; an error where there is none.

    Whatever the plan has that the tree does not account for makes it a `Whole`, which is always right.
    """
    if not seen.known:
        raise PenstockError(
            "Spark gives no analyzed plan in this session, so nobody can tell whether the model's changes can be followed",
            where=where,
            fix="Run on a session of your own, without `session.remote`, or use another strategy.",
        )
    if seen.unstable:
        calls = ", ".join(dict.fromkeys(map(str, seen.unstable)))
        raise PenstockError(
            f"The model has {calls}: it may answer differently each time, so a full refresh and an incremental run "
            "can't agree",
            where=where,
            fix="Compute it upstream, where the row is made, or use another strategy. Functions in Python, Java or "
            "Scala count as such; a function in SQL is judged by its body.",
        )
    shape = shape_of(model, unique_key, where, frozenset(call.name for call in seen.aggregates))
    if isinstance(shape, Whole):
        return shape
    if why := _beyond(shape, seen):
        return Whole(why)
    if isinstance(shape, Keys) and seen.generators:
        return Keys(replace(shape.core, one_row_a_key=False))
    return shape


def _beyond(shape: Rows | Keys, seen: Facts) -> str:
    """What Spark sees in a model that does not go by this shape; empty where all of it does."""
    others = sorted(seen.operators.keys() - (_BY_ROW if isinstance(shape, Rows) else _BY_KEY))
    if others:
        return f"Spark sees {', '.join(others)} in it"
    if seen.subqueries:
        return "Spark sees a subquery in an expression"
    if isinstance(shape, Rows):
        return f"Spark sees {seen.windows[0]} in it" if seen.windows else ""
    if sum(seen.operators[name] for name in _AGGREGATING) > shape.core.aggregations:
        return "Spark sees more aggregations in it than those by the key"
    return ""


def _marked(text: str, where: str, aggregates: set[str]) -> exp.Expr:
    """The tree of a text with these functions as aggregates, which sqlglot takes for any function."""
    parts, at = [], 0
    for token, after in pairwise(sql.tokens(text)):
        if after.token_type == TokenType.L_PAREN and token.text.lower() in aggregates:
            parts += [text[at : token.start], f"{_MARK}{token.text}"]
            at = token.end + 1

    def as_aggregate(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous) or not node.name.startswith(_MARK):
            return node
        return exp.AnonymousAggFunc(this=node.name.removeprefix(_MARK), expressions=node.expressions)

    return parse("".join([*parts, text[at:]]), where).transform(as_aggregate)


def _is_known(aggregate: str) -> bool:
    """Whether sqlglot takes a function for an aggregate."""
    try:
        return isinstance(parse_one(f"select {aggregate}(x)", read="spark").expressions[0], exp.AggFunc)
    except SqlglotError:
        return False


def is_linear(node: exp.Expr | None) -> bool:
    """Whether each row of the result comes from one row of each table in it, on its own."""
    if isinstance(node, exp.Subquery):
        return not node.args.get("pivots") and not node.args.get("joins") and is_linear(node.this)
    if isinstance(node, exp.Union):
        return not node.args.get("distinct") and is_linear(node.left) and is_linear(node.right)
    if isinstance(node, exp.Table):
        return not node.args.get("pivots") and not node.args.get("joins")
    if isinstance(node, exp.Values):
        return True
    if not isinstance(node, exp.Select):
        return False
    if any(
        node.args.get(clause) for clause in ("group", "having", "distinct", "qualify", "windows", "pivots", "match")
    ):
        return False
    expressions = [*node.expressions, node.args.get("where"), *(node.args.get("laterals") or [])]
    joins = node.args.get("joins") or []
    expressions += [join.args.get("on") for join in joins]
    if any(looks_further(expression) for expression in expressions if expression is not None):
        return False
    source = node.args.get("from_")
    return (source is None or is_linear(source.this)) and all(
        not join.side and join.kind in ("", "INNER", "CROSS") and is_linear(join.this) for join in joins
    )


def why_not_linear(node: exp.Expr) -> str:
    """Why rows of something that is read do not come from one row of each of its tables; empty where they do."""
    if is_linear(node):
        return ""
    name = f" {node.alias}" if node.alias else ""
    selects = [node, *node.find_all(exp.Select, exp.SetOperation)]
    for select in selects:
        if isinstance(select, exp.SetOperation):
            if not isinstance(select, exp.Union) or select.args.get("distinct"):
                return f"the subquery{name} that it reads has {select.key.upper()}"
            continue
        if any(select.args.get(clause) for clause in ("group", "having", "distinct")):
            return f"the subquery{name} that it reads is aggregated or has DISTINCT"
        for join in select.args.get("joins") or []:
            if join.side or join.kind not in ("", "INNER", "CROSS"):
                return f"the subquery{name} that it reads has a {f'{join.side} {join.kind}'.strip()} JOIN inside"
    if any(isinstance(item, exp.Window) for item in node.walk()):
        return f"the subquery{name} that it reads has a window function"
    if any(isinstance(item, exp.AggFunc) for item in node.walk()):
        return f"the subquery{name} that it reads is aggregated"
    return f"the subquery{name} that it reads is more than projection, filter and inner joins"


def looks_further(expression: exp.Expr) -> bool:
    """Whether an expression needs more than its own row."""
    return any(isinstance(node, (exp.AggFunc, exp.Window, exp.Query)) for node in expression.walk())


def _refuse_unsteady(tree: exp.Expr, where: str) -> None:
    for node in tree.walk():
        for kind, word in _LIMITS.items():
            if isinstance(node, kind):
                raise PenstockError(
                    f"The model has {word}: which rows it keeps depends on all the others, so changes can't be followed",
                    where=where,
                    fix="Leave it out, or use `materialized: table`.",
                )
        name = node.name if isinstance(node, exp.Anonymous) else None
        unsteady = isinstance(node, _UNSTEADY_NODES) or (name or "").upper() in _UNSTEADY
        if not unsteady and isinstance(node, (exp.UnixSeconds, exp.StrToUnix)) and node.this is None:
            unsteady = True
        called = f"{name or node.sql_name()}()".lower() if isinstance(node, exp.Func) else ""
        if isinstance(node, (exp.Cast, exp.TsOrDsToDate)) and isinstance(node.this, exp.Literal):
            unsteady, called = node.this.name.strip().lower() in _UNSTEADY_DATES, f"'{node.this.name}'"
        if unsteady:
            raise PenstockError(
                f"The model has {called}, which answers differently each time, so a full refresh and an "
                "incremental run can't agree",
                where=where,
                fix="Compute it upstream, where the row is made, or use another strategy.",
            )


def _apart(tree: exp.Expr) -> Iterator[tuple[int, int]]:
    for union in tree.find_all(exp.Union):
        left, right = places_in(union.left), places_in(union.right)
        for one in left:
            for other in right:
                yield one, other
                yield other, one


def places_in(node: exp.Expr) -> list[int]:
    return [int(table.name.removeprefix(PLACE)) for table in node.find_all(exp.Table) if table.name.startswith(PLACE)]
