"""Names of relations, as `schema`.`identifier`, and the rules for their parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.errors import PenstockError
from penstock.sql.quoting import dotted, shown, split

CATALOG = "spark_catalog"
"""Spark's name for the catalog of the lake. A name in another catalog is never a relation of the lake."""

_SPARK_NAME = re.compile(r"[A-Za-z0-9_]+")


def check_part(part: str, what: str) -> str:
    """The part of a relation's name, unchanged. An error if it is not a valid folder name."""
    problem = None
    if not part or not part.strip():
        problem = "is empty"
    elif part.startswith("."):
        problem = "begins with a dot"
    elif "/" in part or "\\" in part:
        problem = "contains a slash"
    elif ".." in part:
        problem = "contains '..'"
    elif any(ord(char) < 32 or ord(char) == 127 for char in part):
        problem = "contains a control character"
    elif len(part.encode()) > 255:
        problem = "is longer than 255 bytes"
    if problem:
        raise PenstockError(
            f"The {what} {part!r} {problem}",
            fix="It becomes a folder of <root>/<schema>/<identifier>. Use letters, digits and underscores.",
        )
    return part


def check_for_spark(*parts: str) -> None:
    """Raise an error if Spark's catalog does not accept a name."""
    for part in parts:
        if not _SPARK_NAME.fullmatch(part):
            raise PenstockError(
                f"{part!r} can't be the name of a schema, table or view",
                fix="Use only ASCII letters, digits and underscores, as Spark requires. Columns may have any name.",
            )


def is_part(text: str) -> bool:
    """Whether a text is a valid part of a relation's name."""
    try:
        check_part(text, "name")
    except PenstockError:
        return False
    return True


@dataclass(frozen=True)
class Name:
    """A relation's name in lower case, because Spark ignores the case of names.

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
        """The name in a text such as `silver.orders`. An error if the text is not a relation's name."""
        parts = in_lake(split(text), 2)
        if parts is None:
            raise PenstockError(
                f"{text!r} is not a relation's name",
                fix="Write it as schema.identifier. Put a part with a dot or a backtick in backticks.",
            )
        return cls(*parts)

    def __str__(self) -> str:
        return shown((self.schema, self.identifier))

    @property
    def sql(self) -> str:
        return dotted((self.schema, self.identifier))


def in_lake(parts: Sequence[str], length: int) -> list[str] | None:
    """The last `length` parts of a dotted name; None if other parts than the lake's catalog stand before them.

    >>> in_lake(["spark_catalog", "silver", "orders"], 2), in_lake(["other", "silver", "orders"], 2)
    (['silver', 'orders'], None)
    """
    if len(parts) == length + 1 and parts[0].lower() == CATALOG:
        parts = parts[1:]
    return list(parts) if len(parts) == length else None
