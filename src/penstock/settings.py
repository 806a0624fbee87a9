"""The settings of a session, validated once, all errors in one message."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from penstock.errors import PenstockError

_MEMORY = re.compile(r"^\d+[kmgt]b?$", re.IGNORECASE)


def nearest(key: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name that a mistyped one was meant to be."""
    close = difflib.get_close_matches(key, list(known), n=1, cutoff=cutoff)
    return close[0] if close else None


def unknown_keys(given: Iterable[str], known: Iterable[str], where: str = "") -> list[str]:
    """A line for each key that is not known, with the nearest that is."""
    known = list(known)
    problems = []
    for key in given:
        if key not in known:
            guess = nearest(key, known)
            hint = f"did you mean `{guess}`?" if guess else f"known are {', '.join(sorted(known))}"
            problems.append(f"`{where}{key}` is not known: {hint}")
    return problems


@dataclass(frozen=True)
class SessionSettings:
    """Where Spark runs and how it is set up."""

    master: str | None = None
    """A Spark master; `local[*]`, in this process, when absent."""
    remote: str | None = None
    """A Spark Connect server, `sc://host:port`."""
    memory: str | None = None
    """The driver's heap, e.g. `4g`; half of what this process may use when absent."""
    spark_config: dict[str, str] = field(default_factory=dict)
    """Any Spark setting; wins over what penstock sets."""
    jars: tuple[str, ...] = ()
    """Jars to start with instead of fetching Delta's."""
    repositories: tuple[str, ...] = ()
    """Maven repositories to fetch Delta's jars from, before the central one."""

    @classmethod
    def known(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @classmethod
    def problems(cls, given: Any) -> list[str]:
        """Everything that is wrong with a `session:` block."""
        if given is None:
            return []
        if not isinstance(given, Mapping):
            return [f"`session` is a block of settings ({', '.join(cls.known())}), not {given!r}"]
        problems = unknown_keys(given, cls.known(), "session.")
        memory = given.get("memory")
        if memory is not None and not _MEMORY.match(str(memory)):
            problems.append(f"`session.memory` is a size such as 4g or 800m, not {memory!r}")
        config = given.get("spark_config")
        if config is not None and not isinstance(config, Mapping):
            problems.append(f"`session.spark_config` is a block of Spark settings, not {config!r}")
        for key in ("jars", "repositories"):
            value = given.get(key)
            if value is not None and not _is_strings(value):
                problems.append(f"`session.{key}` is a list of strings, not {value!r}")
        for key in ("master", "remote"):
            value = given.get(key)
            if value is not None and not isinstance(value, str):
                problems.append(f"`session.{key}` is a string, not {value!r}")
        if given.get("master") and given.get("remote"):
            problems.append("`session.master` and `session.remote` exclude each other")
        return problems

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any] | None) -> SessionSettings:
        """Settings as a profile or a caller gives them."""
        problems = cls.problems(given)
        if problems:
            raise PenstockError("The session's settings are wrong: " + "; ".join(problems))
        given = given or {}
        return cls(
            master=given.get("master"),
            remote=given.get("remote"),
            memory=None if given.get("memory") is None else str(given["memory"]),
            spark_config={str(key): _spark_value(value) for key, value in (given.get("spark_config") or {}).items()},
            jars=tuple(given.get("jars") or ()),
            repositories=tuple(given.get("repositories") or ()),
        )


def _is_strings(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _spark_value(value: Any) -> str:
    """YAML's true is Spark's `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
