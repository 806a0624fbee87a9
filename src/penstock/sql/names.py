"""The name of a relation: `schema`.`identifier`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.sql.quoting import dotted, shown, split

CATALOG = "spark_catalog"
"""The catalog of the lake's names, as Spark calls it; a name of another catalog is never a relation of the lake."""

_SPARKS = re.compile(r"[A-Za-z0-9_]+")


def check_part(part: str, what: str) -> str:
    """A name becomes a folder, so what a folder's name may not hold is refused here."""
    problem = None
    if not part or not part.strip():
        problem = "is empty"
    elif part.startswith("."):
        problem = "begins with a dot"
    elif "/" in part or "\\" in part:
        problem = "holds a slash"
    elif ".." in part:
        problem = "holds '..'"
    elif any(ord(char) < 32 or ord(char) == 127 for char in part):
        problem = "holds a control character"
    elif len(part.encode()) > 255:
        problem = "is longer than 255 bytes"
    if problem:
        raise PenstockError(
            f"The {what} {part!r} {problem}",
            fix="A relation is a folder <root>/<schema>/<identifier>: use letters, digits and underscores.",
        )
    return part


def check_for_spark(*parts: str) -> None:
    """Refuse a name that Spark's catalog does not take, before anything is made by it."""
    for part in parts:
        if not _SPARKS.fullmatch(part):
            raise PenstockError(
                f"{part!r} can't be the name of a schema, table or view",
                fix="Spark takes ASCII letters, digits and underscores in such names; columns may have any name.",
            )


def is_part(text: str) -> bool:
    try:
        check_part(text, "name")
    except PenstockError:
        return False
    return True


@dataclass(frozen=True)
class Name:
    """A relation's name; Spark's names know no case, so neither do these.

    >>> Name.parse("Silver.`Orders`")
    Name(schema='silver', identifier='orders')
    """

    schema: str
    identifier: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", check_part(self.schema, "schema").lower())
        object.__setattr__(self, "identifier", check_part(self.identifier, "identifier").lower())

    @classmethod
    def parse(cls, text: str) -> Name:
        parts = in_lake(split(text), 2)
        if parts is None:
            raise PenstockError(
                f"{text!r} is not a relation's name",
                fix="Write it as schema.identifier, each in backticks where it holds a dot or a backtick.",
            )
        return cls(*parts)

    def __str__(self) -> str:
        return shown((self.schema, self.identifier))

    @property
    def sql(self) -> str:
        return dotted((self.schema, self.identifier))


def in_lake(parts: Sequence[str], length: int) -> list[str] | None:
    """A dotted name's last `length` parts; None where it has others before them than the lake's own catalog.

    >>> in_lake(["spark_catalog", "silver", "orders"], 2), in_lake(["other", "silver", "orders"], 2)
    (['silver', 'orders'], None)
    """
    if len(parts) == length + 1 and parts[0].lower() == CATALOG:
        parts = parts[1:]
    return list(parts) if len(parts) == length else None
