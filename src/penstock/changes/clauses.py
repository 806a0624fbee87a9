"""The positions of the clauses of a SELECT in its text, from its tokens."""

from __future__ import annotations

from sqlglot.tokens import Token, TokenType  # type: ignore[attr-defined]

from penstock.errors import PenstockError
from penstock.sql import tokens as sql

_CLAUSES = {"WHERE", "GROUP", "HAVING", "QUALIFY", "WINDOW", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT"}
_BEFORE_JOIN = {"LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS", "SEMI", "ANTI", "NATURAL"}
_SIDED = {"LEFT", "RIGHT", "FULL", "SEMI", "ANTI"}


def outside(found: list[Token], begin: int, end: int) -> list[Token]:
    """The tokens between two positions that are outside of parentheses."""
    depth, level = 0, []
    for token in found[begin:end]:
        depth -= token.token_type == TokenType.R_PAREN
        if depth == 0:
            level.append(token)
        depth += token.token_type == TokenType.L_PAREN
    return level


def select_at(found: list[Token], depth: int) -> tuple[int, int]:
    """The first token of the SELECT that is so many subqueries deep, and the token after its last one."""
    begin, end = _bare(found, 0, len(found))
    for _ in range(depth):
        outer = outside(found, begin, end)
        at = from_in(outer)
        assert at is not None
        opening = found.index(outer[at + 1])
        begin, end = _bare(found, opening, closing(found, opening) + 1)
    return begin, end


def _bare(found: list[Token], begin: int, end: int) -> tuple[int, int]:
    while found[begin].token_type == TokenType.L_PAREN and closing(found, begin) == end - 1:
        begin, end = begin + 1, end - 1
    return begin, end


def closing(found: list[Token], opening: int) -> int:
    """The position of the parenthesis that closes the one at `opening`."""
    depth = 0
    for index in range(opening, len(found)):
        depth += (found[index].token_type == TokenType.L_PAREN) - (found[index].token_type == TokenType.R_PAREN)
        if depth == 0:
            return index
    raise PenstockError("A parenthesis is not closed")


def from_in(level: list[Token]) -> int | None:
    """The position of FROM, other than in IS DISTINCT FROM; None if there is none."""
    for index, token in enumerate(level):
        if token.token_type == TokenType.FROM and level[index - 1].token_type != TokenType.DISTINCT:
            return index
    return None


def begins_at(level: list[Token], index: int) -> bool:
    """Whether a clause begins at a position; `t.limit` is a column."""
    token = level[index]
    # sqlglot makes one token of GROUP BY.
    word = token.text.upper().partition(" ")[0]
    named = token.token_type in (TokenType.STRING, TokenType.IDENTIFIER) or level[index - 1].token_type == TokenType.DOT
    return word in _CLAUSES and not named


def items(text: str, level: list[Token]) -> list[str]:
    """The texts of a SELECT's items."""
    start = 1
    while level[start].token_type in (TokenType.DISTINCT, TokenType.ALL, TokenType.HINT):
        start += 1
    items, begin = [], level[start].start
    for token in level[start:]:
        if token.token_type == TokenType.COMMA:
            items.append(text[begin : token.start])
            begin = token.end + 1
    last = level[-1]
    return [*items, text[begin : last.end + 1]]


def sided_joins(from_text: str) -> list[tuple[int, int]]:
    """The text positions of each JOIN that is not an inner one, with the words before it."""
    found = sql.tokens(from_text)
    level = outside(found, 0, len(found))
    positions = []
    for index, token in enumerate(level):
        if token.token_type == TokenType.JOIN:
            first = index
            while level[first - 1].text.upper() in _BEFORE_JOIN:
                first -= 1
            if {word.text.upper() for word in level[first:index]} & _SIDED:
                positions.append((level[first].start, token.end + 1))
    return positions
