"""The columns that files are read with. Nothing here imports pyspark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FileSchema:
    """The columns of a set of files."""

    struct: dict[str, Any]
    """A struct type as Spark's JSON."""
    folders: tuple[str, ...] = ()
    """The names of the columns that come from folders (`day=2026-04-08/`)."""

    @property
    def names(self) -> list[str]:
        return [field["name"] for field in self.struct["fields"]]
