"""What the values of a configuration may be: each check returns the value as it is used, or says what it should be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from penstock.errors import PenstockError
from penstock.secrets import redact
from penstock.storage import credentials_problem

Check = Callable[[Any], Any]


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


def path(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("is a path or URI")
    if problem := credentials_problem(value):
        raise ValueError(problem)
    return value


def block(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("is a block of settings")
    return dict(value)


def one_of(*allowed: str) -> Check:
    def check(value: Any) -> str:
        found = next((item for item in allowed if str(value).lower() == item.lower()), None)
        if found is None:
            raise ValueError(f"is one of {', '.join(allowed)}")
        return found

    return check
