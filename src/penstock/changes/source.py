"""The configuration of a model that follows changes, validated once, all errors in one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock import quoting
from penstock.checks import Check, checked, one_of, positive
from penstock.columns import IGNORE, POLICIES
from penstock.errors import PenstockError
from penstock.names import Name
from penstock.settings import unknown_keys

GAPS = ("fail", "full_refresh")


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
    on_schema_change: str = IGNORE

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
        values, wrong = checked(config, _CHECKS)
        problems += wrong
        if "unique_key" not in config:
            problems.append("`unique_key` is missing: name the columns that identify a row of the result")
        return values, problems


def _names(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items or not all(isinstance(i, str) and i.strip() for i in items):
        raise ValueError("is a name or a list of names")
    return tuple(items)


def _columns(value: Any) -> tuple[str, ...]:
    columns = tuple(map(quoting.plain, _names(value)))
    if len({column.lower() for column in columns}) < len(columns):
        raise ValueError("names a column twice")
    return columns


def _relations(value: Any) -> tuple[Name, ...]:
    return tuple(Name.parse(name) for name in _names(value))


_CHECKS: dict[str, Check] = {
    "unique_key": _columns,
    "cdf_source": _relations,
    "cdf_max_versions": positive,
    "on_cdf_gap": one_of(*GAPS),
    "on_schema_change": one_of(*POLICIES),
}
