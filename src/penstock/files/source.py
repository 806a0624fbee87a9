"""The configuration of a file source, validated once, all errors in one message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timezone
from typing import Any

from penstock.checks import Check, checked, one_of, positive
from penstock.columns import IGNORE, POLICIES
from penstock.errors import PenstockError
from penstock.files.roots import spelled
from penstock.secrets import remember
from penstock.settings import unknown_keys
from penstock.storage import credentials_problem, normalize

FORMATS = ("parquet", "csv", "json", "orc", "avro", "text", "binaryFile")
REWRITTEN = ("fail", "skip", "ingest", "replace")
BAD = ("fail", "quarantine")
MOVED = ("fail", "accept", "ingest")
ALIASES = {"roots": "source_roots", "ss_source_path": "source_roots", "scope_columns": "source_columns"}

_LONGEST = 366 * 24 * 3600
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
# Spark's simple types, with their spellings; what is inside of <> is checked by taking it apart.
_SIMPLE = re.compile(
    r"boolean|byte|tinyint|short|smallint|int|integer|long|bigint|float|real|double|date|timestamp|timestamp_ltz|"
    r"timestamp_ntz|string|binary|variant|void|(?:decimal|dec|numeric)(?:\(\s*\d+\s*(?:,\s*-?\d+\s*)?\))?|"
    r"(?:char|varchar)\(\s*\d+\s*\)|interval(?: [a-z]+)*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class SourceColumn:
    """A column of the files; one that is not extracted is made by the SELECT."""

    name: str
    type: str
    extract: bool = True


@dataclass(frozen=True)
class FileSource:
    """Where a model's files come from and how they are read.

    >>> FileSource.from_mapping({"source_roots": ["/landing"], "max_bytes_per_trigger": "10g"}).max_bytes_per_trigger
    10737418240
    """

    source_roots: tuple[str, ...]
    source_patterns: tuple[str, ...] = ()
    """Regular expressions on the path below the root; a file that none of them finds is left out."""
    source_exclude: tuple[str, ...] = ()
    source_format: str | None = None
    """From the files' extensions when absent."""
    source_options: dict[str, str] = field(default_factory=dict, hash=False)
    source_columns: tuple[SourceColumn, ...] = ()
    """Inferred from the first batch when absent."""
    max_files_per_trigger: int = 50
    max_bytes_per_trigger: int | None = None
    safety_buffer_seconds: float = 30
    """Files younger than this wait for the next run: they may still be written."""
    starting_timestamp: datetime | None = None
    source_compaction_interval: int = 10
    source_retention_files: int = 100
    on_rewritten_file: str = "fail"
    on_bad_file: str = "fail"
    on_moved_root: str = "fail"
    """What follows when a new root holds files that came in from another: an error, the same files, or new ones."""
    rescued_data_column: str | None = None
    on_schema_change: str = IGNORE
    roots_as_written: tuple[str, ...] = field(default=(), metadata={"is_key": False})
    """`source_roots` as the config has them, relative ones too."""

    @classmethod
    def known(cls) -> list[str]:
        return [item.name for item in fields(cls) if item.metadata.get("is_key", True)]

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], *, base: str | None = None, where: str | None = None) -> FileSource:
        """The configuration as a model or a caller gives it; relative roots are below `base`."""
        problems: list[str] = []
        config: dict[str, Any] = {}
        for key, value in given.items():
            name = ALIASES.get(key, key)
            if value is None:
                continue
            if name in config:
                problems.append(f"`{key}` is given twice: it is another name of `{name}`")
            config[name] = value
        problems += unknown_keys(config, cls.known())
        values, wrong = checked(config, _CHECKS)
        problems += wrong
        if "source_roots" not in config:
            problems.append("`source_roots` is missing: name the folders or URIs where the files arrive")
        if values.get("rescued_data_column") and values.get("source_format") not in (None, "csv", "json"):
            problems.append("`rescued_data_column` is for csv and json: other formats carry their own schema")
        if problems:
            raise PenstockError("The file source is not right: " + "; ".join(problems), where=where)
        roots: dict[str, str] = {}
        for written in values["source_roots"]:
            roots.setdefault(spelled(normalize(written, base)), written)
        values["source_roots"], values["roots_as_written"] = tuple(roots), tuple(roots.values())
        return cls(**values)


def _strings(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError("is a string or a list of strings")
    return tuple(items)


def _roots(value: Any) -> tuple[str, ...]:
    roots = _strings(value)
    if not roots:
        raise ValueError("names at least one folder or URI")
    for root in roots:
        if problem := credentials_problem(root):
            raise ValueError(problem)
        if root.startswith("hdfs:"):
            raise ValueError("is a local folder or an object store's URI (hdfs:// can't be listed yet)")
    return roots


def _patterns(value: Any) -> tuple[str, ...]:
    patterns = _strings(value)
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            position = "" if error.pos is None else f" at position {error.pos}"
            raise ValueError(f"is a regular expression ({pattern!r} has {error.msg}{position})") from None
    return patterns


def _options(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("is a block of Spark's options for the format")
    remember(value)
    return {str(key): str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}


def _columns(value: Any) -> tuple[SourceColumn, ...]:
    wanted = "is a list of {name, type}"
    if not isinstance(value, (list, tuple)):
        raise ValueError(wanted)
    columns = []
    for item in value:
        if not isinstance(item, Mapping) or not item.get("name") or not set(item) <= {"name", "type", "extract"}:
            raise ValueError(f"{wanted}, with `extract: false` for one that the SELECT makes")
        kind, extract = str(item.get("type") or ""), item.get("extract", True)
        if not isinstance(extract, bool):
            raise ValueError(f"has `extract` of {item['name']} as true or false")
        if (extract or kind) and not is_type(kind):
            raise ValueError(f"has a type that Spark does not know for {item['name']} ({kind!r})")
        columns.append(SourceColumn(str(item["name"]), kind, extract))
    names = [column.name.lower() for column in columns]
    if len(set(names)) < len(names):
        raise ValueError("names each column once")
    return tuple(columns)


def is_type(text: str) -> bool:
    """Whether Spark's SQL knows a type of this spelling.

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
    """The parts between the commas that stand outside of brackets."""
    parts, depth, start = [], 0, 0
    for index, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _size(value: Any) -> int:
    found = None if isinstance(value, bool) else _SIZE.fullmatch(str(value).strip())
    size = int(found.group(1)) * _UNITS[found.group(2).lower()] if found else 0
    if size < 1:
        raise ValueError("is a number of bytes, or a size such as 10g")
    return size


def _seconds(value: Any) -> float:
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1
    if isinstance(value, bool) or not seconds >= 0:
        raise ValueError("is a number of seconds, 0 or more")
    if seconds > _LONGEST:
        raise ValueError("is a number of seconds, a year at most")
    return seconds


def _instant(value: Any) -> datetime:
    try:
        instant = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None or not 1900 <= instant.year < 9999:
        raise ValueError("is a time with its offset, such as 2026-01-01T00:00:00Z")
    return instant.astimezone(timezone.utc)


def _name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is the name of a column")
    return value


_CHECKS: dict[str, Check] = {
    "source_roots": _roots,
    "source_patterns": _patterns,
    "source_exclude": _patterns,
    "source_format": one_of(*FORMATS),
    "source_options": _options,
    "source_columns": _columns,
    "max_files_per_trigger": positive,
    "max_bytes_per_trigger": _size,
    "safety_buffer_seconds": _seconds,
    "starting_timestamp": _instant,
    "source_compaction_interval": positive,
    "source_retention_files": positive,
    "on_rewritten_file": one_of(*REWRITTEN),
    "on_bad_file": one_of(*BAD),
    "on_moved_root": one_of(*MOVED),
    "rescued_data_column": _name,
    "on_schema_change": one_of(*POLICIES),
}
