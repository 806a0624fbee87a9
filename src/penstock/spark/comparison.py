"""SQL expressions that compare values the way people do: two values are the same only if nobody can tell them apart."""

from __future__ import annotations

import re

FLOATING = ("float", "double")
_HAS_FLOATING = re.compile(r"\b(float|double)\b")
# By default JSON leaves out nulls and cuts off fractions of a second; changes of these count too.
_JSON = (
    "map('ignoreNullFields', 'false', 'timestampFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX\", "
    "'timestampNTZFormat', \"yyyy-MM-dd'T'HH:mm:ss.SSSSSS\")"
)


def identity(column: str, type: str) -> str:
    """An expression that Spark can group and compare, and that differs whenever the column's value differs.

    >>> identity("d", "double")
    "struct(d, (d = 0 and cast(d as string) like '-%'))"
    """
    comparable = _comparable(column, type)
    if type.lower() in FLOATING:
        return f"struct({comparable}, {is_negative_zero(column)})"
    if comparable.startswith("to_json(") or not _HAS_FLOATING.search(type.lower()):
        return comparable
    # The two zeros inside of a struct, an array or a map differ as texts.
    return f"struct({comparable}, cast({column} as string))"


def is_negative_zero(column: str) -> str:
    """A condition that is true for -0.0. Spark compares, groups and joins 0.0 and -0.0 as one value, and shows two."""
    return f"({column} = 0 and cast({column} as string) like '-%')"


def _comparable(column: str, type: str) -> str:
    """An expression that Spark can group and compare. It differs whenever the value does, except for a zero's sign."""
    kind = type.lower()
    if kind.startswith("map<") and kind.count("map<") == 1 and "variant" not in kind:
        return f"map_entries({column})"
    if kind == "variant":
        # JSON has one null, one kind of number and one kind of text; variants have several.
        return f"struct({column} is null, schema_of_variant({column}), to_json(struct({column} as v), {_JSON}))"
    if "map<" in kind or "variant" in kind:
        return f"to_json(struct({column} as v), {_JSON})"
    if "collate" in kind:
        # A collation may take different letters for equal; the values differ all the same.
        return f"cast({column} as binary)" if kind.startswith("string") else f"to_json(struct({column} as v), {_JSON})"
    return column
