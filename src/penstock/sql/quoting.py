"""Quoting of names and texts in SQL. Every statement of the engine is built with these functions.

A column from someone's JSON, a path or a comment may contain quotes, backslashes, `--` or `${…}`. Between the quotes
that these functions add, such characters have no special meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PINNED = {
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",
}
"""Settings that are fixed in our sessions, so that quoted names and texts always have the same meaning.

`escapedStringLiterals`: if it were true, `'it\\'s'` would keep its backslash, and no literal could hold both kinds of
quotes. `variable.substitute`: Spark would replace `${env:HOME}` before parsing, also inside quotes, so a column with
this name would put an environment variable into a table.
"""
_PART = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^.`]*[^.`\s]))\s*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(name: str) -> str:
    """A name in backticks, for SQL.

    >>> quote("a`b.c")
    '`a``b.c`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    r"""A text as a SQL string literal.

    >>> print(literal("it's C:\\"))
    'it\'s C:\\'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def split(text: str) -> list[str]:
    """The parts of a dotted name, each quoted or not; empty if the text is not such a name.

    >>> split("silver.`a.b`"), split("a..b")
    (['silver', 'a.b'], [])
    """
    parts, at = [], 0
    while found := _PART.match(text, at):
        parts.append(found.group(1).replace("``", "`") if found.group(1) is not None else found.group(2))
        if found.end() == len(text):
            return parts
        if text[found.end()] != ".":
            return []
        at = found.end() + 1
    return []


def plain(name: str) -> str:
    """A column's name from a config, without its backticks. A dot in the name is kept.

    >>> plain("`my ``key```"), plain("payload.id")
    ('my `key`', 'payload.id')
    """
    name = name.strip()
    parts = split(name) if name.startswith("`") else []
    return parts[0] if len(parts) == 1 else name


def dotted(parts: Iterable[str]) -> str:
    """A name of several parts in backticks, for SQL."""
    return ".".join(map(quote, parts))


def shown(parts: Iterable[str]) -> str:
    """A name of several parts for messages. A part has backticks only if `split` needs them.

    >>> shown(["silver", "orders"]), shown(["silver", "a.b"])
    ('silver.orders', 'silver.`a.b`')
    """
    return ".".join(part if split(part) == [part] else quote(part) for part in parts)


def column(name: str, columns: Iterable[str] = ()) -> str:
    """A column or a struct's field from a config, in backticks for SQL.

    `columns` are the existing columns. A name with a dot that is one of them is a column; otherwise it is a field.

    >>> column("payload.id"), column("payload.id", ["Payload.ID"]), column("`a b`")
    ('`payload`.`id`', '`Payload.ID`', '`a b`')
    """
    there = {known.lower(): known for known in columns}
    whole = plain(name)
    if whole.lower() in there:
        return quote(there[whole.lower()])
    parts = split(name)
    return dotted(parts) if parts else quote(whole)


def head(name: str, columns: Iterable[str]) -> str | None:
    """The existing column that a config names, or whose field it names; None if there is no such column."""
    there = {known.lower(): known for known in columns}
    return there.get(plain(name).lower()) or there.get("".join(split(name)[:1]).lower())


def field_name(name: str) -> str:
    """A struct's field for the text of a type, in backticks if Spark needs them."""
    return name if _WORD.fullmatch(name) else quote(name)
