"""A model's config on its way to the engine: the keys that it sets itself, and its errors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig

from penstock import config as engine
from penstock.config import Found, Kind
from penstock.delta.layout import Layout

_STRATEGY_MACRO = re.compile(r"get_incremental_(\w+)_sql")
_YAML_KEYS = {"model": "models", "seed": "seeds", "snapshot": "snapshots"}


@dataclass
class PenstockConfig(AdapterConfig):
    partition_by: Any = None
    cluster_by: Any = None
    table_properties: dict[str, Any] | None = None
    location: str | None = None


def resolved(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with each alias under its key's name, and `change_data_feed` as a table property."""
    plain = engine.resolved(config)
    properties = plain.get("table_properties") or {}
    if plain.get("change_data_feed") and isinstance(properties, Mapping):
        plain["table_properties"] = dict(properties) | {"delta.enableChangeDataFeed": "true"}
    return plain


def kind_of(node: Any) -> Kind | None:
    return engine.kind_of(engine.resolved(node.config.to_dict()), _language(node))


def problems(node: Any, manifest: Any) -> Found:
    """All errors in the config of a model, seed or snapshot, and the inherited keys that have no effect on it."""
    config = node.config.to_dict()
    found = engine.check_model(
        config,
        own=own_keys(node, manifest),
        extra=getattr(node.config, "_extra", {}),
        language=_language(node),
        strategies=() if engine.strategy(config) in engine.STRATEGIES else _own_strategies(manifest),
        by_package=_is_of_package(node, manifest),
    )
    kind = kind_of(node)
    if kind is None or kind in (Kind.VIEW, Kind.EPHEMERAL):
        return found
    plain = resolved(config)
    found.errors += Layout.problems(plain)
    if kind is Kind.CDF_MERGE:
        from penstock.changes import ChangeSource

        # `cdf_source` may name models. They are looked up when the model runs.
        keys = [key for key in ChangeSource.known() if key != "cdf_source"]
        found.errors += ChangeSource.problems({key: plain.get(key) for key in keys})
    return found


def own_keys(node: Any, manifest: Any) -> set[str]:
    """The keys that a model sets in its SQL or beside its name in a YAML file. dbt merges them with those of folders."""
    keys = set(getattr(node, "config_call_dict", None) or {})
    file = (getattr(manifest, "files", None) or {}).get(getattr(node, "patch_path", None))
    kind = _YAML_KEYS.get(str(getattr(node, "resource_type", "")))
    if file is not None and kind is not None and hasattr(file, "get_unrendered_config"):
        for version in {None, getattr(node, "version", None)}:
            keys |= set(file.get_unrendered_config(kind, node.name, version) or {})
    return keys


def source_problems(config: Mapping[str, Any]) -> list[str]:
    """All errors in the keys that say where a source is. Keys of the user are ignored."""
    return engine.check_source(config)


def is_window_model(config: Any) -> bool:
    return bool(config.get("materialized") == "incremental" and config.get("incremental_strategy") == "microbatch")


def _language(node: Any) -> str:
    return str(getattr(node, "language", None) or "sql")


def _is_of_package(node: Any, manifest: Any) -> bool:
    """Whether a model belongs to a package, so that the user can't change its SQL and YAML."""
    project = getattr(getattr(manifest, "metadata", None), "project_name", None)
    return project is not None and node.package_name != project


def _own_strategies(manifest: Any) -> set[str]:
    """The incremental strategies that are macros of the project or of a package."""
    macros = getattr(manifest, "macros", None) or {}
    names = (_STRATEGY_MACRO.fullmatch(macro.name) for macro in macros.values())
    built_in = {strategy.replace("+", "_") for strategy in engine.STRATEGIES} | {"default"}
    return {name.group(1) for name in names if name is not None} - built_in
