"""Which of three ways keeps a model's table up to date: one classifier on the syntax tree.

- `Rows`: every row of the result comes from one row of each place (projection, filter, UNION ALL, inner joins), so the
  model of the changes is the change of the model.
- `Keys`: the keys that a change can touch are known (LEFT, SEMI and ANTI joins, GROUP BY and windows by the key), and
  the model is computed again for those.
- `Whole`: the model is computed again as a whole and compared with the table: right for everything else that has a key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from penstock.changes.carry import carrying
from penstock.changes.core import Core
from penstock.changes.model import PLACE, ChangeModel, parse
from penstock.changes.weights import WEIGHT
from penstock.errors import PenstockError

_LIMITS: dict[type[exp.Expr], str] = {
    exp.Limit: "LIMIT",
    exp.Fetch: "FETCH",
    exp.Offset: "OFFSET",
    exp.TableSample: "TABLESAMPLE",
}
# What gives another answer the next time, or on another day.
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


def shape_of(model: ChangeModel, unique_key: tuple[str, ...], where: str) -> Shape:
    """The way to keep this model's table; an error that says what to do where there is none."""
    tree = parse(model.text, where)
    _refuse_unsteady(tree, where)
    if is_linear(tree):
        carried = carrying(model.text, tree, WEIGHT) if len(model.places) == 1 else None
        return Rows(frozenset(_apart(tree)), carried)
    core = Core.find(model, tree, unique_key, where)
    return Whole(core) if isinstance(core, str) else Keys(core)


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
