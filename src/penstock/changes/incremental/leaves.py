"""The relations that a SELECT joins, with their columns and table reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.changes.incremental.keyed_select import KeyedSelect, KeysUnknown
from penstock.changes.incremental.linear import reads_in, why_not_linear
from penstock.changes.query import ChangeQuery

_KINDS = {
    "": "", "INNER": "", "CROSS": "", "LEFT": "LEFT", "LEFT OUTER": "LEFT", "SEMI": "SEMI", "LEFT SEMI": "SEMI",
    "ANTI": "ANTI", "LEFT ANTI": "ANTI",
}  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """One relation in the FROM or a JOIN."""

    alias: str
    columns: frozenset[str] | None
    """None if they cannot be told from the text."""
    reads: tuple[int, ...]
    join: str
    """How it is joined: empty for the FROM and inner joins, or LEFT, SEMI or ANTI."""
    number: int | None
    """Its number among the joins that are not inner ones; None for the others."""


def leaves_of(query: ChangeQuery, keyed: KeyedSelect) -> list[Leaf]:
    """The relations that a SELECT joins. KeysUnknown if a join or a relation does not let a change be followed."""
    kinds = [""]
    for join in keyed.joins:
        kind = join_kind(join)
        if kind is None:
            raise KeysUnknown(f"it has a {join.side or join.args.get('method')} JOIN")
        kinds.append(kind)
    leaves, numbered = [], 0
    for relation, kind in zip(keyed.relations, kinds, strict=True):
        leaves.append(leaf_of(query, relation, kind, numbered if kind else None))
        numbered += bool(kind)
    for relation in keyed.relations:
        if why := why_not_linear(relation):
            raise KeysUnknown(why)
    return leaves


def leaf_of(query: ChangeQuery, relation: exp.Expr, join: str = "", number: int | None = None) -> Leaf:
    columns = _columns(query, relation)
    return Leaf(relation.alias_or_name.lower(), columns, tuple(reads_in(relation)), join, number)


def join_kind(join: exp.Join) -> str | None:
    """How a relation is joined: empty for inner joins, or LEFT, SEMI or ANTI; None for all others."""
    if join.args.get("method"):
        return None
    return _KINDS.get(f"{join.side or ''} {join.kind or ''}".strip().upper())


def leaves_read(expression: exp.Expr, leaves: Sequence[Leaf]) -> set[int]:
    """Which leaves an expression may read: all that cannot be ruled out."""
    read: set[int] = set()
    for column in expression.find_all(exp.Column):
        table = column.table.lower()
        named = {index for index, leaf in enumerate(leaves) if table and leaf.alias == table}
        if not named:
            # A field of a struct looks like a column of a table.
            name = (column.parts[0].name if table else column.name).lower()
            named = {index for index, leaf in enumerate(leaves) if leaf.columns is None or name in leaf.columns}
        read |= named
    return read


def column_by_star(keyed: KeyedSelect, key: str, leaves: Sequence[Leaf]) -> exp.Column:
    """The column of a key that comes by a star; with its table, if the star is `table.*`."""
    items = keyed.select.expressions
    stars = {item.table.lower() for item in items if isinstance(item, exp.Column) and item.is_star}
    having = [leaf.alias for leaf in leaves if leaf.alias in stars and (leaf.columns is None or key in leaf.columns)]
    return exp.column(key, table=having[0] if len(having) == 1 else None, quoted=True)


def _columns(query: ChangeQuery, node: exp.Expr) -> frozenset[str] | None:
    """The columns of a relation or a query, in lower case; None if they cannot be told."""
    if isinstance(node, exp.Table):
        numbers = reads_in(node)
        return frozenset(query.reads[numbers[0]].columns) if numbers else None
    if isinstance(node, exp.Subquery):
        alias = node.args.get("alias")
        if alias is not None and alias.columns:
            return frozenset(column.name.lower() for column in alias.columns)
        return _columns(query, node.this)
    if isinstance(node, exp.Union):
        return _columns(query, node.left)
    return _selected(query, node) if isinstance(node, exp.Select) else None


def _selected(query: ChangeQuery, select: exp.Select) -> frozenset[str] | None:
    names: set[str] = set()
    for item in select.expressions:
        if not item.is_star:
            names.add(item.alias_or_name.lower())
            continue
        for relation in (select.args["from_"].this, *(join.this for join in select.args.get("joins") or [])):
            below = _columns(query, relation)
            if below is None:
                return None
            names |= below
    return frozenset(names)
