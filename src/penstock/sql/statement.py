"""What is done to SQL text: sqlglot finds the positions, the user's own text is spliced.

Spark's parser has the last word on what is valid SQL: a text that can't be read here is passed on as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.sql import quoting
from penstock.sql.names import CATALOG, Name, in_lake
from penstock.sql.quoting import literal

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
# What changes nothing on disk, besides queries.
_OF_THE_SESSION = {"SET", "RESET", "USE", "DECLARE", "CACHE", "UNCACHE", "CLEAR", "REFRESH", "ADD"}
_A_QUERY = {"SELECT", "VALUES", "FROM"}
_TEMPORARY = {"TEMPORARY", "TEMP", "GLOBAL"}
_SCHEMAS = {"SCHEMA", "DATABASE", "NAMESPACE"}
_OBJECTS = {"TABLE", "VIEW", "SCHEMA", "DATABASE", "NAMESPACE", "FUNCTION"}
_OPENING, _CLOSING = {"(", "[", "{"}, {")", "]", "}"}


@dataclass(frozen=True)
class Statement:
    """The little that must be known of a statement before Spark reads it."""

    text: str
    verb: str
    """Its first word, after any CTEs, in capitals: SELECT, INSERT, CREATE, …"""
    object: str | None = None
    """For CREATE, DROP and ALTER: TABLE, VIEW, SCHEMA; None otherwise."""
    parts: tuple[str, ...] = ()
    """The dotted name of what it writes, as written."""
    temporary: bool = False
    before: tuple[str, ...] = ()
    """Its words before that name, in capitals."""
    after: tuple[str, ...] = ()
    """Its own words after that name, outside of quotes and parentheses: those of a query in it are not its own."""
    after_name: int = 0
    """Where the text goes on after that name."""

    @property
    def is_query(self) -> bool:
        return self.verb in _QUERIES

    @property
    def changes_data(self) -> bool:
        return self.verb in _WRITES and not (self.verb == "CREATE" and self.temporary)

    @property
    def only_reads(self) -> bool:
        """Whether it is known to change nothing on disk: a script, or a command that is new, is not."""
        return self.is_query or self.verb in _OF_THE_SESSION or (self.verb == "CREATE" and self.temporary)

    @property
    def target(self) -> Name | None:
        """The relation that it writes, where that is one of the lake's: a name of another catalog is not."""
        if self.verb in ("CREATE", "DROP", "ALTER") and self.object not in ("TABLE", "VIEW"):
            return None
        parts = in_lake(self.parts, 2)
        return Name(*parts) if parts is not None and parts[0].lower() != "delta" else None

    @property
    def schema(self) -> str | None:
        """For CREATE, DROP and ALTER SCHEMA: its name, where it is one of the lake's."""
        parts = in_lake(self.parts, 1) if self.object in _SCHEMAS else None
        return None if parts is None else parts[0]


def tokens(text: str) -> list[Token]:
    """The tokens of a text; none where sqlglot can't read it."""
    found = list(_tokenize(text) or ())
    # sqlglot keeps the rest of a command (OPTIMIZE, SHOW, …) as one string: read that on its own.
    if len(found) == 2 and is_string(found[1]) and _kind(found[0]) != "SELECT":
        head, rest = found
        tail = _tokenize(rest.text)
        if tail is None:
            return found
        offset = text.find(rest.text, head.end)
        return [head, *(_moved(token, offset) for token in tail)]
    return found


def is_string(token: Token) -> bool:
    return _kind(token) == "STRING"


def _kind(token: Token) -> str:
    return str(token.token_type.name)


def _moved(token: Token, offset: int) -> Token:
    moved = copy(token)
    moved.start += offset
    moved.end += offset
    return moved


@lru_cache(maxsize=32)
def _tokenize(text: str) -> tuple[Token, ...] | None:
    """A statement is looked at half a dozen times on its way: its tokens are made once, and not to be changed."""
    # Not imported above: it takes half a second, and a run with nothing to do reads no SQL.
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return tuple(tokenize(text, read="spark"))
    except SqlglotError:
        return None


def statements(text: str) -> list[str]:
    """The statements of a text, one after the other.

    >>> statements("set time zone 'UTC'; select ';' -- one; not two")
    ["set time zone 'UTC'", " select ';' -- one; not two"]
    """
    found = _tokenize(text)
    if found is None:
        return [text]
    ends = [token.start for token in found if _kind(token) == "SEMICOLON"]
    parts, start = [], 0
    for end in [*ends, len(text)]:
        if any(start <= token.start < end for token in found):
            parts.append(text[start:end])
        start = end + 1
    return parts or [text]


def read(text: str) -> Statement:
    """What kind of statement this is, and what it writes."""
    found = tokens(text)
    if not found:
        return Statement(text, verb=_first_word(text))
    outer = list(_outer(found))
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
    parts, end = _dotted(outer, index)
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


def mentioned(text: str) -> set[tuple[str, str]]:
    """The first two parts of every dotted name in a text, after the lake's own catalog: the lake knows its relations.

    >>> sorted(mentioned("select o.id from silver.orders o join other.silver.items -- not.this"))
    [('o', 'id'), ('other', 'silver'), ('silver', 'orders')]
    """
    found = tokens(text)
    names = set()
    for index, (left, dot) in enumerate(pairwise(found)):
        if _kind(dot) != "DOT" or _kind(left) in ("STRING", "NUMBER") or (index and _kind(found[index - 1]) == "DOT"):
            continue
        chain = list(_chain(found, index))
        pair = chain[1:3] if chain[0].text.lower() == CATALOG and len(chain) > 2 else chain[:2]
        if len(pair) == 2 and _kind(pair[1]) not in ("STRING", "NUMBER", "STAR"):
            names.add((pair[0].text.lower(), pair[1].text.lower()))
    return names


def _chain(found: list[Token], index: int) -> Iterator[Token]:
    """The parts of the dotted name that begins at a token."""
    while index < len(found):
        yield found[index]
        if index + 1 >= len(found) or _kind(found[index + 1]) != "DOT":
            return
        index += 2


def parameters(text: str, name: str) -> list[tuple[int, int]]:
    """Where `@name` stands in a text."""
    return [
        (at.start, word.end + 1)
        for at, word in pairwise(tokens(text))
        if _kind(at) == "PARAMETER" and word.text.lower() == name and word.start == at.end + 1
    ]


def bind(text: str, name: str, relation: str) -> str:
    """The text with a relation's name, or a query in parentheses, in place of `@name`.

    >>> bind("select id from @data where x <> '@data'", "data", "landed")
    "select id from landed where x <> '@data'"
    """
    for start, end in reversed(parameters(text, name)):
        text = text[:start] + relation + text[end:]
    return text


def with_location(statement: Statement, location: str) -> str:
    """CREATE TABLE with the folder where its relation lies, unless it names one itself."""
    if "LOCATION" in statement.after:
        return statement.text
    place = literal(location)
    outer = list(_outer(tokens(statement.text)))
    rest = [token for token in outer if token.start >= statement.after_name]
    if rest and rest[0].text.upper() in ("SHALLOW", "DEEP", "CLONE", "LIKE"):
        return f"{statement.text.rstrip().rstrip(';')} LOCATION {place}"
    at = statement.after_name
    if rest and rest[0].text == "(":
        closing = next(token for token in rest[1:] if token.text == ")")
        at = closing.end + 1
        rest = [token for token in rest if token.start >= at]
    if rest and rest[0].text.upper() == "USING":
        if rest[1].text.lower() != "delta":
            raise PenstockError(
                f"A table of the lake is a Delta table, not {rest[1].text}",
                where=quoting.shown(statement.parts),
                fix="Write USING delta, or leave USING out.",
            )
        at = rest[1].end + 1
        return f"{statement.text[:at]} LOCATION {place}{statement.text[at:]}"
    return f"{statement.text[:at]} USING delta LOCATION {place}{statement.text[at:]}"


def without_replace(text: str) -> str:
    """CREATE OR REPLACE as CREATE; every line and column of it stays where it is.

    >>> without_replace("create or replace table a.b as select 1")
    'create            table a.b as select 1'
    """
    first = tokens(text)[:3]
    if [token.text.upper() for token in first] != ["CREATE", "OR", "REPLACE"]:
        return text
    start, end = first[1].start, first[2].end + 1
    return text[:start] + re.sub(r"\S", " ", text[start:end]) + text[end:]


@dataclass(frozen=True)
class ViewText:
    """CREATE VIEW taken apart."""

    query: str
    columns: tuple[str, ...]
    comment: str | None


def view_text(statement: Statement) -> ViewText:
    found = [token for token in tokens(statement.text) if token.start >= statement.after_name]
    outer = list(_outer(found))
    columns: list[str] = []
    comment = None
    if outer and outer[0].text == "(":
        depth = 0
        expect = True
        for token in found:
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth == 0:
                break
            if depth == 1 and token.text == ",":
                expect = True
            elif expect and token.text not in _OPENING:
                columns.append(token.text)
                expect = False
    for token, after in pairwise(outer):
        if token.text.upper() == "AS" and not is_string(token):
            return ViewText(statement.text[token.end + 1 :].strip().rstrip(";"), tuple(columns), comment)
        if token.text.upper() == "COMMENT" and is_string(after):
            comment = after.text
    raise PenstockError("CREATE VIEW without AS", where=quoting.shown(statement.parts))


@dataclass(frozen=True)
class Shown:
    """What a SHOW lists, as far as it is the lake's."""

    schemas: bool = False
    relations_of: str | None = None
    """The schema whose relations it lists."""


def shown(text: str) -> Shown:
    """What a SHOW is about.

    >>> shown("show tables in silver like 'a*'"), shown("show schemas")
    (Shown(schemas=False, relations_of='silver'), Shown(schemas=True, relations_of=None))
    """
    found = tokens(text)
    words = [token.text.upper() for token in found]
    at = next((index for index, word in enumerate(words) if word in ("IN", "FROM")), None)
    place = [] if at is None else _dotted(found, at + 1)[0]
    if words[1:2] and words[1] in ("SCHEMAS", "DATABASES", "NAMESPACES"):
        return Shown(schemas=[part.lower() for part in place] in ([], [CATALOG]))
    if words[1:2] and words[1] in ("TABLES", "TABLE", "VIEWS"):
        schema = in_lake(place, 1)
        return Shown(relations_of=schema[0] if schema else None)
    return Shown()


def selected(text: str) -> list[str] | None:
    """The names of a query's columns, in lower case; None where only Spark can tell.

    >>> selected("select id, upper(name) as Name from t"), selected("select * from t")
    (['id', 'name'], None)
    """
    from sqlglot import exp, parse_one
    from sqlglot.errors import SqlglotError

    try:
        tree = parse_one(text, read="spark")
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Query) or tree.is_star or not all(tree.named_selects):
        return None
    return [name.lower() for name in tree.named_selects]


def _outer(found: list[Token]) -> Iterator[Token]:
    """The tokens outside of parentheses, the parentheses included."""
    depth = 0
    for token in found:
        string = is_string(token)
        if not string and token.text in _CLOSING:
            depth -= 1
        if depth == 0:
            yield token
        if not string and token.text in _OPENING:
            depth += 1


def _clauses(text: str, outer: list[Token], begin: int) -> Iterator[Token]:
    """The unquoted words from here on, up to the query that a statement may end with."""
    last = ""
    for token in outer:
        if token.start < begin or is_string(token) or text[token.start] == "`":
            continue
        word = token.text.upper()
        # VERSION AS OF goes on.
        if word in _A_QUERY or (word == "AS" and last not in ("VERSION", "TIMESTAMP")):
            return
        yield token
        last = word


def _dotted(found: list[Token], index: int) -> tuple[list[str], int]:
    chain = list(_chain(found, index))
    return [token.text for token in chain], chain[-1].end + 1 if chain else 0


def _first_word(text: str) -> str:
    words = text.split(None, 1)
    return words[0].upper() if words else ""


def text_after(statement: Statement, *words: str) -> str:
    """The text that follows a run of words after the statement's name, to its end."""
    outer = [token for token in _outer(tokens(statement.text)) if token.start >= statement.after_name]
    for index in range(len(outer) - len(words)):
        if tuple(token.text.upper() for token in outer[index : index + len(words)]) == words:
            return statement.text[outer[index + len(words)].start :].strip().rstrip(";")
    raise PenstockError(f"{' '.join(words)} is missing", where=statement.text[:80])


def string_after(statement: Statement, word: str) -> str:
    """The string literal that follows a word after the statement's name."""
    outer = [token for token in _outer(tokens(statement.text)) if token.start >= statement.after_name]
    for token, after in pairwise(outer):
        if token.text.upper() == word and not is_string(token) and is_string(after):
            return after.text
    raise PenstockError(f"{word} has no text in quotes", where=statement.text[:80])
