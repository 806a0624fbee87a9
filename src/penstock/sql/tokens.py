"""The tokens of a SQL text: sqlglot finds the positions, and the user's own text is spliced.

Spark's parser has the last word on what is valid SQL: a text that can't be read here is passed on as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

from penstock.sql.names import CATALOG

if TYPE_CHECKING:
    from sqlglot.tokens import Token  # type: ignore[attr-defined]

OPENING, CLOSING = {"(", "[", "{"}, {")", "]", "}"}


def tokens(text: str) -> list[Token]:
    """The tokens of a text; none if sqlglot can't read it."""
    found = list(_tokenize(text) or ())
    # sqlglot keeps the rest of a command (OPTIMIZE, SHOW, …) as one string: read that on its own.
    if len(found) == 2 and is_string(found[1]) and kind_of(found[0]) != "SELECT":
        head, rest = found
        tail = _tokenize(rest.text)
        if tail is None:
            return found
        offset = text.find(rest.text, head.end)
        return [head, *(_moved(token, offset) for token in tail)]
    return found


def is_string(token: Token) -> bool:
    return kind_of(token) == "STRING"


def kind_of(token: Token) -> str:
    return str(token.token_type.name)


def _moved(token: Token, offset: int) -> Token:
    moved = copy(token)
    moved.start += offset
    moved.end += offset
    return moved


@lru_cache(maxsize=32)
def _tokenize(text: str) -> tuple[Token, ...] | None:
    """The tokens of a text, cached because a statement is read half a dozen times on its way; do not change them."""
    # Imported here, because it takes half a second and a run with nothing to do reads no SQL.
    from sqlglot import tokenize
    from sqlglot.errors import SqlglotError

    try:
        return tuple(tokenize(text, read="spark"))
    except SqlglotError:
        return None


def outer_tokens(found: list[Token]) -> Iterator[Token]:
    """The tokens outside of parentheses, and the outer parentheses themselves."""
    depth = 0
    for token in found:
        string = is_string(token)
        if not string and token.text in CLOSING:
            depth -= 1
        if depth == 0:
            yield token
        if not string and token.text in OPENING:
            depth += 1


def dotted_chain(found: list[Token], index: int) -> Iterator[Token]:
    """The parts of the dotted name that begins at a token."""
    while index < len(found):
        yield found[index]
        if index + 1 >= len(found) or kind_of(found[index + 1]) != "DOT":
            return
        index += 2


def dotted_name(found: list[Token], index: int) -> tuple[list[str], int]:
    chain = list(dotted_chain(found, index))
    return [token.text for token in chain], chain[-1].end + 1 if chain else 0


def statements(text: str) -> list[str]:
    """The statements of a text, one after the other.

    >>> statements("set time zone 'UTC'; select ';' -- one; not two")
    ["set time zone 'UTC'", " select ';' -- one; not two"]
    """
    found = _tokenize(text)
    if found is None:
        return [text]
    ends = [token.start for token in found if kind_of(token) == "SEMICOLON"]
    parts, start = [], 0
    for end in [*ends, len(text)]:
        if any(start <= token.start < end for token in found):
            parts.append(text[start:end])
        start = end + 1
    return parts or [text]


def mentioned(text: str) -> set[tuple[str, str]]:
    """The first two parts of every dotted name in a text, without the lake's own catalog; the lake knows its relations.

    >>> sorted(mentioned("select o.id from silver.orders o join other.silver.items -- not.this"))
    [('o', 'id'), ('other', 'silver'), ('silver', 'orders')]
    """
    found = tokens(text)
    names = set()
    for index, (left, dot) in enumerate(pairwise(found)):
        if (
            kind_of(dot) != "DOT"
            or kind_of(left) in ("STRING", "NUMBER")
            or (index and kind_of(found[index - 1]) == "DOT")
        ):
            continue
        chain = list(dotted_chain(found, index))
        pair = chain[1:3] if chain[0].text.lower() == CATALOG and len(chain) > 2 else chain[:2]
        if len(pair) == 2 and kind_of(pair[1]) not in ("STRING", "NUMBER", "STAR"):
            names.add((pair[0].text.lower(), pair[1].text.lower()))
    return names


def parameters(text: str, name: str) -> list[tuple[int, int]]:
    """The start and end of each `@name` in a text."""
    return [
        (at.start, word.end + 1)
        for at, word in pairwise(tokens(text))
        if kind_of(at) == "PARAMETER" and word.text.lower() == name and word.start == at.end + 1
    ]


def bind(text: str, name: str, relation: str) -> str:
    """The text with a relation's name, or a query in parentheses, in place of `@name`.

    >>> bind("select id from @data where x <> '@data'", "data", "landed")
    "select id from landed where x <> '@data'"
    """
    for start, end in reversed(parameters(text, name)):
        text = text[:start] + relation + text[end:]
    return text


def selected(text: str) -> list[str] | None:
    """The names of a query's columns, in lower case; None if only Spark knows them.

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
