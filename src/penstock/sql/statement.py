"""The little that must be known of a statement before Spark reads it: its verb, its target, and its own words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.sql.names import CATALOG, Name, in_lake
from penstock.sql.tokens import dotted_name, is_string, outer_tokens, tokens

if TYPE_CHECKING:
    from sqlglot.tokens import Token  # type: ignore[attr-defined]

_QUERIES = {"SELECT", "VALUES", "TABLE", "FROM", "(", "DESCRIBE", "DESC", "SHOW", "EXPLAIN", "LIST"}
_AFTER_CTE = {"SELECT", "VALUES", "TABLE", "FROM", "INSERT", "MERGE", "UPDATE", "DELETE"}
_WRITES = {
    "INSERT",
    "MERGE",
    "UPDATE",
    "DELETE",
    "CREATE",
    "REPLACE",
    "TRUNCATE",
    "RESTORE",
    "ALTER",
    "DROP",
    "OPTIMIZE",
    "VACUUM",
    "REORG",
    "COMMENT",
}
_BEFORE_A_NAME = {
    "INTO",
    "OVERWRITE",
    "FROM",
    "TABLE",
    "VIEW",
    "SCHEMA",
    "DATABASE",
    "OR",
    "REPLACE",
    "IF",
    "NOT",
    "EXISTS",
    "EXTERNAL",
    "ON",
    "WITH",
    "EVOLUTION",
}
# Statements that change nothing on disk, besides queries.
_OF_THE_SESSION = {"SET", "RESET", "USE", "DECLARE", "CACHE", "UNCACHE", "CLEAR", "REFRESH", "ADD"}
_A_QUERY = {"SELECT", "VALUES", "FROM"}
_TEMPORARY = {"TEMPORARY", "TEMP", "GLOBAL"}
_SCHEMAS = {"SCHEMA", "DATABASE", "NAMESPACE"}
_OBJECTS = {"TABLE", "VIEW", "SCHEMA", "DATABASE", "NAMESPACE", "FUNCTION"}


@dataclass(frozen=True)
class Statement:
    """A statement's verb, target and own words, as they are known before Spark reads it."""

    text: str
    verb: str
    """The statement's first word, after any CTEs, in capitals: SELECT, INSERT, CREATE, …"""
    object: str | None = None
    """For CREATE, DROP and ALTER: TABLE, VIEW, SCHEMA; None otherwise."""
    parts: tuple[str, ...] = ()
    """The dotted name of the relation or schema that it writes, as written."""
    temporary: bool = False
    before: tuple[str, ...] = ()
    """Its words before that name, in capitals."""
    after: tuple[str, ...] = ()
    """Its own words after that name, in capitals, without quotes, parentheses, and the words of an embedded query."""
    after_name: int = 0
    """The position in the text after that name."""

    @property
    def is_query(self) -> bool:
        return self.verb in _QUERIES

    @property
    def changes_data(self) -> bool:
        return self.verb in _WRITES and not (self.verb == "CREATE" and self.temporary)

    @property
    def only_reads(self) -> bool:
        """Whether it is known to change nothing on disk; False for a script, or for a command that is new."""
        return self.is_query or self.verb in _OF_THE_SESSION or (self.verb == "CREATE" and self.temporary)

    @property
    def target(self) -> Name | None:
        """The relation that it writes, if it is the lake's; None for a name of another catalog."""
        if self.verb in ("CREATE", "DROP", "ALTER") and self.object not in ("TABLE", "VIEW"):
            return None
        parts = in_lake(self.parts, 2)
        return Name(*parts) if parts is not None and parts[0].lower() != "delta" else None

    @property
    def schema(self) -> str | None:
        """For CREATE, DROP and ALTER SCHEMA: the schema's name, if it is the lake's."""
        parts = in_lake(self.parts, 1) if self.object in _SCHEMAS else None
        return None if parts is None else parts[0]


def read(text: str) -> Statement:
    """The kind of a statement, and the relation that it writes."""
    found = tokens(text)
    if not found:
        return Statement(text, verb=_first_word(text))
    outer = list(outer_tokens(found))
    start = 0
    first = outer[0].text.upper()
    if first in ("WITH", "FROM"):
        wanted = _AFTER_CTE - {"FROM"} if first == "FROM" else _AFTER_CTE
        start = next((i for i, token in enumerate(outer) if i and token.text.upper() in wanted), 0)
        if start == 0 or outer[start].text.upper() not in ("INSERT", "MERGE", "UPDATE", "DELETE"):
            return Statement(text, verb="SELECT")
    verb = outer[start].text.upper()
    if verb in _QUERIES or verb not in _WRITES:
        return Statement(text, verb=verb)
    kind, temporary, index = None, False, start + 1
    while index < len(outer):
        word = outer[index].text.upper()
        quoted = text[outer[index].start : outer[index].start + 1] == "`"
        if not quoted and word in _TEMPORARY:
            temporary = True
        elif not quoted and word in _BEFORE_A_NAME | _OBJECTS:
            kind = word if word in _OBJECTS and kind is None else kind
        else:
            break
        index += 1
    before = tuple(token.text.upper() for token in outer[start:index])
    parts, end = dotted_name(outer, index)
    return Statement(
        text,
        verb=verb,
        object=kind,
        parts=tuple(parts),
        temporary=temporary,
        before=before,
        after=tuple(token.text.upper() for token in _clauses(text, outer, end)),
        after_name=end,
    )


def describes(text: str) -> bool:
    """Whether a statement is about the columns or the names of relations, and reads no rows."""
    found = tokens(text)
    words = [token.text.upper() for token in found[:2]]
    # DESCRIBE of a query makes the query's plan, but reads no rows either.
    return words[:1] in (["SHOW"], ["DESCRIBE"], ["DESC"])


@dataclass(frozen=True)
class Shown:
    """The part of the lake that a SHOW lists."""

    schemas: bool = False
    relations_of: str | None = None
    """The schema whose relations it lists."""


def shown(text: str) -> Shown:
    """The part of the lake that a SHOW lists.

    >>> shown("show tables in silver like 'a*'"), shown("show schemas")
    (Shown(schemas=False, relations_of='silver'), Shown(schemas=True, relations_of=None))
    """
    found = tokens(text)
    words = [token.text.upper() for token in found]
    at = next((index for index, word in enumerate(words) if word in ("IN", "FROM")), None)
    place = [] if at is None else dotted_name(found, at + 1)[0]
    if words[1:2] and words[1] in ("SCHEMAS", "DATABASES", "NAMESPACES"):
        return Shown(schemas=[part.lower() for part in place] in ([], [CATALOG]))
    if words[1:2] and words[1] in ("TABLES", "TABLE", "VIEWS"):
        schema = in_lake(place, 1)
        return Shown(relations_of=schema[0] if schema else None)
    return Shown()


def _clauses(text: str, outer: list[Token], begin: int) -> Iterator[Token]:
    """The unquoted words from here on, up to the query that a statement may end with."""
    last = ""
    for token in outer:
        if token.start < begin or is_string(token) or text[token.start] == "`":
            continue
        word = token.text.upper()
        # AS in VERSION AS OF begins no query.
        if word in _A_QUERY or (word == "AS" and last not in ("VERSION", "TIMESTAMP")):
            return
        yield token
        last = word


def _first_word(text: str) -> str:
    words = text.split(None, 1)
    return words[0].upper() if words else ""
