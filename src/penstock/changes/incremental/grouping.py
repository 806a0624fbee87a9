"""Whether the aggregates and the window functions of a SELECT stay within a key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from sqlglot import exp
from sqlglot.optimizer.scope import find_all_in_scope

from penstock.changes.incremental.column_scope import ColumnScope
from penstock.changes.incremental.keyed_select import KeysUnknown
from penstock.errors import PenstockError

_SEVERAL = ("rollup", "cube", "grouping_sets")


def makes_key_unique(scope: ColumnScope, where: str) -> bool:
    """Whether the GROUP BY leaves one row for each key; False if there is none.

    An error if an aggregate or a window function mixes keys. KeysUnknown if the grouping is of another kind.
    """
    select, keys = scope.keyed.select, scope.keyed.keys
    for key in keys:
        if scope.keyed.item(key) is None and not select.is_star:
            raise PenstockError(f"`unique_key` names {key}, and the model's result has no such column", where=where)
    values = {key: scope.value(key) for key in keys}
    _check_windows(scope, set(values.values()), where)
    group = select.args.get("group")
    if group is None:
        if _aggregates(select):
            raise _without_key(keys, "there is no GROUP BY", where)
        return False
    grouped = _grouped(scope, group)
    absent = [key for key, value in values.items() if value not in grouped]
    if absent:
        raise _without_key(absent, "GROUP BY lacks it", where)
    return grouped <= set(values.values())


def aggregations(select: exp.Select) -> int:
    """How many aggregations Spark makes of the SELECT: for its GROUP BY, and for its DISTINCT."""
    return sum(bool(select.args.get(clause)) for clause in ("group", "distinct"))


def _check_windows(scope: ColumnScope, values: set[str], where: str) -> None:
    select = scope.keyed.select
    for part in (*select.expressions, select.args.get("qualify")):
        for window in () if part is None else find_all_in_scope(part, exp.Window):
            by = {scope.spelled(item) for item in window.args.get("partition_by") or []}
            if not values <= by:
                raise PenstockError(
                    f"A window function looks across keys: PARTITION BY lacks {', '.join(scope.keyed.keys)}",
                    where=where,
                    fix="Partition by every column of `unique_key`, or use `materialized: table`.",
                )


def _aggregates(select: exp.Select) -> bool:
    """Whether the SELECT has an aggregate that is not one of a window."""
    parts = [part for part in (*select.expressions, select.args.get("having")) if part is not None]
    return any(not _is_windowed(item) for part in parts for item in find_all_in_scope(part, exp.AggFunc))


def _is_windowed(aggregate: exp.Expr) -> bool:
    """Whether an aggregate has an OVER, perhaps after a FILTER or the like."""
    parent = aggregate.parent
    while isinstance(parent, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _grouped(scope: ColumnScope, group: exp.Group) -> set[str]:
    """The expressions of the GROUP BY."""
    several = any(isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)) for item in group.expressions)
    if several or any(group.args.get(kind) for kind in _SEVERAL):
        raise KeysUnknown("it has ROLLUP, CUBE or GROUPING SETS")
    if group.args.get("all"):
        items = scope.keyed.select.expressions
        return {scope.spelled(item.unalias()) for item in items if not item.find(exp.AggFunc)}
    return {scope.spelled(_meant(item, scope)) for item in group.expressions}


def _meant(item: exp.Expr, scope: ColumnScope) -> exp.Expr:
    """The expression that an item of GROUP BY stands for: by a position, by an alias that is no column's name, or itself."""
    items = scope.keyed.select.expressions
    if isinstance(item, exp.Literal) and item.is_int:
        at = int(item.this) - 1
        return items[at].unalias() if 0 <= at < len(items) else item
    if isinstance(item, exp.Column) and not item.table and not scope.has(item.name.lower()):
        aliases = (other for other in items if isinstance(other, exp.Alias))
        named = next((other for other in aliases if other.alias.lower() == item.name.lower()), None)
        if named is not None and not named.this.find(exp.AggFunc):
            return cast("exp.Expr", named.this)
    return item


def _without_key(keys: Iterable[str], why: str, where: str) -> PenstockError:
    return PenstockError(
        f"The model aggregates without its key: `unique_key` has {', '.join(keys)}, and {why}",
        where=where,
        fix="Group by every column of `unique_key`, or use `materialized: table`.",
    )
