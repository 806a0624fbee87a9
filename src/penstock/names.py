"""The name of a relation: `schema`.`identifier`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.errors import PenstockError

_QUOTED_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def check_part(part: str, what: str) -> str:
    """A name becomes a folder, so what a folder's name may not hold is refused here."""
    problem = None
    if not part or not part.strip():
        problem = "is empty"
    elif "/" in part or "\\" in part:
        problem = "holds a slash"
    elif part in (".", "..") or ".." in part:
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
        parts = split(text)
        if len(parts) == 3 and parts[0].lower() == "spark_catalog":
            parts = parts[1:]
        if len(parts) != 2:
            raise PenstockError(f"{text!r} is not a relation's name", fix="Write it as schema.identifier.")
        return cls(*parts)

    def __str__(self) -> str:
        return f"{self.schema}.{self.identifier}"

    @property
    def sql(self) -> str:
        return f"{quote(self.schema)}.{quote(self.identifier)}"


def quote(identifier: str) -> str:
    return "`" + identifier.replace("`", "``") + "`"


def split(text: str) -> list[str]:
    """The parts of a dotted name, quoted or not."""
    return [
        found.group(1).replace("``", "`") if found.group(1) is not None else found.group(2).strip()
        for found in _QUOTED_PART.finditer(text)
    ]
