"""Whether a query is linear: each row of its result comes from one row of each of its tables, on its own."""

from __future__ import annotations

from sqlglot import exp

from penstock.changes.query import PLACEHOLDER

_MORE_THAN_ROWS = ("group", "having", "distinct", "qualify", "windows", "pivots", "match")


def is_linear(node: exp.Expr | None) -> bool:
    """Whether a query, or a relation in a FROM, is made of projections, filters, inner joins and UNION ALL alone."""
    if isinstance(node, exp.Subquery):
        return not node.args.get("pivots") and not node.args.get("joins") and is_linear(node.this)
    if isinstance(node, exp.Union):
        return not node.args.get("distinct") and is_linear(node.left) and is_linear(node.right)
    if isinstance(node, exp.Table):
        return not node.args.get("pivots") and not node.args.get("joins")
    if isinstance(node, exp.Values):
        return True
    return isinstance(node, exp.Select) and _is_linear_select(node)


def _is_linear_select(select: exp.Select) -> bool:
    if any(select.args.get(clause) for clause in _MORE_THAN_ROWS):
        return False
    joins = select.args.get("joins") or []
    expressions = [*select.expressions, select.args.get("where"), *(select.args.get("laterals") or [])]
    expressions += [join.args.get("on") for join in joins]
    if any(needs_other_rows(expression) for expression in expressions if expression is not None):
        return False
    source = select.args.get("from_")
    return (source is None or is_linear(source.this)) and all(
        _is_inner(join) and is_linear(join.this) for join in joins
    )


def why_not_linear(node: exp.Expr) -> str:
    """Why a relation is not linear; empty if it is."""
    if is_linear(node):
        return ""
    return f"the subquery{f' {node.alias}' if node.alias else ''} that it reads {_more_than_linear(node)}"


def _more_than_linear(node: exp.Expr) -> str:
    for select in (node, *node.find_all(exp.Select, exp.SetOperation)):
        if isinstance(select, exp.SetOperation):
            if not isinstance(select, exp.Union) or select.args.get("distinct"):
                return f"has {select.key.upper()}"
            continue
        if any(select.args.get(clause) for clause in ("group", "having", "distinct")):
            return "is aggregated or has DISTINCT"
        for join in select.args.get("joins") or []:
            if not _is_inner(join):
                return f"has a {f'{join.side} {join.kind}'.strip()} JOIN inside"
    if any(isinstance(item, exp.Window) for item in node.walk()):
        return "has a window function"
    if any(isinstance(item, exp.AggFunc) for item in node.walk()):
        return "is aggregated"
    return "is more than projection, filter and inner joins"


def _is_inner(join: exp.Join) -> bool:
    return not join.side and join.kind in ("", "INNER", "CROSS")


def needs_other_rows(expression: exp.Expr) -> bool:
    """Whether the value of an expression depends on more than its own row."""
    return any(isinstance(node, (exp.AggFunc, exp.Window, exp.Query)) for node in expression.walk())


def reads_in(node: exp.Expr) -> list[int]:
    """The numbers of the table reads below a node."""
    tables = (table.name for table in node.find_all(exp.Table))
    return [int(name.removeprefix(PLACEHOLDER)) for name in tables if name.startswith(PLACEHOLDER)]
