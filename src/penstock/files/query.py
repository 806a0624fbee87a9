"""The SELECT of a file model: checks of its text, and the same text with a relation in place of `@data`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from penstock.errors import PenstockError
from penstock.spark.reading import virtual_columns
from penstock.spark.reading.virtual_columns import FILE_URI
from penstock.sql import tokens as sql
from penstock.sql.quoting import quote
from penstock.sql.statement import read

if TYPE_CHECKING:
    from penstock.spark.facts import Facts

_SELECTS = ("SELECT", "(", "VALUES", "TABLE")
_SCRIPTING = {"DECLARE", "BEGIN", "SET", "IF", "WHILE", "FOR", "CALL", "EXECUTE", "USE", "LET"}


@dataclass(frozen=True)
class FileQuery:
    """A checked SELECT over `@data`.

    >>> FileQuery.read("select id from @data where x <> '@data'").bind("landed")
    "select id from landed where x <> '@data'"
    """

    text: str

    @classmethod
    def read(cls, text: str, where: str | None = None) -> FileQuery:
        """The query of a model's text; raises if the text is not one SELECT over `@data`. No Spark starts."""
        found = sql.tokens(text)
        if not found:
            raise PenstockError(
                "The model has no SQL that can be parsed", where=where, fix="Write one SELECT over @data."
            )
        problem = _problem(found)
        if problem is not None:
            token, what, fix = problem
            line, column = _position(text, token.start)
            raise PenstockError(f"Line {line}, column {column}: {what}", where=where, fix=fix)
        if not sql.parameters(text, "data"):
            raise PenstockError(
                "The model does not read @data, the new files", where=where, fix="Write SELECT … FROM @data."
            )
        return cls(text)

    def bind(self, relation: str) -> str:
        """The text with the name of a relation, or a query in parentheses, in place of `@data`."""
        return sql.bind(self.text, "data", relation).rstrip().rstrip(";")

    @cached_property
    def virtual(self) -> tuple[str, ...]:
        """The virtual columns that the text names."""
        words = {token.text.lower() for token in sql.tokens(self.text) if token.token_type != TokenType.STRING}
        return tuple(name for name in virtual_columns.TYPES if name in words)

    def once(self, query: str, columns: list[str]) -> str | None:
        """The bound text with each virtual column once; None if no virtual column is there twice.

        `select *, source_file_uri` returns the column twice.
        """
        names = [column.lower() for column in columns]
        twice = {name for name in self.virtual if names.count(name) > 1}
        if not twice:
            return None
        first = [name not in twice or name not in names[:index] for index, name in enumerate(names)]
        aliases = [
            quote(name if keep else f"{name} {index}")
            for index, (name, keep) in enumerate(zip(columns, first, strict=True))
        ]
        kept = [alias for alias, keep in zip(aliases, first, strict=True) if keep]
        return f"select {', '.join(kept)} from (\n{query}\n) as penstock_rows({', '.join(aliases)})"

    @cached_property
    def across_rows(self) -> str | None:
        """The part of the text that looks at several rows, so it holds within each batch only; None if there is none.

        `across_rows_as_seen` finds the aggregates that sqlglot does not know.
        """
        try:
            tree = parse_one(self.bind("data"), read="spark")
        except SqlglotError:
            return None
        for node in tree.walk():
            if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window):
                return f"the aggregate {node.sql_name()}"
            for kind, name in _ACROSS.items():
                if isinstance(node, kind):
                    return name
        return None

    def across_rows_as_seen(self, seen: Facts) -> str | None:
        """The same from Spark's plan: an aggregate that this text calls, not a view that the text reads."""
        called = {name.text.lower() for name, after in pairwise(sql.tokens(self.text)) if after.text == "("}
        found = next((call for call in seen.aggregates if call.name in called), None)
        return None if found is None else f"the aggregate {found}"

    @cached_property
    def changes_file_uri(self) -> str | None:
        """The part of the text that computes `source_file_uri` from anything but that column; None if there is none.

        The text shows the items of a SELECT and the branches of a UNION. Only Spark knows whether a `*` or a name is a
        column of `@data`.
        """
        try:
            tree = parse_one(self.bind("data"), read="spark")
        except SqlglotError:
            words = {token.text.upper() for token in sql.tokens(self.text) if token.token_type != TokenType.STRING}
            return "a UNION, in SQL that can't be checked" if "UNION" in words else None
        for select in tree.find_all(exp.Select):
            for item in select.selects:
                if item.alias_or_name.lower() == FILE_URI and not _is_file_uri(item):
                    return item.sql("spark")
        for alias in tree.find_all(exp.TableAlias):
            if any(column.name.lower() == FILE_URI for column in alias.columns):
                return f"the column list of {alias.name or 'a subquery'}"
        for union in tree.find_all(exp.Union):
            first, *others = _branches(union)
            if not all(_same_positions(first, other) for other in others):
                return "a UNION whose branches do not have it in the same position"
        return None


def _is_file_uri(item: exp.Expr) -> bool:
    plain = item.unalias()
    return isinstance(plain, exp.Column) and plain.name.lower() == FILE_URI


def _branches(query: exp.Expr) -> list[exp.Expr]:
    """The queries that a UNION combines; the first one names the columns."""
    if isinstance(query, (exp.Subquery, exp.Paren)):
        return _branches(query.this)
    if isinstance(query, exp.Union):
        return _branches(query.this) + _branches(query.expression)
    return [query]


def _same_positions(first: exp.Expr, other: exp.Expr) -> bool:
    """Whether `source_file_uri`, and each `*` that may have it, is in the same position of both queries."""

    def positions(query: exp.Expr) -> list[str]:
        items = query.selects if isinstance(query, exp.Select) else []
        return ["*" if item.is_star else FILE_URI if _is_file_uri(item) else "" for item in items]

    return positions(first) == positions(other) or not any(positions(first))


_ACROSS: dict[type[exp.Expr], str] = {
    exp.Group: "GROUP BY",
    exp.Distinct: "DISTINCT",
    exp.Window: "a window function",
    exp.Limit: "LIMIT",
    exp.Offset: "OFFSET",
    exp.Intersect: "INTERSECT",
    exp.Except: "EXCEPT",
}


def _problem(found: list[Token]) -> tuple[Token, str, str] | None:
    """The first token that cannot be in a model, the reason, and how to write it instead."""
    for index, token in enumerate(found):
        after = found[index + 1] if index + 1 < len(found) else None
        glued = after is not None and after.start == token.end + 1
        if token.token_type == TokenType.HASH:
            word = f"#{after.text}" if glued and after is not None else "#"
            return token, f"{word} is preprocessor syntax, not SQL", "Write it in Jinja: {% if … %}, {% set … %}."
        if token.token_type == TokenType.PARAMETER:
            if not glued or after is None or after.text.lower() != "data":
                name = f"@{after.text}" if glued and after is not None else "@"
                return (
                    token,
                    f"{name} is not known: a model reads @data only",
                    "Use ref(), source() or var() in Jinja.",
                )
        if token.token_type == TokenType.SEMICOLON and after is not None:
            return (
                after,
                "a second statement begins here; a model is one SELECT",
                "Use a pre_hook or post_hook for the other one.",
            )
    first = found[0]
    verb = read(_text_of(found)).verb if first.text.upper() in ("WITH", "FROM") else first.text.upper()
    if verb in _SELECTS or verb == "FROM":
        return None
    if verb in _SCRIPTING:
        return first, f"{verb} is scripting, not a query", "Write one SELECT; use Jinja for variables and branches."
    return (
        first,
        f"{verb} is not a query; a model is one SELECT",
        "Write the SELECT only: penstock writes its rows to the table.",
    )


def _text_of(found: list[Token]) -> str:
    return " ".join("'x'" if token.token_type == TokenType.STRING else token.text for token in found)


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
