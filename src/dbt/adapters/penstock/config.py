"""A model's config at the border between Jinja and Python: aliases resolved, all errors in one message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig

from penstock.checks import block, checked, one_of, path
from penstock.layout import Layout
from penstock.relations import FILE_FORMATS
from penstock.secrets import is_secret
from penstock.settings import nearest

ALIASES = {
    "tblproperties": "table_properties",
    "scope_settings": "table_properties",
    "delta_location": "location",
    "ss_source_path": "source_roots",
    "scope_columns": "source_columns",
}
STRATEGIES = (
    "append",
    "merge",
    "insert_overwrite",
    "delete+insert",
    "replace_where",
    "cdf_merge",
    "microbatch",
)
_LAYOUT_KEYS = ("partition_by", "cluster_by", "table_properties", "location", "change_data_feed")
_MERGE_KEYS = (
    "merge_update_columns",
    "merge_exclude_columns",
    "incremental_predicates",
    "matched_condition",
    "not_matched_condition",
    "not_matched_by_source_condition",
    "not_matched_by_source_action",
    "merge_with_schema_evolution",
)
_FILE_KEYS = (
    "source_roots",
    "source_patterns",
    "source_exclude",
    "file_source",
    "source_format",
    "source_options",
    "source_columns",
    "max_files_per_trigger",
    "max_bytes_per_trigger",
    "safety_buffer_seconds",
    "starting_timestamp",
    "source_compaction_interval",
    "source_retention_files",
    "on_rewritten_file",
    "on_bad_file",
    "on_moved_root",
    "rescued_data_column",
)
_CHANGE_KEYS = ("cdf_source", "cdf_max_versions", "on_cdf_gap")
_WINDOW_KEYS = ("delete_before_insert", "skip_to_high_watermark", "days_per_batch", "source_path")
_DBT_KEYS = (
    "unique_key",
    "incremental_strategy",
    "on_schema_change",
    "materialized",
    "full_refresh",
    "persist_docs",
    "contract",
    "batch_size",
    "event_time",
    "lookback",
    "begin",
    "concurrent_batches",
    "hard_deletes",
    "store_failures",
)
KNOWN = (*_LAYOUT_KEYS, *_MERGE_KEYS, *_FILE_KEYS, *_CHANGE_KEYS, *_WINDOW_KEYS, *_DBT_KEYS, *ALIASES)
# What dbt-spark has and a lake does another way: silence would put data in the wrong place.
_REPLACED = {
    "location_root": "`location`, the table's own folder",
    "clustered_by": "`cluster_by` (liquid clustering)",
    "buckets": "`cluster_by` (liquid clustering)",
}
_SOURCE_CHECKS = {"location": path, "format": one_of("delta", *FILE_FORMATS), "options": block}


@dataclass
class PenstockConfig(AdapterConfig):
    partition_by: Any = None
    cluster_by: Any = None
    table_properties: dict[str, Any] | None = None
    location: str | None = None


def resolved(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config with every alias under its own name."""
    plain = dict(config)
    for alias, name in ALIASES.items():
        if plain.get(alias) is not None and plain.get(name) is None:
            plain[name] = plain[alias]
    if plain.get("change_data_feed"):
        properties = dict(plain.get("table_properties") or {})
        plain["table_properties"] = properties | {"delta.enableChangeDataFeed": "true"}
    return plain


def problems(config: Mapping[str, Any], extra: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with a model's config; `extra` are the keys that dbt itself does not know."""
    found = Layout.problems(resolved(config))
    for key in extra:
        if key in _REPLACED:
            found.append(f"`{key}` is dbt-spark's: use {_REPLACED[key]}")
        elif key not in KNOWN:
            guess = nearest(key, KNOWN, cutoff=0.85)
            if guess is not None:
                found.append(f"`{key}` is not known: did you mean `{guess}`?")
    if config.get("file_format") not in (None, "delta"):
        found.append(f"`file_format` can only be delta, not {config['file_format']!r}")
    location = resolved(config).get("location")
    if location is not None:
        found += checked({"location": location}, {"location": path})[1]
    feed = config.get("change_data_feed")
    if feed is not None and not isinstance(feed, bool):
        found.append(f"`change_data_feed` is true or false, not {feed!r}")
    if config.get("incremental_strategy") == "cdf_merge":
        from penstock.changes import ChangeSource

        # What `cdf_source` names is looked up in the project, when the model runs.
        keys = [key for key in ChangeSource.known() if key != "cdf_source"]
        found += ChangeSource.problems({key: config.get(key) for key in keys})
    elif set_keys := [key for key in _CHANGE_KEYS if config.get(key) is not None]:
        found.append(f"`{set_keys[0]}` is for `incremental_strategy: cdf_merge`")
    action = config.get("not_matched_by_source_action")
    if action is not None and action != "delete":
        found.append(f"`not_matched_by_source_action` can only be delete, not {action!r}")
    return found


def source_problems(config: Mapping[str, Any]) -> list[str]:
    """Everything that is wrong with where a source says that it lies; other keys are the user's own."""
    given = {key: value for key, value in resolved(config).items() if value is not None}
    checks = _SOURCE_CHECKS if "location" in given else {"location": path}
    _, found = checked(given, checks)
    options = given.get("options") if checks is _SOURCE_CHECKS else None
    for key in options if isinstance(options, Mapping) else ():
        if is_secret(str(key)):
            found.append(
                f"`options` holds a secret, `{key}`, and would be written to `_link.json`, where every reader of the lake "
                "sees it: give it in `session.spark_config`, as `{{ env_var('…') }}`"
            )
    for key in given:
        # Among three names a lower bar than among all keys of a model is right: it finds `fromat`.
        guess = nearest(key, checks, cutoff=0.8)
        if key not in KNOWN and guess not in (None, key):
            found.append(f"`{key}` is not known: did you mean `{guess}`?")
    return found


def is_window_model(config: Any) -> bool:
    return config.get("materialized") == "incremental" and config.get("incremental_strategy") == "microbatch"
