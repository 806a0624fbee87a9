"""Names and texts in SQL: one function for each, used wherever a statement is put together.

A column that a stranger's JSON brought, a path, a comment: each may hold quotes, backslashes, `--` or `${…}`. None of
these means anything between the quotes that are made here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PINNED = {
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",
}
"""What our sessions fix, so that a quoted name or text is always read as it is meant.

There is no literal that means the same under both settings of the first: `'it\\'s'` keeps its backslash under one of
them, and a text with both quotes can't be written. And Spark replaces `${env:HOME}` before it parses anything, inside
of quotes too, so that a column named so would bring an environment variable into a table.
"""
_PART = re.compile(r"\s*(?:`((?:[^`]|``)*)`|([^.`]*[^.`\s]))\s*")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def quote(name: str) -> str:
    """A name as SQL reads it.

    >>> quote("a`b.c")
    '`a``b.c`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(text: str) -> str:
    r"""A text as a SQL string.

    >>> print(literal("it's C:\\"))
    'it\'s C:\\'
    """
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def split(text: str) -> list[str]:
    """The parts of a dotted name, quoted or not; none where the text is no such name.

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
    """A column's name without the quotes that a config may have around it; a dot in it is taken as it is.

    >>> plain("`my ``key```"), plain("payload.id")
    ('my `key`', 'payload.id')
    """
    name = name.strip()
    parts = split(name) if name.startswith("`") else []
    return parts[0] if len(parts) == 1 else name


def dotted(parts: Iterable[str]) -> str:
    """A name of several parts as SQL reads it."""
    return ".".join(map(quote, parts))


def shown(parts: Iterable[str]) -> str:
    """A name of several parts for people, quoted only where it would not be read back as it is.

    >>> shown(["silver", "orders"]), shown(["silver", "a.b"])
    ('silver.orders', 'silver.`a.b`')
    """
    return ".".join(part if split(part) == [part] else quote(part) for part in parts)


def column(name: str, columns: Iterable[str] = ()) -> str:
    """A column, or a field of a struct, as a config names it, as SQL reads it.

    With `columns`, the names that there are: one that has a dot is found whole, before it is taken for a struct's.

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
    """The column that a config's name is, or is a field of; None where there is no such column."""
    there = {known.lower(): known for known in columns}
    return there.get(plain(name).lower()) or there.get("".join(split(name)[:1]).lower())


def field_name(name: str) -> str:
    """A struct's field as a type names it: quoted where Spark could not read it else."""
    return name if _WORD.fullmatch(name) else quote(name)
