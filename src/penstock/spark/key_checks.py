"""Checks of a key that run inside of Spark's own jobs: SQL that raises, and the errors that people read instead.

A check in the same job reads no row twice and cannot be overtaken by another commit.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from penstock.errors import PenstockError, StatementError
from penstock.sql.quoting import literal, quote

_NOT_UNIQUE, _NULL, _TAKEN = "penstock-not-unique", "penstock-null", "penstock-there"
# The condition of every `raise_error`: which check it was is in the text, because Spark has no place for a class of ours.
_RAISED = "USER_RAISED_EXCEPTION"
_OURS = re.compile(rf"({_NOT_UNIQUE}|{_NULL}|{_TAKEN}) (\{{.*?\}})(?: SQLSTATE|$)", re.DOTALL)


def raise_not_unique(key: Sequence[str], values: Sequence[str]) -> str:
    """An expression that fails: the model's result has the key more than once."""
    return _raise(_NOT_UNIQUE, key, values)


def raise_null(key: Sequence[str], values: Sequence[str]) -> str:
    """An expression that fails: a column of the key is null."""
    return _raise(_NULL, key, values)


def raise_taken(key: Sequence[str], values: Sequence[str]) -> str:
    """An expression that fails: the table already has a row with the key of a new row."""
    return _raise(_TAKEN, key, values)


def without_nulls(query: str, key: Sequence[str]) -> str:
    """The query, which fails if a key is null."""
    keys = [quote(column) for column in key]
    null = " or ".join(f"{column} is null" for column in keys)
    return f"select * from (\n{query}\n) where case when {null} then {raise_null(key, keys)} else true end"


def repeated(query: str, key: Sequence[str]) -> str:
    """A query for one key, as JSON, that the query's result has more than once; no row if there is none."""
    keys = [quote(column) for column in key]
    return (
        f"select {_example(key, keys)} as example from (\n{query}\n) "
        f"group by {', '.join(keys)} having count(*) > 1 limit 1"
    )


def not_unique(key: Sequence[str], example: str, where: str) -> PenstockError:
    return PenstockError(
        f"`unique_key` ({', '.join(key)}) is not unique in the model's result: {example} comes more than once",
        where=where,
        fix="Nothing was changed. Add the columns that tell these rows apart, or make the model return one of them.",
    )


def explained(error: StatementError, key: Sequence[str], where: str) -> PenstockError | None:
    """The error of one of these checks, in words; None if Spark failed for another reason."""
    found = _OURS.search(str(error)) if (error.condition or "").startswith(_RAISED) else None
    if found is None:
        return None
    kind, example = found.groups()
    if kind == _NOT_UNIQUE:
        return not_unique(key, example, where)
    if kind == _NULL:
        return PenstockError(
            f"`unique_key` ({', '.join(key)}) is null in the model's result: {example}",
            where=where,
            fix="Nothing was changed. Filter such rows out, or give them a key.",
        )
    return PenstockError(
        f"A new row has the key {example}, and another row of the table already has this key: the key is not unique "
        "in the model's result, or another writer added that row",
        where=where,
        fix="Nothing was changed. Make the key unique, or run with --full-refresh.",
    )


def _raise(kind: str, key: Sequence[str], values: Sequence[str]) -> str:
    return f"raise_error(concat('{kind} ', {_example(key, values)}))"


def _example(key: Sequence[str], values: Sequence[str]) -> str:
    """The key's columns and values as JSON."""
    pairs = ", ".join(f"{literal(column)}, {value}" for column, value in zip(key, values, strict=True))
    return f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))"
