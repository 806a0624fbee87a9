"""How files are read, as plain values: what a pipeline gives to Spark. Nothing here imports pyspark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.config.source_columns import SourceColumn


@dataclass(frozen=True)
class ReadOptions:
    """How the files of one model are read."""

    format: str
    roots: tuple[str, ...]
    """The folders that the files lie below. Folder columns (`day=2026-04-08/`) are looked for below a root."""
    reader: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Options of Spark's reader, which take precedence over ours."""
    declared: tuple[SourceColumn, ...] = ()
    """The columns that the user declares; empty if they are inferred."""
    rescued_column: str | None = None
    """The column for values that do not fit; None if such a value is an error."""

    def reader_option(self, *names: str, default: str = "") -> str:
        """The value of a reader option under any of its names, which have no case."""
        given = {key.lower(): value for key, value in self.reader.items()}
        return next((given[name] for name in names if name in given), default)

    @property
    def is_utf8(self) -> bool:
        """Whether text files are read as UTF-8."""
        return self.reader_option("encoding", "charset", default="utf-8").lower() in ("utf-8", "utf8")
