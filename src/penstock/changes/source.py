"""The configuration of a model that follows changes, validated once, all errors in one message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock.errors import PenstockError
from penstock.names import Name
from penstock.settings import unknown_keys

GAPS = ("fail", "full_refresh")
SCHEMA_CHANGES = ("ignore", "fail", "append_new_columns", "sync_all_columns")


@dataclass(frozen=True)
class ChangeSource:
    """What identifies a row, and which changes are followed how far.

    >>> ChangeSource.from_mapping({"unique_key": "code"}).unique_key
    ('code',)
    """

    unique_key: tuple[str, ...]
    cdf_source: tuple[Name, ...] = ()
    """The tables whose changes are followed; every Delta table that the model reads, when empty."""
    cdf_max_versions: int | None = None
    """At most so many versions of a source in one commit."""
    on_cdf_gap: str = "fail"
    on_schema_change: str = "ignore"

    @classmethod
    def known(cls) -> list[str]:
        return [item.name for item in fields(cls)]

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """Everything that is wrong with these keys."""
        return cls._read(given)[1]

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], *, where: str | None = None) -> ChangeSource:
        values, problems = cls._read(given)
        if problems:
            raise PenstockError("The config of this model is not right: " + "; ".join(problems), where=where)
        return cls(**values)

    @classmethod
    def _read(cls, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        config = {key: value for key, value in given.items() if value is not None}
        problems = unknown_keys(config, cls.known())
        values: dict[str, Any] = {}
        for key, check in _CHECKS.items():
            if key in config:
                try:
                    values[key] = check(config[key])
                except (ValueError, PenstockError) as error:
                    problems.append(f"`{key}` {error}, not {config[key]!r}")
        if "unique_key" not in config:
            problems.append("`unique_key` is missing: name the columns that identify a row of the result")
        return values, problems


def _names(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items or not all(isinstance(i, str) and i.strip() for i in items):
        raise ValueError("is a name or a list of names")
    return tuple(items)


def _columns(value: Any) -> tuple[str, ...]:
    columns = tuple(name.strip().strip("`") for name in _names(value))
    if len({column.lower() for column in columns}) < len(columns):
        raise ValueError("names a column twice")
    return columns


def _relations(value: Any) -> tuple[Name, ...]:
    return tuple(Name.parse(name) for name in _names(value))


def _positive(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value).strip()) or int(value) < 1:
        raise ValueError("is a whole number of at least 1")
    return int(value)


def _one_of(*choices: str) -> Any:
    def check(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"is one of {', '.join(choices)}")
        return str(value)

    return check


_CHECKS: dict[str, Any] = {
    "unique_key": _columns,
    "cdf_source": _relations,
    "cdf_max_versions": _positive,
    "on_cdf_gap": _one_of(*GAPS),
    "on_schema_change": _one_of(*SCHEMA_CHANGES),
}
