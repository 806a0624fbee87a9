"""The settings of a session, checked once, with all errors in one message."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from penstock.config.near import unknown_keys
from penstock.errors import PenstockError
from penstock.secrets import in_java_options, in_uri, redact, remember, remember_value
from penstock.sql.quoting import PINNED

_EXECUTORS_OPTIONS = re.compile(r"spark\.(?:executor|yarn\.am)\.(?:extra|default)JavaOptions")
_NETWORK = ("driver_host", "driver_bind_address")
_MEMORY = re.compile(r"^\d+[kmgt]b?$", re.IGNORECASE)


@dataclass(frozen=True)
class Repository:
    """A Maven repository, with a user and a password if it asks for them."""

    url: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)

    @classmethod
    def problems(cls, given: Any) -> list[str]:
        """The errors in one of `session.repositories`, which is an address or a block of these settings."""
        if isinstance(given, Mapping):
            found = unknown_keys(given, [item.name for item in fields(cls)], "session.repositories.")
            found += [
                f"`session.repositories.{key}` must be a string, not {_kind(value)}"
                for key, value in given.items()
                if not isinstance(value, str)
            ]
            if bool(given.get("user")) != bool(given.get("password")):
                found.append("`session.repositories` needs both `user` and `password`, or neither")
            url = given.get("url")
        else:
            found, url = [], given
        if not isinstance(url, str) or not url.strip():
            return [*found, f"`session.repositories` names addresses, or blocks with a `url`, not {_kind(given)}"]
        if kind := in_uri(url):
            found.append(
                f"`session.repositories` holds credentials ({kind}) in {redact(url)}: write the address without them, "
                "as a block of `url`, `user` and `password`, with `{{ env_var('…') }}` as the password"
            )
        return found

    @classmethod
    def from_setting(cls, given: str | Mapping[str, str]) -> Repository:
        """A repository as the profile gives it."""
        if isinstance(given, str):
            return cls(given)
        remember_value(given.get("password"))
        return cls(given["url"], given.get("user"), given.get("password"))


@dataclass(frozen=True)
class SessionSettings:
    """Where Spark runs and how it is set up."""

    master: str | None = None
    """A Spark master; by default `local[*]`, in this process."""
    remote: str | None = None
    """A Spark Connect server, `sc://host:port`."""
    memory: str | None = None
    """The driver's heap, e.g. `4g`; by default half of what this process may use."""
    spark_config: dict[str, str] = field(default_factory=dict, repr=False)
    """Any Spark setting; it wins over penstock's own."""
    jars: tuple[str, ...] = ()
    """Jars to start with instead of fetching Delta's."""
    repositories: tuple[Repository, ...] = ()
    """Maven repositories to fetch Delta's jars from, before Maven Central."""
    fast_start: bool = True
    """Whether Spark starts with penstock's shortcuts."""
    single_writer: bool = False
    """Whether one process at a time writes, so that a store without conditional writes will do."""
    spark_home: str | None = None
    """An existing installation of Spark; by default that of SPARK_HOME, else the one that pip installed."""
    driver_host: str | None = None
    """The address at which a cluster's executors reach the driver; by default the one that Spark finds."""
    driver_bind_address: str | None = None
    """The address that the driver listens at; by default `driver_host`."""

    @property
    def is_local(self) -> bool:
        """Whether this process's JVM is all of Spark. `local-cluster[…]` has executors of its own."""
        return _is_local(self.spark_config.get("spark.master") or self.master)

    @classmethod
    def known(cls) -> list[str]:
        return [field.name for field in fields(cls)]

    @classmethod
    def problems(cls, given: Any) -> list[str]:
        """The errors in a `session:` block."""
        if given is None:
            return []
        if not isinstance(given, Mapping):
            return [f"`session` must be a block of settings ({', '.join(cls.known())}), not {_kind(given)}"]
        problems = unknown_keys(given, cls.known(), "session.")
        memory = given.get("memory")
        if memory is not None and not _MEMORY.match(str(memory)):
            problems.append(f"`session.memory` must be a size such as 4g or 800m, not {memory!r}")
        problems += _config_problems(given.get("spark_config"))
        for key in ("jars", "repositories"):
            value = given.get(key)
            if value is None:
                continue
            if not isinstance(value, (list, tuple)):
                problems.append(f"`session.{key}` must be a list, not {_kind(value)}")
                continue
            problems += [found for item in value for found in _CHECKS_OF_ITEMS[key](item)]
        for key in ("fast_start", "single_writer"):
            value = given.get(key)
            if value is not None and not isinstance(value, bool):
                problems.append(f"`session.{key}` must be true or false, not {_kind(value)}")
        for key in ("master", "remote", "spark_home", "driver_host", "driver_bind_address"):
            value = given.get(key)
            if value is not None and not isinstance(value, str):
                problems.append(f"`session.{key}` must be a string, not {_kind(value)}")
            elif value is not None and in_uri(value):
                problems.append(f"`session.{key}` holds credentials ({in_uri(value)}), which every log would show")
        if given.get("master") and given.get("remote"):
            problems.append("`session.master` and `session.remote` exclude each other")
        return problems + _network_problems(given)

    @classmethod
    def from_mapping(cls, given: Mapping[str, Any] | None) -> SessionSettings:
        """Settings as a profile or a caller gives them."""
        problems = cls.problems(given)
        if isinstance(given, Mapping):
            remember(given)
        if problems:
            raise PenstockError("The session's settings are wrong: " + "; ".join(problems))
        given = given or {}
        return cls(
            master=given.get("master"),
            remote=given.get("remote"),
            memory=None if given.get("memory") is None else str(given["memory"]),
            spark_config={str(key): _spark_value(value) for key, value in (given.get("spark_config") or {}).items()},
            jars=tuple(given.get("jars") or ()),
            repositories=tuple(Repository.from_setting(item) for item in given.get("repositories") or ()),
            fast_start=given.get("fast_start") is not False,
            single_writer=given.get("single_writer") is True,
            **{key: given.get(key) or None for key in ("spark_home", *_NETWORK)},
        )


def _is_local(master: Any) -> bool:
    """Whether a master is this process.

    >>> [_is_local(master) for master in (None, "local", "local[4]", "local-cluster[2,1,1024]", "yarn")]
    [True, True, True, False, False]
    """
    return not master or master == "local" or str(master).startswith("local[")


def _network_problems(given: Mapping[str, Any]) -> list[str]:
    """Errors for the driver's addresses: a Spark in this process talks to nobody else."""
    if not _is_local(given.get("master")):
        return []
    return [
        f"`session.{key}` has an effect on a cluster only, and `session.master` names none: remove it, or set the master"
        for key in _NETWORK
        if given.get(key)
    ]


def _config_problems(config: Any) -> list[str]:
    """The errors in `session.spark_config`."""
    if config is None:
        return []
    if not isinstance(config, Mapping):
        return [f"`session.spark_config` is a block of Spark settings, not {_kind(config)}"]
    return _shown_by_executors(config) + [
        f"`session.spark_config` can't set {key} to {_spark_value(value)}: names and texts that are quoted for SQL would "
        "be read as something else"
        for key, value in config.items()
        if PINNED.get(str(key), _spark_value(value)) != _spark_value(value)
    ]


def _kind(value: Any) -> str:
    """The kind of a value in words; the value may be a secret, so it is not shown."""
    return {"str": "a text", "list": "a list", "dict": "a block", "int": "a number", "bool": "true or false"}.get(
        type(value).__name__, type(value).__name__
    )


def _shown_by_executors(config: Mapping[str, Any]) -> list[str]:
    """Errors for secrets in options that Spark puts on command lines of other machines, where we can't hide them."""
    return [
        f"`session.spark_config` has a secret, {', '.join(found)}, in `{key}`, which every user of an executor's machine "
        "can read: put the option into a file there that only Spark's user can read, and give `@/path/of/the/file`"
        for key, value in config.items()
        if _EXECUTORS_OPTIONS.fullmatch(str(key)) and (found := in_java_options(str(value)))
    ]


def _jar_problems(jar: Any) -> list[str]:
    if not isinstance(jar, str):
        return [f"`session.jars` is a list of strings, and holds {_kind(jar)}"]
    if kind := in_uri(jar):
        return [f"`session.jars` holds credentials ({kind}) in {redact(jar)}: fetch that jar, and name its path"]
    return []


_CHECKS_OF_ITEMS = {"jars": _jar_problems, "repositories": Repository.problems}


def _spark_value(value: Any) -> str:
    """A value as Spark writes it: YAML's true is `true`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
