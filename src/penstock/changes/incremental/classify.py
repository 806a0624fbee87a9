"""Chooses the way to keep a model's table up to date: from the syntax tree, and then from Spark's analyzed plan.

- `Rows`: projections, filters, UNION ALL, inner joins.
- `Keys`: LEFT, SEMI and ANTI joins, GROUP BY and window functions by the key.
- `Whole`: everything else that has a key.

Before Spark runs, `classify` reads the text alone, for the plan and for early errors. When Spark runs, `classify_seen`
has the last word: the analyzed plan says which functions are aggregates, windows, generators or unstable, and which
operators there are. The tree only says where they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from penstock.changes.incremental.affected_keys import find_affected_keys
from penstock.changes.incremental.carry import carrying
from penstock.changes.incremental.linear import is_linear, reads_in
from penstock.changes.incremental.unstable import refuse_unstable
from penstock.changes.incremental.way import Keys, MergeWay, Rows, Whole
from penstock.changes.query import ChangeQuery, parse
from penstock.errors import PenstockError
from penstock.spark.facts import Facts
from penstock.spark.weights import WEIGHT
from penstock.sql import tokens as sql

_MARK = "penstock_aggregate_"
# Operators that make each row from one row, or from one row of each side.
_BY_ROW = {
    "Project", "Filter", "Union", "SubqueryAlias", "View", "LogicalRelation", "LocalRelation", "OneRowRelation", "Range",
    "Generate", "Sort", "ResolvedHint", "Repartition", "RepartitionByExpression", "RebalancePartitions",
    "Join Inner", "Join Cross",
}  # fmt: skip
# `Keys` computes all rows of a key again, so these operators may occur as well.
_BY_KEY = _BY_ROW | {"Join LeftOuter", "Join LeftSemi", "Join LeftAnti", "Aggregate", "Distinct", "Window"}
_AGGREGATING = ("Aggregate", "Distinct")


def classify(
    query: ChangeQuery, unique_key: tuple[str, ...], where: str, aggregates: frozenset[str] = frozenset()
) -> MergeWay:
    """The way to keep this model's table, from its text; an error with the way out if there is none.

    `aggregates` are the functions that Spark takes for aggregates. sqlglot knows some of them by itself.
    """
    tree = parse(query.text, where)
    refuse_unstable(tree, where)
    if unknown := {name for name in aggregates if not _is_known(name)}:
        try:
            tree = _marked(query.text, where, unknown)
        except PenstockError:
            return Whole(f"it has {', '.join(sorted(unknown))} where sqlglot cannot parse another aggregate")
    if is_linear(tree):
        carried = carrying(query.text, tree, WEIGHT) if len(query.reads) == 1 else None
        return Rows(frozenset(_apart(tree)), carried)
    found = find_affected_keys(query, tree, unique_key, where)
    return Whole(found) if isinstance(found, str) else Keys(found)


def classify_seen(query: ChangeQuery, unique_key: tuple[str, ...], where: str, seen: Facts) -> MergeWay:
    """The way to keep this model's table, as Spark sees the model; an error if there is none.

    A model whose analyzed plan has anything that the tree does not explain is a `Whole`, which is always right.
    """
    if not seen.known:
        raise PenstockError(
            "Spark gives no analyzed plan in this session, so it is unknown whether the model's changes can be followed",
            where=where,
            fix="Run in a session of your own, without `session.remote`, or use `incremental_strategy: merge`.",
        )
    if seen.unstable:
        calls = ", ".join(dict.fromkeys(map(str, seen.unstable)))
        raise PenstockError(
            f"The model is not deterministic, because it has {calls}: a full refresh and an incremental run would give "
            "different rows",
            where=where,
            fix="Compute it in an upstream model, or use `incremental_strategy: merge`. Functions in Python, Java or Scala "
            "count as not deterministic; a function in SQL counts as its body does.",
        )
    way = classify(query, unique_key, where, frozenset(call.name for call in seen.aggregates))
    if isinstance(way, Whole):
        return way
    if why := _unexplained(way, seen):
        return Whole(why)
    if isinstance(way, Keys) and seen.generators:
        return Keys(replace(way.affected, one_row_a_key=False))
    return way


def _unexplained(way: Rows | Keys, seen: Facts) -> str:
    """Which part of Spark's plan this way does not allow for; empty if it allows for all of it."""
    others = sorted(seen.operators.keys() - (_BY_ROW if isinstance(way, Rows) else _BY_KEY))
    if others:
        return f"Spark sees {', '.join(others)} in it"
    if seen.subqueries:
        return "Spark sees a subquery in an expression"
    if isinstance(way, Rows):
        return f"Spark sees {seen.windows[0]} in it" if seen.windows else ""
    if sum(seen.operators[name] for name in _AGGREGATING) > way.affected.aggregations:
        return "Spark sees more aggregations in it than those by the key"
    return ""


def _marked(text: str, where: str, aggregates: set[str]) -> exp.Expr:
    """The tree of a text, with aggregates in it that sqlglot takes for plain functions."""
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


def _apart(tree: exp.Expr) -> Iterator[tuple[int, int]]:
    """The pairs of table reads in different branches of a UNION."""
    for union in tree.find_all(exp.Union):
        left, right = reads_in(union.left), reads_in(union.right)
        for one in left:
            for other in right:
                yield one, other
                yield other, one
