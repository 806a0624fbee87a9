"""The configuration of a microbatch model, validated once, all errors in one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timezone
from typing import Any

from penstock import quoting
from penstock.checks import Check, checked, one_of, positive
from penstock.columns import IGNORE, POLICIES
from penstock.errors import PenstockError
from penstock.windows.dated import DatedPath
from penstock.windows.window import SIZES, utc

KEYS = ("delete_before_insert", "skip_to_high_watermark", "days_per_batch", "source_path")
"""What a model may say besides dbt's own `event_time`, `batch_size`, `begin` and `lookback`."""

_CHECKS: dict[str, Check] = {"days_per_batch": positive, "on_schema_change": one_of(*POLICIES)}


@dataclass(frozen=True)
class WindowSettings:
    """How a model's windows are cut and written.

    >>> WindowSettings.problems({"event_time": "day", "batch_size": "day", "begin": "2026-01-01", "days_per_batch": 0})
    ['`days_per_batch` is a whole number of at least 1, not 0']
    """

    event_time: str
    batch_size: str
    begin: datetime
    delete_before_insert: bool = True
    """Whether a window's rows replace those that are there; else they are added to them, once."""
    skip_to_high_watermark: bool = False
    days_per_batch: int = 1
    """How many neighbouring windows are one job and one commit."""
    source_path: str | None = None
    on_schema_change: str = IGNORE

    @classmethod
    def problems(cls, config: Mapping[str, Any], now: datetime | None = None) -> list[str]:
        now = now or datetime.now(timezone.utc)
        found = []
        event_time, size = config.get("event_time"), _text(config.get("batch_size"))
        if not isinstance(event_time, str) or not event_time.strip():
            found.append("`event_time` is missing: name the column of the model's time")
        if size not in SIZES:
            found.append(f"`batch_size` is one of {', '.join(SIZES)}, not {config.get('batch_size')!r}")
        begin = _moment(config.get("begin"))
        if begin is None:
            found.append(f"`begin` is a date or a time such as 2026-01-01, not {config.get('begin')!r}")
        elif begin > now:
            found.append(f"`begin` is in the future: {config.get('begin')}")
        found += [
            f"`{key}` is true or false, not {config[key]!r}"
            for key in ("delete_before_insert", "skip_to_high_watermark")
            if config.get(key) is not None and not isinstance(config[key], bool)
        ]
        found += checked({key: value for key, value in config.items() if value is not None}, _CHECKS)[1]
        lookback = config.get("lookback")
        if lookback is not None and (isinstance(lookback, bool) or not isinstance(lookback, int) or lookback < 0):
            found.append(f"`lookback` is a whole number, 0 or more, not {lookback!r}")
        if config.get("skip_to_high_watermark") is True and config.get("delete_before_insert") is False:
            found.append("`skip_to_high_watermark` has no place with `delete_before_insert: false`: the ledger decides")
        if config.get("source_path") is not None:
            found += DatedPath.problems(config["source_path"])
            if config.get("source_roots"):
                found.append("`source_path` and `source_roots` exclude each other: the path names the folders")
        return found

    @classmethod
    def from_config(cls, config: Mapping[str, Any], where: str | None = None) -> WindowSettings:
        problems = cls.problems(config)
        if problems:
            raise PenstockError("The windows are not right: " + "; ".join(problems), where=where)
        begin = _moment(config["begin"])
        assert begin is not None
        return cls(
            event_time=quoting.plain(config["event_time"]),
            batch_size=_text(config["batch_size"]),
            begin=begin,
            delete_before_insert=config.get("delete_before_insert") is not False,
            skip_to_high_watermark=bool(config.get("skip_to_high_watermark")),
            days_per_batch=int(config.get("days_per_batch") or 1),
            source_path=config.get("source_path"),
            on_schema_change=config.get("on_schema_change") or IGNORE,
        )


def _text(value: Any) -> str:
    """dbt's batch sizes are an enumeration."""
    return str(getattr(value, "value", value))


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    return utc(value) if isinstance(value, datetime) else None
