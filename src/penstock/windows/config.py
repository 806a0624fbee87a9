"""The config of a microbatch model, validated once, with all errors in one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timezone
from typing import Any

from penstock.config import keys
from penstock.config.values import checked
from penstock.delta.schema_changes import IGNORE
from penstock.errors import PenstockError
from penstock.windows.source import DatedPath

_CHECKS = {key.name: key.check for key in (*keys.WINDOW_KEYS, keys.BY_NAME["on_schema_change"])}
_REQUIRED = {
    "event_time": "name the column that holds the time of a row",
    "batch_size": "choose one of " + ", ".join(keys.SIZES),
    "begin": "give the start of the first window, such as 2026-01-01",
}


@dataclass(frozen=True)
class WindowSettings:
    """The size of a model's windows, and how they are written.

    >>> WindowSettings.problems({"event_time": "day", "batch_size": "day", "begin": "2026-01-01", "days_per_batch": 0})
    ['`days_per_batch` must be a whole number of at least 1, not 0']
    """

    event_time: str
    batch_size: str
    begin: datetime
    delete_before_insert: bool = True
    """Whether a window replaces its rows in the table. If not, each window is added once."""
    skip_to_high_watermark: bool = False
    days_per_batch: int = 1
    """How many neighbouring windows make one job and one commit."""
    source_path: str | None = None
    on_schema_change: str = IGNORE

    @classmethod
    def problems(cls, config: Mapping[str, Any], now: datetime | None = None) -> list[str]:
        given = {key: value for key, value in config.items() if value is not None}
        values, found = checked(given, _CHECKS)
        found = [f"`{key}` is missing: {why}" for key, why in _REQUIRED.items() if key not in given] + found
        if "begin" in values and values["begin"] > (now or datetime.now(timezone.utc)):
            found.append(f"`begin` is in the future: {config['begin']}")
        if config.get("skip_to_high_watermark") is True and config.get("delete_before_insert") is False:
            found.append(
                "`skip_to_high_watermark` has no effect with `delete_before_insert: false`, because the ledger says "
                "which windows are skipped"
            )
        if config.get("source_path") is not None:
            found += DatedPath.problems(config["source_path"])
            if config.get("source_roots"):
                found.append(
                    "`source_path` and `source_roots` exclude each other: remove `source_roots`, the path names the folders"
                )
        return found

    @classmethod
    def from_config(cls, config: Mapping[str, Any], where: str | None = None) -> WindowSettings:
        problems = cls.problems(config)
        if problems:
            raise PenstockError("Wrong config of windows: " + "; ".join(problems), where=where)
        given = {key: value for key, value in config.items() if value is not None and key in _CHECKS}
        values, _ = checked(given, _CHECKS)
        return cls(**{item.name: values[item.name] for item in fields(cls) if item.name in values})
