"""The key `source_columns`: the declared columns of files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Spark's simple types, in all spellings. `is_type` parses the types inside of <>.
_SIMPLE = re.compile(
    r"boolean|byte|tinyint|short|smallint|int|integer|long|bigint|float|real|double|date|timestamp|timestamp_ltz|"
    r"timestamp_ntz|string|binary|variant|void|(?:decimal|dec|numeric)(?:\(\s*\d+\s*(?:,\s*-?\d+\s*)?\))?|"
    r"(?:char|varchar)\(\s*\d+\s*\)|interval(?: [a-z]+)*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SourceColumn:
    """A declared column. If `extract` is False, the SELECT computes it."""

    name: str
    type: str
    extract: bool = True


def source_columns(value: Any) -> tuple[SourceColumn, ...]:
    wanted = "must be a list of {name, type}"
    if not isinstance(value, (list, tuple)):
        raise ValueError(wanted)
    columns = []
    for item in value:
        if not isinstance(item, Mapping) or not item.get("name") or not set(item) <= {"name", "type", "extract"}:
            raise ValueError(f"{wanted}, with `extract: false` for a column that the SELECT computes")
        kind, extract = str(item.get("type") or ""), item.get("extract", True)
        if not isinstance(extract, bool):
            raise ValueError(f"must have true or false as `extract` of {item['name']}")
        if (extract or kind) and not is_type(kind):
            raise ValueError(f"has {kind!r} as the type of {item['name']}, which is not a type of Spark SQL")
        columns.append(SourceColumn(str(item["name"]), kind, extract))
    names = [column.name.lower() for column in columns]
    if len(set(names)) < len(names):
        raise ValueError("must name each column once")
    return tuple(columns)


def is_type(text: str) -> bool:
    """Whether a text is a type of Spark SQL.

    >>> is_type("map<string, array<decimal(10,2)>>"), is_type("strnig")
    (True, False)
    """
    text = text.strip()
    if found := re.fullmatch(r"(array|map|struct)\s*<(.*)>", text, re.IGNORECASE | re.DOTALL):
        kind, parts = found.group(1).lower(), _split(found.group(2))
        if kind == "struct":
            named = [re.fullmatch(r"\s*(?:`[^`]+`|\w+)\s*(?::|\s)\s*(.+?)\s*", part, re.DOTALL) for part in parts]
            return all(item is not None and is_type(item.group(1)) for item in named)
        return len(parts) == {"array": 1, "map": 2}[kind] and all(is_type(part) for part in parts)
    return _SIMPLE.fullmatch(text) is not None


def _split(text: str) -> list[str]:
    """The parts of a text between the commas that are outside of brackets."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]
