"""The rows of a relation that a query can use: those that its conditions of the kind `column = 'text'` admit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.sql.statement import read
from penstock.sql.tokens import outer_tokens, tokens

if TYPE_CHECKING:
    from sqlglot import exp


@dataclass(frozen=True)
class Condition:
    """`column in (values)`, or `column not in (values)`. Without regard to case, a row that meets it is never left out."""

    column: str
    values: frozenset[str]
    negated: bool = False

    def admits(self, value: str) -> bool:
        """Whether a row with this value may meet the condition."""
        if self.negated:
            return value not in self.values
        return value.lower() in {known.lower() for known in self.values}


@dataclass(frozen=True)
class Wanted:
    """The rows that a query can use: those that meet all conditions of at least one of the lists.

    >>> wanted = wanted_by("select * from penstock.files where table_name = 'events'", "penstock", "files")
    >>> wanted.admits(table_name="events"), wanted.admits(table_name="orders"), wanted.admits(status="waiting")
    (True, False, True)
    """

    lists: tuple[tuple[Condition, ...], ...] = ((),)

    def admits(self, **values: str) -> bool:
        """Whether the query may use a row with these values."""
        return any(
            all(condition.admits(values[condition.column]) for condition in conditions if condition.column in values)
            for conditions in self.lists
        )

    @classmethod
    def only(cls, **values: str) -> Wanted:
        """The rows with these values."""
        return cls((tuple(Condition(column, frozenset([value])) for column, value in values.items()),))

    @classmethod
    def any_of(cls, parts: Iterable[Wanted]) -> Wanted:
        """The rows that any of these wants."""
        return cls(tuple(conditions for part in parts for conditions in part.lists))


EVERYTHING = Wanted()


def wanted_by(text: str, schema: str, table: str) -> Wanted:
    """The rows of a relation that a query can use. EVERYTHING if the text can't be read well enough to tell.

    A condition counts if it is a part of the WHERE, joined by AND, of the SELECT that reads the relation: a row that
    does not meet it is in no result of this SELECT, and of none of its outer joins.
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    query = _query_in(text)
    if query is None:
        return EVERYTHING
    try:
        tree = parse_one(query, read="spark")
    except SqlglotError:
        return EVERYTHING
    found = [node for node in tree.find_all(exp.Table) if _is(node, schema, table)]
    if not found:
        return EVERYTHING
    return Wanted.any_of(Wanted((tuple(_conditions(node)),)) for node in found)


def _query_in(text: str) -> str | None:
    """The query that a statement is or ends with; None for other statements. sqlglot prints a warning for those."""
    statement = read(text)
    if statement.verb in ("SELECT", "FROM", "(", "VALUES"):
        return text
    if statement.verb not in ("CREATE", "INSERT"):
        return None
    begin = next(
        (token.start for token in outer_tokens(tokens(text)) if token.text.upper() in ("SELECT", "WITH")), None
    )
    return None if begin is None else text[begin:]


def _is(node: exp.Table, schema: str, table: str) -> bool:
    return (node.db.lower(), node.name.lower()) == (schema, table)


def _conditions(table: exp.Table) -> Iterable[Condition]:
    from sqlglot import exp

    above: Any = table.parent
    select = above.parent if isinstance(above, (exp.From, exp.Join)) else None
    # TABLESAMPLE and PIVOT come before the WHERE.
    if not isinstance(select, exp.Select) or table.args.get("pivots") or table.args.get("sample"):
        return
    where = select.args.get("where")
    if where is None or select.find(exp.TableSample):
        return
    alone = not select.args.get("joins") and not select.args.get("laterals")
    parts = list(where.this.flatten()) if isinstance(where.this, exp.And) else [where.this]
    for part in parts:
        condition = _condition(part.unnest())
        if condition is None:
            continue
        column, found = condition
        if column.table.lower() == table.alias_or_name.lower() if column.table else alone:
            yield found


def _condition(part: exp.Expr) -> tuple[exp.Column, Condition] | None:
    """The condition in a part of a WHERE, with its column; None if it is of another kind."""
    from sqlglot import exp

    negated = isinstance(part, (exp.Not, exp.NEQ))
    if isinstance(part, exp.Not):
        part = part.this.unnest()
        if not isinstance(part, (exp.EQ, exp.In)):
            return None
    if isinstance(part, (exp.EQ, exp.NEQ)):
        sides = [part.this, part.expression]
    elif isinstance(part, exp.In) and part.expressions and not part.args.get("query"):
        sides = [part.this, *part.expressions]
    else:
        return None
    plain = [_without_lower(side) for side in sides]
    columns = [side for side in plain if isinstance(side, exp.Column)]
    texts = [side.this for side in plain if isinstance(side, exp.Literal) and side.is_string]
    # `lower(status) <> 'Waiting'` is true of every row: what is left out must be exactly this text.
    if len(columns) != 1 or len(columns) + len(texts) != len(sides) or (negated and plain != sides):
        return None
    return columns[0], Condition(columns[0].name.lower(), frozenset(texts), negated)


def _without_lower(side: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    return side.this if isinstance(side, (exp.Lower, exp.Upper)) else side
