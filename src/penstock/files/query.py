"""The SELECT of a file model: what is refused, where `@data` stands, and whether it is row by row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError
from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from penstock.errors import PenstockError
from penstock.sql import tokens as sql
from penstock.sql.quoting import quote
from penstock.sql.statement import read

if TYPE_CHECKING:
    from penstock.spark.facts import Facts

FILE_URI = "source_file_uri"
VIRTUAL = {
    FILE_URI: "_metadata.file_path",
    "source_file_length": "_metadata.file_size",
    "source_file_modified": "_metadata.file_modification_time",
    # No store that is read here tells when a file was made.
    "source_file_created": "cast(null as timestamp)",
}
"""Columns that `@data` has when the SELECT names them, each with what makes it."""
_SELECTS = ("SELECT", "(", "VALUES", "TABLE")
_SCRIPTING = {"DECLARE", "BEGIN", "SET", "IF", "WHILE", "FOR", "CALL", "EXECUTE", "USE", "LET"}


@dataclass(frozen=True)
class Model:
    """A checked SELECT over `@data`.

    >>> Model.read("select id from @data where x <> '@data'").bind("landed")
    "select id from landed where x <> '@data'"
    """

    text: str

    @classmethod
    def read(cls, text: str, where: str | None = None) -> Model:
        """Refuse, before anything is started, what is not one SELECT over `@data`."""
        found = sql.tokens(text)
        if not found:
            raise PenstockError("The model is no SQL that can be read", where=where, fix="Write one SELECT over @data.")
        problem = _problem(found)
        if problem is not None:
            token, what, fix = problem
            line, column = _position(text, token.start)
            raise PenstockError(f"Line {line}, column {column}: {what}", where=where, fix=fix)
        model = cls(text)
        if not sql.parameters(text, "data"):
            raise PenstockError(
                "The model does not read @data, the files that are new", where=where, fix="Write SELECT … FROM @data."
            )
        return model

    def bind(self, relation: str) -> str:
        """The text with a relation's name, or a query in parentheses, in place of `@data`."""
        return sql.bind(self.text, "data", relation).rstrip().rstrip(";")

    @cached_property
    def virtual(self) -> tuple[str, ...]:
        """The virtual columns that it names."""
        words = {token.text.lower() for token in sql.tokens(self.text) if token.token_type != TokenType.STRING}
        return tuple(name for name in VIRTUAL if name in words)

    def once(self, query: str, columns: list[str]) -> str | None:
        """The bound text with each virtual column once, where `select *, source_file_uri` has it twice."""
        names = [column.lower() for column in columns]
        twice = {name for name in self.virtual if names.count(name) > 1}
        if not twice:
            return None
        first = [name not in twice or name not in names[:index] for index, name in enumerate(names)]
        aliases = [quote(name if keep else f"{name} {index}") for index, (name, keep) in enumerate(zip(columns, first))]
        kept = [alias for alias, keep in zip(aliases, first) if keep]
        return f"select {', '.join(kept)} from (\n{query}\n) as penstock_rows({', '.join(aliases)})"

    @cached_property
    def across_rows(self) -> str | None:
        """What in its text looks at more than one row, so that it holds within each batch only; None when nothing does.

        Aggregates that sqlglot does not know are found by `across_rows_as_seen`.
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
        """The same by Spark's plan: aggregates that are called in this text, not in a view that it reads."""
        called = {name.text.lower() for name, after in pairwise(sql.tokens(self.text)) if after.text == "("}
        found = next((call for call in seen.aggregates if call.name in called), None)
        return None if found is None else f"the aggregate {found}"

    @cached_property
    def changes_file_uri(self) -> str | None:
        """The part that makes `source_file_uri` out of anything but that column; None when the text shows none.

        Text shows what stands in a SELECT and in the branches of a UNION. Whether a `*` or a name is that of `@data`
        is Spark's to tell.
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
            if not all(_same_places(first, other) for other in others):
                return "a UNION whose branches do not have it in the same place"
        return None


def _is_file_uri(item: exp.Expr) -> bool:
    plain = item.unalias()
    return isinstance(plain, exp.Column) and plain.name.lower() == FILE_URI


def _branches(query: exp.Expr) -> list[exp.Expr]:
    """The queries that a UNION puts together, the one that gives the names first."""
    if isinstance(query, (exp.Subquery, exp.Paren)):
        return _branches(query.this)
    if isinstance(query, exp.Union):
        return _branches(query.this) + _branches(query.expression)
    return [query]


def _same_places(first: exp.Expr, other: exp.Expr) -> bool:
    """Whether `source_file_uri`, and each `*` that may hold it, stands in the same place of both."""

    def places(query: exp.Expr) -> list[str]:
        items = query.selects if isinstance(query, exp.Select) else []
        return ["*" if item.is_star else FILE_URI if _is_file_uri(item) else "" for item in items]

    return places(first) == places(other) or not any(places(first))


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
    """The first token that has no place in a model, what it is, and what to write instead."""
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
                    f"{name} is not known: a model reads @data alone",
                    "Use ref(), source() or var() in Jinja.",
                )
        if token.token_type == TokenType.SEMICOLON and after is not None:
            return after, "a second statement begins here; a model is one SELECT", "Use a pre_hook or post_hook for it."
    first = found[0]
    verb = read(_text_of(found)).verb if first.text.upper() in ("WITH", "FROM") else first.text.upper()
    if verb in _SELECTS or verb == "FROM":
        return None
    if verb in _SCRIPTING:
        return first, f"{verb} is scripting, not a query", "Write one SELECT; use Jinja for variables and branches."
    return (
        first,
        f"{verb} does not read, it does; a model is one SELECT",
        "Write the SELECT: the writing is penstock's.",
    )


def _text_of(found: list[Token]) -> str:
    return " ".join("'x'" if token.token_type == TokenType.STRING else token.text for token in found)


def _position(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1
