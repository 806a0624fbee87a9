"""The configuration of a file source. It is checked once, and one message has all errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from penstock.config import keys
from penstock.config.check import unusable
from penstock.config.formats import RESCUED
from penstock.config.kinds import Kind
from penstock.config.source_columns import SourceColumn
from penstock.config.values import checked
from penstock.delta.schema_changes import IGNORE
from penstock.errors import PenstockError
from penstock.storage import normalize

_KEYS = (*keys.FILES, keys.BY_NAME["on_schema_change"])
_CHECKS = {key.name: key.check for key in _KEYS}
_SELECTION = (
    "source_patterns",
    "source_exclude",
    "max_files_per_trigger",
    "max_bytes_per_trigger",
    "safety_buffer_seconds",
    "starting_timestamp",
    "on_rewritten_file",
    "on_moved_root",
)
# `roots` is for callers in Python, which may not know dbt's keys.
_ALIASES = {"roots": "source_roots", **keys.ALIASES}


@dataclass(frozen=True)
class FileSource:
    """Where a model's files come from, and how they are read.

    >>> FileSource.from_mapping({"source_roots": ["/landing"], "max_bytes_per_trigger": "10g"}).max_bytes_per_trigger
    10737418240
    """

    source_roots: tuple[str, ...]
    source_patterns: tuple[str, ...] = ()
    """Regular expressions on the path below the root. A file that matches none of them is left out."""
    source_exclude: tuple[str, ...] = ()
    source_format: str | None = None
    """If absent, the extensions of the files tell it."""
    source_options: dict[str, str] = field(default_factory=dict, hash=False)
    source_columns: tuple[SourceColumn, ...] = ()
    """If empty, the columns are inferred."""
    max_files_per_trigger: int = 50
    max_bytes_per_trigger: int | None = None
    safety_buffer_seconds: float = 30
    """Files younger than this wait for the next run: their writers may not be done."""
    starting_timestamp: datetime | None = None
    source_compaction_interval: int = 10
    source_retention_files: int = 100
    on_rewritten_file: str = "fail"
    on_bad_file: str = "fail"
    on_moved_root: str = "fail"
    """Whether a new root with files that were ingested from another root is an error, or has the same, or new files."""
    rescued_data_column: str | None = None
    on_schema_change: str = IGNORE
    roots_as_written: tuple[str, ...] = field(default=(), metadata={"is_key": False})
    """`source_roots` as the config spells them, also relative ones."""

    @classmethod
    def known(cls) -> list[str]:
        """The names of all keys."""
        return [item.name for item in fields(cls) if item.metadata.get("is_key", True)]

    @classmethod
    def from_mapping(
        cls,
        given: Mapping[str, Any],
        *,
        base: str | None = None,
        where: str | None = None,
        storage_options: Mapping[str, str] | None = None,
    ) -> FileSource:
        """The configuration in these keys; raises with all problems. Relative roots are below `base`."""
        values, problems = cls._read(given)
        if problems:
            raise PenstockError("The configuration of the file source has errors: " + "; ".join(problems), where=where)
        roots: dict[str, str] = {}
        for written in values["source_roots"]:
            roots.setdefault(normalize(written, base, storage_options), written)
        values["source_roots"], values["roots_as_written"] = tuple(roots), tuple(roots.values())
        return cls(**values)

    def selection(self) -> dict[str, Any]:
        """The keys that say which files come in and when, as JSON has them. Plans keep them for `penstock status`."""
        start = self.starting_timestamp
        given = {name: getattr(self, name) for name in _SELECTION}
        given = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
        return given | {"starting_timestamp": None if start is None else start.isoformat()}

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """All problems of these keys, one text each."""
        return cls._read(given)[1]

    @classmethod
    def _read(cls, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        problems: list[str] = []
        config: dict[str, Any] = {}
        for key, value in given.items():
            name = _ALIASES.get(key, key)
            if value is None:
                continue
            if name in config:
                problems.append(f"`{key}` is given twice: it is another name for `{name}`")
            config[name] = value
        problems += unusable(config, cls.known(), Kind.FILES)
        values, wrong = checked(config, {name: _CHECKS[name] for name in cls.known()})
        problems += wrong
        if "source_roots" not in config:
            problems.append("`source_roots` is missing: name the folders or URIs where the files arrive")
        if values.get("rescued_data_column") and values.get("source_format") not in (None, *RESCUED):
            problems.append(
                f"`rescued_data_column` is for {' and '.join(RESCUED)}: files of other formats have their own schema"
            )
        if rescued := values.get("rescued_data_column"):
            declared = {column.name.lower() for column in values.get("source_columns", ()) if column.extract}
            if rescued.lower() in declared:
                problems.append(
                    f"`rescued_data_column` is {rescued}, and `source_columns` declares a column of that name: use another name"
                )
        return values, problems
