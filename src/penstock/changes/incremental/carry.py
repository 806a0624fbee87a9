"""A model's SELECT with one more column, which carries the weights of its rows.

So a model over a single table runs once over all changes, and not once over the new rows and once over the old ones.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType  # type: ignore[attr-defined]

from penstock.sql import tokens as sql


def carrying(text: str, tree: exp.Expr, column: str) -> str | None:
    """The text with the column in each SELECT from the table up; None if it is more than a chain of SELECTs.

    >>> from sqlglot import parse_one
    >>> text = "select a, extract(year from b) as y from (select * from t) where a > 1"
    >>> carrying(text, parse_one(text, read="spark"), "weight")
    'select a, extract(year from b) as y, weight from (select * from t) where a > 1'
    """
    selects = _chain(tree)
    if selects is None:
        return None
    ends = _ends_of_lists(text)
    if len(ends) != len(selects):
        return None
    parts, at = [], 0
    for select, end in zip(selects, ends, strict=True):
        # A star already brings the column.
        parts += [text[at:end], "" if any(_is_star(item, select) for item in select.expressions) else f", {column}"]
        at = end
    return "".join([*parts, text[at:]])


def _chain(tree: exp.Expr) -> list[exp.Select] | None:
    """The SELECTs from the outermost to the one that reads the table; None if it is more than a chain."""
    selects: list[exp.Select] = []
    node = tree
    while isinstance(node, exp.Select):
        if node.args.get("joins") or node.args.get("laterals") or not node.args.get("from_"):
            return None
        # A star in a function would take the new column as well; the star of a struct would not have it.
        if any(not _is_star(item, node) and item.find(exp.Star) for item in node.expressions):
            return None
        selects.append(node)
        source = node.args["from_"].this
        alias = source.args.get("alias")
        if alias is not None and alias.args.get("columns"):
            return None
        node = source.this if isinstance(source, exp.Subquery) else source
    where = [select.args["where"] for select in selects if select.args.get("where")]
    return selects if isinstance(node, exp.Table) and not any(item.find(exp.Star) for item in where) else None


def _is_star(item: exp.Expr, select: exp.Select) -> bool:
    """Whether an item stands for all columns of the relation that the SELECT reads."""
    if not isinstance(item, exp.Column):
        return isinstance(item, exp.Star)
    source = select.args["from_"].this
    return isinstance(item.this, exp.Star) and item.table.lower() == source.alias_or_name.lower()


def _ends_of_lists(text: str) -> list[int]:
    """The position at which the list of each SELECT ends: before the FROM at the same depth of parentheses."""
    ends, open_selects, depth, last = [], [], 0, 0
    before = None
    for token in sql.tokens(text):
        if token.token_type == TokenType.L_PAREN:
            depth += 1
        elif token.token_type == TokenType.R_PAREN:
            depth -= 1
        elif token.token_type == TokenType.SELECT:
            open_selects.append(depth)
        elif token.token_type == TokenType.FROM and before != TokenType.DISTINCT:  # IS DISTINCT FROM
            if open_selects and open_selects[-1] == depth:
                open_selects.pop()
                ends.append(last)
        before, last = token.token_type, token.end + 1
    return ends
