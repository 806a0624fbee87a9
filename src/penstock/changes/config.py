"""The config of a model that follows changes: validated once, with all errors in one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from penstock.config import keys
from penstock.config.check import unusable
from penstock.config.kinds import Kind
from penstock.config.values import checked, key_columns, names
from penstock.delta.schema_changes import IGNORE
from penstock.errors import PenstockError
from penstock.sql.names import Name


@dataclass(frozen=True)
class ChangeSource:
    """The key of a row, the followed sources, and how far a commit goes.

    >>> ChangeSource.from_mapping({"unique_key": "code"}).unique_key
    ('code',)
    """

    unique_key: tuple[str, ...]
    cdf_source: tuple[Name, ...] = ()
    """The tables whose changes are followed; if empty, every Delta table that the model reads."""
    cdf_max_versions: int | None = None
    """The number of versions of a source in one commit; None for all."""
    on_cdf_gap: str = "fail"
    on_schema_change: str = IGNORE

    @classmethod
    def known(cls) -> list[str]:
        return [item.name for item in fields(cls)]

    @classmethod
    def problems(cls, given: Mapping[str, Any]) -> list[str]:
        """All errors in these keys."""
        return cls._read(given)[1]

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any], *, where: str | None = None) -> ChangeSource:
        values, problems = cls._read(given)
        if problems:
            raise PenstockError("The config of this model has errors: " + "; ".join(problems), where=where)
        return cls(**values)

    @classmethod
    def _read(cls, given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
        config = {key: value for key, value in given.items() if value is not None}
        problems = unusable(config, cls.known(), Kind.CDF_MERGE)
        values, wrong = checked(config, _CHECKS)
        problems += wrong
        if "unique_key" not in config:
            problems.append("`unique_key` is missing: name the columns that identify a row of the result")
        return values, problems


def _relations(value: Any) -> tuple[Name, ...]:
    return tuple(Name.parse(name) for name in names(value))


_CHECKS = {name: keys.BY_NAME[name].check for name in ChangeSource.known()} | {
    # A merge may name a column twice. Here the key is compared with the GROUP BY of the SQL.
    "unique_key": key_columns,
    "cdf_source": _relations,
}
