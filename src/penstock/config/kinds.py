"""The kinds of model. Each kind has its own set of keys with an effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import Any

STRATEGIES = (
    "append",
    "merge",
    "insert_overwrite",
    "delete+insert",
    "replace_where",
    "cdf_merge",
    "microbatch",
)
ROOTS = ("source_roots", "file_source")
"""The keys for the folders of a model's files. A model with one of them is a model over `@data`."""


class Kind(Enum):
    """A kind of model. The value is its name in messages and in the docs."""

    TABLE = "table"
    VIEW = "view"
    EPHEMERAL = "ephemeral"
    SEED = "seed"
    SNAPSHOT = "snapshot"
    APPEND = "append"
    MERGE = "merge"
    INSERT_OVERWRITE = "insert_overwrite"
    DELETE_INSERT = "delete+insert"
    REPLACE_WHERE = "replace_where"
    OWN_STRATEGY = "a strategy of your own"
    CDF_MERGE = "cdf_merge"
    MICROBATCH = "microbatch"
    FILE_WINDOWS = "microbatch over @data"
    FILES = "incremental over @data"
    FILE_TABLE = "table over @data"
    SOURCE = "source"

    @property
    def is_incremental(self) -> bool:
        return self in INCREMENTAL

    @property
    def text(self) -> str:
        """The kind with its article, for a sentence."""
        if self in BY_STRATEGY:
            return f"an incremental model by {self.value}"
        if self in (Kind.MICROBATCH, Kind.FILE_WINDOWS):
            return f"a {self.value} model".replace("microbatch over @data model", "microbatch model over @data")
        if self in (Kind.FILES, Kind.FILE_TABLE):
            return {Kind.FILES: "an incremental model over @data", Kind.FILE_TABLE: "a table over @data"}[self]
        return f"an {self.value} model" if self is Kind.EPHEMERAL else f"a {self.value}"


BY_STRATEGY = (
    Kind.APPEND,
    Kind.MERGE,
    Kind.INSERT_OVERWRITE,
    Kind.DELETE_INSERT,
    Kind.REPLACE_WHERE,
    Kind.CDF_MERGE,
    Kind.OWN_STRATEGY,
)
WINDOWS = (Kind.MICROBATCH, Kind.FILE_WINDOWS)
INGESTED = (Kind.FILES, Kind.FILE_TABLE)
INCREMENTAL = (*BY_STRATEGY, *WINDOWS, Kind.FILES)
TABLES = (Kind.TABLE, Kind.FILE_TABLE, *INCREMENTAL, Kind.SEED, Kind.SNAPSHOT)
MODELS = (*TABLES, Kind.VIEW, Kind.EPHEMERAL)
_MATERIALIZED = {kind.value: kind for kind in (Kind.TABLE, Kind.VIEW, Kind.EPHEMERAL, Kind.SEED, Kind.SNAPSHOT)}
_BY_MACRO = {name.replace("+", "_"): name for name in STRATEGIES}


def strategy(config: Mapping[str, Any]) -> str:
    """The strategy in a config. The default is merge with a `unique_key` and append without.

    >>> strategy({"unique_key": "id"}), strategy({"incremental_strategy": "delete_insert"})
    ('merge', 'delete+insert')
    """
    given = config.get("incremental_strategy")
    if not given:
        return "merge" if config.get("unique_key") else "append"
    # dbt finds a strategy by the name of its macro, where a plus is an underscore. Here, `default` means append.
    return "append" if given == "default" else _BY_MACRO.get(str(given).replace("+", "_"), str(given))


def kind_of(config: Mapping[str, Any], language: str = "sql") -> Kind | None:
    """The kind of a model with this config; None for a custom materialization of the project.

    >>> kind_of({"materialized": "incremental", "source_roots": ["landing"]})
    <Kind.FILES: 'incremental over @data'>
    """
    materialized = str(config.get("materialized"))
    over_files = language == "sql" and any(config.get(key) for key in ROOTS)
    if materialized == "table":
        return Kind.FILE_TABLE if over_files else Kind.TABLE
    if materialized != "incremental":
        return _MATERIALIZED.get(materialized)
    found = strategy(config)
    if found == "microbatch":
        return Kind.FILE_WINDOWS if over_files or config.get("source_path") else Kind.MICROBATCH
    if over_files:
        return Kind.FILES
    return Kind(found) if found in STRATEGIES else Kind.OWN_STRATEGY


def in_words(kinds: Collection[Kind]) -> str:
    """The kinds of model on which a key works, as text.

    >>> in_words([Kind.MERGE, Kind.CDF_MERGE, Kind.SNAPSHOT])
    'incremental models by merge or cdf_merge, and on snapshots'
    """
    if set(MODELS) <= set(kinds):
        return "every model"
    if set(TABLES) <= set(kinds):
        return _and(["tables of every kind", *_plural([kind for kind in kinds if kind not in TABLES])])
    every = set(INCREMENTAL) <= set(kinds)
    rest = _plural([kind for kind in Kind if kind in kinds and kind not in (INCREMENTAL if every else BY_STRATEGY)])
    if every:
        return _and(["incremental models of every kind", *rest])
    by = [kind.value for kind in BY_STRATEGY if kind in kinds]
    return ", and on ".join(filter(None, [f"incremental models by {_or(by)}" if by else "", _and(rest)]))


def _plural(kinds: Collection[Kind]) -> list[str]:
    names: dict[Kind, str] = {
        Kind.TABLE: "tables",
        Kind.VIEW: "views",
        Kind.EPHEMERAL: "ephemeral models",
        Kind.SEED: "seeds",
        Kind.SNAPSHOT: "snapshots",
        Kind.MICROBATCH: "microbatch models",
        Kind.FILE_WINDOWS: "microbatch models over @data",
        Kind.FILES: "incremental models over @data",
        Kind.FILE_TABLE: "tables over @data",
        Kind.SOURCE: "sources",
    }
    if set(WINDOWS) <= set(kinds):
        names |= {Kind.FILE_WINDOWS: ""}
    if set(INGESTED) <= set(kinds):
        names |= {Kind.FILES: "", Kind.FILE_TABLE: "models over @data"}
    return [names[kind] for kind in kinds if names[kind]]


def _or(names: Sequence[str]) -> str:
    return _joined(names, " or ")


def _and(names: Sequence[str]) -> str:
    return _joined(names, " and ")


def _joined(names: Sequence[str], last: str) -> str:
    return last.join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
