"""A window of event time as a condition on a column, and as a value of the column, by the column's type."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta, timezone

from penstock.errors import PenstockError
from penstock.sql import quoting
from penstock.windows.window import Window, floor, utc

# The number of digits tells the format: Spark alone would read 202604 as a year.
_DIGITS = {
    4: ("yyyy", "%Y"),
    6: ("yyyyMM", "%Y%m"),
    8: ("yyyyMMdd", "%Y%m%d"),
    10: ("yyyyMMddHH", "%Y%m%d%H"),
    12: ("yyyyMMddHHmm", "%Y%m%d%H%M"),
    14: ("yyyyMMddHHmmss", "%Y%m%d%H%M%S"),
}
# A time, followed by the letters or the sign of a zone.
_ZONED = ":.*[A-Za-z+-]"
_COMPARED = {
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
}


def condition(column: str, type: str | None, start: datetime | None, end: datetime | None) -> str:
    """Whether the time in a column, `column` being SQL, lies from `start` up to, and without, `end`.

    If the type is not known, the condition asks Spark for it. Spark resolves that question when it optimizes the query,
    so that partitions and files are skipped as with a known type. A type without time values is an error.

    >>> condition("day", "date", datetime(2026, 4, 1), datetime(2026, 4, 2))
    "day >= date '2026-04-01' and day < date '2026-04-02'"
    """
    return _of_any_type(column, start, end) if type is None else _of_kind(column, _kind_of(type, column), start, end)


def _kind_of(type: str, column: str) -> str:
    """How a column of a type is compared with a window."""
    plain = type.lower().split("(")[0].strip()
    kind = "string" if plain in ("char", "varchar") else _COMPARED.get(plain)
    if kind is None:
        raise PenstockError(
            f"`event_time` names the column {column} of type {type}, which has no time values",
            fix="Use a date or timestamp column, or strings such as '20260401' or '2026-04-01'.",
        )
    return kind


def _of_any_type(column: str, start: datetime | None, end: datetime | None) -> str:
    """The conditions of all types. Each cast is one that Spark accepts for a time of any type, and for nothing else."""
    typed = " ".join(
        f"when '{kind}' then {_of_kind(f'cast({column} as {kind})', kind, start, end)}"
        for kind in ("date", "timestamp_ntz", "string")
    )
    return f"case typeof({column}) {typed} else {_of_kind(f'cast({column} as timestamp)', 'timestamp', start, end)} end"


def _of_kind(column: str, kind: str, start: datetime | None, end: datetime | None) -> str:
    if kind != "string":
        return _between(column, kind, start, end)
    zoned = _between(f"try_cast({column} as timestamp)", "timestamp", start, end)
    return (
        f"case when {column} rlike '{_ZONED}' then {zoned} "
        f"else {_between(_unzoned(column), 'timestamp_ntz', start, end)} end"
    )


def _between(value: str, kind: str, start: datetime | None, end: datetime | None) -> str:
    bounds = []
    if start is not None:
        bounds.append(f"{value} >= {_literal(kind, start)}")
    if end is not None:
        bounds.append(f"{value} < {_literal(kind, end)}")
    return " and ".join(bounds)


def inside(column: str, type: str | None, window: Window) -> str:
    """Whether the time in a column of this name lies in a window."""
    return condition(quoting.quote(column), type, window.start, window.end)


def _literal(kind: str, moment: datetime) -> str:
    moment = utc(moment)
    if kind == "date":
        # A date is its midnight, so a window that begins later in the day does not hold it.
        day = moment if moment == floor(moment, "day") else floor(moment, "day") + timedelta(days=1)
        return f"date '{day:%Y-%m-%d}'"
    fraction = f".{moment.microsecond:06}" if moment.microsecond else ""
    if kind == "timestamp_ntz":
        return f"timestamp_ntz '{moment:%Y-%m-%d %H:%M:%S}{fraction}'"
    return f"timestamp '{moment:%Y-%m-%d %H:%M:%S}{fraction}+00:00'"


def _unzoned(column: str) -> str:
    """The time in a text without a zone. It is in UTC, as dbt's windows are, whatever the session's zone."""
    lengths = " ".join(
        f"when {length} then cast(try_to_timestamp({column}, '{pattern}') as timestamp_ntz)"
        for length, (pattern, _) in _DIGITS.items()
    )
    return (
        f"(case when {column} rlike '^[0-9]+$' then case length({column}) {lengths} end "
        f"else try_cast({column} as timestamp_ntz) end)"
    )


def moment_of(value: object) -> datetime | None:
    """The time in a value of the event time's column, as the Delta log has it; None for a text that is no time."""
    if isinstance(value, datetime):
        return utc(value)
    if isinstance(value, date):
        return datetime.combine(value, time(), timezone.utc)
    text = str(value).strip()
    try:
        if text.isdigit():
            return utc(datetime.strptime(text, _DIGITS[len(text)][1]))
        return utc(datetime.fromisoformat(text.replace("Z", "+00:00")))
    except (ValueError, KeyError):
        return None
