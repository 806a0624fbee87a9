"""The parts of a user's CREATE and ALTER statements, and CREATE TABLE with the location of its relation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

from penstock.errors import PenstockError
from penstock.sql import quoting
from penstock.sql.quoting import literal
from penstock.sql.statement import Statement
from penstock.sql.tokens import CLOSING, OPENING, is_string, outer_tokens, tokens


def with_location(statement: Statement, location: str) -> str:
    """CREATE TABLE with the location of its relation, unless it names one itself; an error for USING without delta."""
    if "LOCATION" in statement.after:
        return statement.text
    quoted = literal(location)
    outer = list(outer_tokens(tokens(statement.text)))
    rest = [token for token in outer if token.start >= statement.after_name]
    if rest and rest[0].text.upper() in ("SHALLOW", "DEEP", "CLONE", "LIKE"):
        return f"{statement.text.rstrip().rstrip(';')} LOCATION {quoted}"
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
        return f"{statement.text[:at]} LOCATION {quoted}{statement.text[at:]}"
    return f"{statement.text[:at]} USING delta LOCATION {quoted}{statement.text[at:]}"


def without_replace(text: str) -> str:
    """The statement with CREATE in place of CREATE OR REPLACE, padded with spaces, so Spark's line and column numbers
    stay right.

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
    """The parts of a CREATE VIEW."""

    query: str
    columns: tuple[str, ...]
    comment: str | None


def view_text(statement: Statement) -> ViewText:
    """The query, columns and comment of a CREATE VIEW; an error if it has no AS."""
    found = [token for token in tokens(statement.text) if token.start >= statement.after_name]
    outer = list(outer_tokens(found))
    columns: list[str] = []
    comment = None
    if outer and outer[0].text == "(":
        depth = 0
        expect = True
        for token in found:
            depth += (token.text in OPENING) - (token.text in CLOSING)
            if depth == 0:
                break
            if depth == 1 and token.text == ",":
                expect = True
            elif expect and token.text not in OPENING:
                columns.append(token.text)
                expect = False
    for token, after in pairwise(outer):
        if token.text.upper() == "AS" and not is_string(token):
            return ViewText(statement.text[token.end + 1 :].strip().rstrip(";"), tuple(columns), comment)
        if token.text.upper() == "COMMENT" and is_string(after):
            comment = after.text
    raise PenstockError(
        "This CREATE VIEW has no AS", where=quoting.shown(statement.parts), fix="Write the query of the view after AS."
    )


def text_after(statement: Statement, *words: str) -> str:
    """The text from a run of words after the statement's name to its end; an error if they are missing."""
    outer = [token for token in outer_tokens(tokens(statement.text)) if token.start >= statement.after_name]
    for index in range(len(outer) - len(words)):
        if tuple(token.text.upper() for token in outer[index : index + len(words)]) == words:
            return statement.text[outer[index + len(words)].start :].strip().rstrip(";")
    raise PenstockError(
        f"{' '.join(words)} is missing in this statement",
        where=statement.text[:80],
        fix=f"Write {' '.join(words)} after the relation's name.",
    )


def string_after(statement: Statement, word: str) -> str:
    """The string that follows a word after the statement's name; an error if there is none."""
    outer = [token for token in outer_tokens(tokens(statement.text)) if token.start >= statement.after_name]
    for token, after in pairwise(outer):
        if token.text.upper() == word and not is_string(token) and is_string(after):
            return after.text
    raise PenstockError(
        f"{word} is missing in this statement, or has no text in quotes",
        where=statement.text[:80],
        fix=f"Write {word} '…' after the relation's name.",
    )
