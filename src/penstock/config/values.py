"""Checks of config values. A check returns the value in the form that the engine uses.

For a wrong value, a check raises a ValueError that starts with "must be" and describes the allowed values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timezone
from typing import Any

from penstock.errors import PenstockError
from penstock.secrets import credentials_problem, redact, remember
from penstock.sql.quoting import plain

Check = Callable[[Any], Any]
_LONGEST = 366 * 24 * 3600
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)(?:i?b)?", re.IGNORECASE)
# A comma outside of backticks.
_BETWEEN_NAMES = re.compile(r",(?=(?:[^`]*`[^`]*`)*[^`]*$)")
_MEMORY = re.compile(r"^\d+[kmgt]b?$", re.IGNORECASE)


def checked(config: Mapping[str, Any], checks: Mapping[str, Check]) -> tuple[dict[str, Any], list[str]]:
    """The checked values, and a sentence for each wrong value.

    >>> checked({"batches": 0}, {"batches": positive})
    ({}, ['`batches` must be a whole number of at least 1, not 0'])
    """
    values, problems = {}, []
    for key, check in checks.items():
        if key in config:
            try:
                values[key] = check(config[key])
            except (ValueError, PenstockError) as error:
                given = f", not {redact(repr(config[key]))}" if str(error).startswith("must ") else ""
                problems.append(f"`{key}` {error}{given}")
    return values, problems


def positive(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value).strip()) or int(value) < 1:
        raise ValueError("must be a whole number of at least 1")
    return int(value)


def count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("must be a whole number, 0 or more")
    return int(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def path(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a path or URI")
    if problem := credentials_problem(value):
        raise ValueError(problem)
    return value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be a string")
    return value


def memory(value: Any) -> str:
    if not _MEMORY.match(str(value)):
        raise ValueError("must be a size such as 4g or 800m")
    return str(value)


def condition(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be a condition in SQL")
    return value


def conditions(value: Any) -> tuple[str, ...]:
    return _texts(value, "must be a condition in SQL or a list of them")


def statements(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be SQL")
    return value


def block(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a block of settings")
    return dict(value)


def properties(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a block of properties")
    return dict(value)


def options(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("must be a block of Spark's options for the format")
    remember(value)
    return {str(key): str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}


def one_of(*allowed: str) -> Check:
    def check(value: Any) -> str:
        # dbt gives a batch size as an enum member.
        given = str(getattr(value, "value", value)).lower()
        found = next((item for item in allowed if given == item.lower()), None)
        if found is None:
            raise ValueError(f"must be one of {', '.join(allowed)}" if len(allowed) > 1 else f"must be {allowed[0]}")
        return found

    return check


def column(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("must be the name of a column")
    return plain(value)


def columns(value: Any) -> tuple[str, ...]:
    return _texts(value, "must be a column's name or a list of them")


def columns_in_text(value: Any) -> tuple[str, ...]:
    """Column names, in a list or in a text with commas."""
    if isinstance(value, str) and value.strip():
        return tuple(plain(part) for part in _BETWEEN_NAMES.split(value))
    return tuple(map(plain, columns(value)))


def key_columns(value: Any) -> tuple[str, ...]:
    found = tuple(map(plain, names(value)))
    if len({name.lower() for name in found}) < len(found):
        raise ValueError("must name each column once")
    return found


def names(value: Any) -> tuple[str, ...]:
    """One or more names."""
    found = _texts(value, wrong := "must be a name or a list of names")
    if not found:
        raise ValueError(wrong)
    return found


def strings(value: Any) -> tuple[str, ...]:
    return _texts(value, "must be a string or a list of strings")


def _texts(value: Any, wrong: str) -> tuple[str, ...]:
    """One string or a list of strings, none of them blank."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError(wrong)
    return tuple(items)


def source(value: Any) -> str:
    if not isinstance(value, str) or "." not in value.strip("."):
        raise ValueError("must be a source, written as source.table")
    return value


def several(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError("must be a list")
    return tuple(value)


def roots(value: Any) -> tuple[str, ...]:
    found = strings(value)
    if not found:
        raise ValueError("must name at least one folder or URI")
    for root in found:
        if problem := credentials_problem(root):
            raise ValueError(problem)
    return found


def patterns(value: Any) -> tuple[str, ...]:
    found = strings(value)
    for pattern in found:
        try:
            re.compile(pattern)
        except re.error as error:
            position = "" if error.pos is None else f" at position {error.pos}"
            raise ValueError(f"must be a regular expression ({pattern!r} has {error.msg}{position})") from None
    return found


def size(value: Any) -> int:
    """A number of bytes, from a number or from a size with a unit.

    >>> size("10g")
    10737418240
    """
    found = None if isinstance(value, bool) else _SIZE.fullmatch(str(value).strip())
    bytes = int(found.group(1)) * _UNITS[found.group(2).lower()] if found else 0
    if bytes < 1:
        raise ValueError("must be a number of bytes, or a size such as 10g")
    return bytes


def seconds(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1
    if isinstance(value, bool) or not found >= 0:
        raise ValueError("must be a number of seconds, 0 or more")
    if found > _LONGEST:
        raise ValueError("must be a number of seconds, a year at most")
    return found


def instant(value: Any) -> datetime:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not 1900 <= found.year < 9999:
        raise ValueError("must be a time with its offset, such as 2026-01-01T00:00:00Z")
    return found.astimezone(timezone.utc)


def moment(value: Any) -> datetime:
    """A time in UTC. A date means its midnight, and a time without a zone is in UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            value = None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise ValueError("must be a date or a time such as 2026-01-01")
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
