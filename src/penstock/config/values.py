"""What the values of a configuration may be: each check returns the value as it is used, or says what it should be."""

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
    """The values that are right, and a line for each that is not.

    >>> checked({"batches": 0}, {"batches": positive})
    ({}, ['`batches` is a whole number of at least 1, not 0'])
    """
    values, problems = {}, []
    for key, check in checks.items():
        if key in config:
            try:
                values[key] = check(config[key])
            except (ValueError, PenstockError) as error:
                problems.append(f"`{key}` {error}, not {redact(repr(config[key]))}")
    return values, problems


def positive(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"\d+", str(value).strip()) or int(value) < 1:
        raise ValueError("is a whole number of at least 1")
    return int(value)


def count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError("is a whole number, 0 or more")
    return int(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("is true or false")
    return value


def path(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is a path or URI")
    if problem := credentials_problem(value):
        raise ValueError(problem)
    return value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("is a string")
    return value


def memory(value: Any) -> str:
    if not _MEMORY.match(str(value)):
        raise ValueError("is a size such as 4g or 800m")
    return str(value)


def condition(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is a condition in SQL")
    return value


def conditions(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError("is a condition in SQL or a list of them")
    return tuple(items)


def statements(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("is SQL")
    return value


def block(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("is a block of settings")
    return dict(value)


def properties(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("is a block of properties")
    return dict(value)


def options(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError("is a block of Spark's options for the format")
    remember(value)
    return {str(key): str(item).lower() if isinstance(item, bool) else str(item) for key, item in value.items()}


def one_of(*allowed: str) -> Check:
    def check(value: Any) -> str:
        # dbt's batch sizes are an enumeration.
        given = str(getattr(value, "value", value)).lower()
        found = next((item for item in allowed if given == item.lower()), None)
        if found is None:
            raise ValueError(f"is one of {', '.join(allowed)}" if len(allowed) > 1 else f"can only be {allowed[0]}")
        return found

    return check


def column(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is the name of a column")
    return plain(value)


def columns(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError("is a column's name or a list of them")
    return tuple(items)


def columns_in_text(value: Any) -> tuple[str, ...]:
    """The same, where a text may name several with commas between them."""
    if isinstance(value, str) and value.strip():
        return tuple(plain(part) for part in _BETWEEN_NAMES.split(value))
    return tuple(map(plain, columns(value)))


def key_columns(value: Any) -> tuple[str, ...]:
    found = tuple(map(plain, names(value)))
    if len({name.lower() for name in found}) < len(found):
        raise ValueError("names a column twice")
    return found


def names(value: Any) -> tuple[str, ...]:
    """At least one name."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not items or not all(isinstance(i, str) and i.strip() for i in items):
        raise ValueError("is a name or a list of names")
    return tuple(items)


def strings(value: Any) -> tuple[str, ...]:
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, str) and item.strip() for item in items):
        raise ValueError("is a string or a list of strings")
    return tuple(items)


def source(value: Any) -> str:
    if not isinstance(value, str) or "." not in value.strip("."):
        raise ValueError("names a source as source.table")
    return value


def several(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError("is a list")
    return tuple(value)


def roots(value: Any) -> tuple[str, ...]:
    found = strings(value)
    if not found:
        raise ValueError("names at least one folder or URI")
    for root in found:
        if problem := credentials_problem(root):
            raise ValueError(problem)
        if root.startswith("hdfs:"):
            raise ValueError("is a local folder or an object store's URI (hdfs:// can't be listed yet)")
    return found


def patterns(value: Any) -> tuple[str, ...]:
    found = strings(value)
    for pattern in found:
        try:
            re.compile(pattern)
        except re.error as error:
            position = "" if error.pos is None else f" at position {error.pos}"
            raise ValueError(f"is a regular expression ({pattern!r} has {error.msg}{position})") from None
    return found


def size(value: Any) -> int:
    """A number of bytes.

    >>> size("10g")
    10737418240
    """
    found = None if isinstance(value, bool) else _SIZE.fullmatch(str(value).strip())
    bytes = int(found.group(1)) * _UNITS[found.group(2).lower()] if found else 0
    if bytes < 1:
        raise ValueError("is a number of bytes, or a size such as 10g")
    return bytes


def seconds(value: Any) -> float:
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = -1
    if isinstance(value, bool) or not found >= 0:
        raise ValueError("is a number of seconds, 0 or more")
    if found > _LONGEST:
        raise ValueError("is a number of seconds, a year at most")
    return found


def instant(value: Any) -> datetime:
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not 1900 <= found.year < 9999:
        raise ValueError("is a time with its offset, such as 2026-01-01T00:00:00Z")
    return found.astimezone(timezone.utc)


def moment(value: Any) -> datetime:
    """A date is its midnight, and a time without a zone is in UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            value = None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        raise ValueError("is a date or a time such as 2026-01-01")
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
