"""A window as a condition on a column, by the column's type; and such conditions found again in a model's SQL.

dbt puts a filter around every `ref()` that has an `event_time` before a model reaches us. We render that filter, between
two comments of ours, so that it can be rendered again: for a pack of windows, or for a window that a killed run has left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone

from penstock.errors import PenstockError
from penstock.sql import quoting
from penstock.windows.window import Window, floor, utc

TYPES = ("date", "timestamp", "timestamp_ntz", "string")
_MARKED = re.compile(r"/\*penstock\.window (?P<about>\{.*?\})\*/.*?/\*penstock\.window end\*/", re.DOTALL)
# Digits alone are read by their number: Spark would take 202604 for a year.
_DIGITS = {
    4: ("yyyy", "%Y"),
    6: ("yyyyMM", "%Y%m"),
    8: ("yyyyMMdd", "%Y%m%d"),
    10: ("yyyyMMddHH", "%Y%m%d%H"),
    12: ("yyyyMMddHHmm", "%Y%m%d%H%M"),
    14: ("yyyyMMddHHmmss", "%Y%m%d%H%M%S"),
}
# A time, and after it a zone's letters or sign.
_ZONED = ":.*[A-Za-z+-]"
_COMPARED = {
    "date": "date",
    "timestamp": "timestamp",
    "timestamp_ltz": "timestamp",
    "timestamp_ntz": "timestamp_ntz",
    "string": "string",
}

TypeOf = Callable[[str, str], str | None]
"""The type of a relation's column, both as the filter names them; None where it can't be told."""


def kind_of(type: str | None, column: str) -> str:
    """How a column of a type is compared with a window; a type that holds no time is an error."""
    if type is None:
        return "timestamp"
    plain = type.lower().split("(")[0].strip()
    kind = "string" if plain in ("char", "varchar") else _COMPARED.get(plain)
    if kind is None:
        raise PenstockError(
            f"`event_time` is the column {column} of type {type}, which holds no time",
            fix="Name a date, a timestamp or a string such as '20260401' or '2026-04-01'.",
        )
    return kind


def condition(column: str, type: str | None, start: datetime | None, end: datetime | None) -> str:
    """Whether a column's time, `column` being SQL, lies from `start` up to, and without, `end`.

    >>> condition("day", "date", datetime(2026, 4, 1), datetime(2026, 4, 2))
    "day >= date '2026-04-01' and day < date '2026-04-02'"
    """
    kind = kind_of(type, column)
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
    return condition(quoting.quote(column), type, window.start, window.end)


def _literal(kind: str, moment: datetime) -> str:
    moment = utc(moment)
    if kind == "date":
        # A date is its midnight: a window that begins later in the day has it no more.
        day = moment if moment == floor(moment, "day") else floor(moment, "day") + timedelta(days=1)
        return f"date '{day:%Y-%m-%d}'"
    fraction = f".{moment.microsecond:06}" if moment.microsecond else ""
    if kind == "timestamp_ntz":
        return f"timestamp_ntz '{moment:%Y-%m-%d %H:%M:%S}{fraction}'"
    return f"timestamp '{moment:%Y-%m-%d %H:%M:%S}{fraction}+00:00'"


def _unzoned(column: str) -> str:
    """A text without a zone is in UTC, as dbt's windows are, whatever the session's zone."""
    lengths = " ".join(
        f"when {length} then cast(try_to_timestamp({column}, '{pattern}') as timestamp_ntz)"
        for length, (pattern, _) in _DIGITS.items()
    )
    return (
        f"(case when {column} rlike '^[0-9]+$' then case length({column}) {lengths} end "
        f"else try_cast({column} as timestamp_ntz) end)"
    )


def moment_of(value: object) -> datetime | None:
    """A value of an event time's column, as the Delta log tells it; None for a text that is no time."""
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


def marked(relation: str, column: str, type: str | None, start: datetime | None, end: datetime | None) -> str:
    """A filter that can be found, and rendered again, in the text that it becomes part of."""
    # A comment may hold another: a name must neither end this one nor begin one.
    about = json.dumps({"relation": relation, "column": column}).replace("*", "\\u002a")
    # With a type it is a column of that very name; else it may be a field of a struct.
    value = quoting.column(column, [] if type is None else [quoting.plain(column)])
    return f"/*penstock.window {about}*/ {condition(value, type, start, end)} /*penstock.window end*/"


def is_filtered(text: str) -> bool:
    return _MARKED.search(text) is not None


def rebound(text: str, window: Window | None, type_of: TypeOf) -> str:
    """The text with each of its filters rendered for another window; for none, to be compared with another text."""

    def render(found: re.Match[str]) -> str:
        about = json.loads(found.group("about"))
        relation, column = about["relation"], about["column"]
        if window is None:
            return f"/*{relation} {column}*/"
        type = type_of(relation, column)
        return marked(relation, column, type, window.start, window.end)

    return _MARKED.sub(render, text)
