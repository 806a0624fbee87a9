"""Every key on every kind of model: it works there, or it is refused."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.changes import ChangeSource
from penstock.config import Key, Kind, check_model, check_source, keys, kind_of
from penstock.config.kinds import INGESTED, WINDOWS
from penstock.config.session_settings import SessionSettings
from penstock.delta.layout import Layout
from penstock.files import FileSource
from penstock.windows import WindowSettings

ROOT = Path(penstock.__file__).parents[2]
MACROS = "\n".join(file.read_text() for file in (ROOT / "src/dbt/include/penstock/macros").rglob("*.sql"))

INCREMENTAL = {"materialized": "incremental"}
WINDOW = {
    **INCREMENTAL,
    "incremental_strategy": "microbatch",
    "event_time": "at",
    "batch_size": "day",
    "begin": "2026-01-01",
}
BASE: dict[Kind, dict[str, Any]] = {
    Kind.TABLE: {"materialized": "table"},
    Kind.VIEW: {"materialized": "view"},
    Kind.EPHEMERAL: {"materialized": "ephemeral"},
    Kind.SEED: {"materialized": "seed"},
    Kind.SNAPSHOT: {"materialized": "snapshot"},
    Kind.APPEND: {**INCREMENTAL, "incremental_strategy": "append"},
    Kind.MERGE: {**INCREMENTAL, "unique_key": "id"},
    Kind.INSERT_OVERWRITE: {**INCREMENTAL, "incremental_strategy": "insert_overwrite"},
    Kind.DELETE_INSERT: {**INCREMENTAL, "incremental_strategy": "delete+insert"},
    Kind.REPLACE_WHERE: {**INCREMENTAL, "incremental_strategy": "replace_where"},
    Kind.OWN_STRATEGY: {**INCREMENTAL, "incremental_strategy": "ours", "unique_key": "id"},
    Kind.CDF_MERGE: {**INCREMENTAL, "incremental_strategy": "cdf_merge", "unique_key": "id"},
    Kind.MICROBATCH: WINDOW,
    Kind.FILE_WINDOWS: {**WINDOW, "source_roots": ["landing"]},
    Kind.FILES: {**INCREMENTAL, "source_roots": ["landing"]},
    Kind.FILE_TABLE: {"materialized": "table", "source_roots": ["landing"]},
}
VALUES: dict[str, Any] = {
    "partition_by": "day",
    "cluster_by": ["day"],
    "table_properties": {"delta.appendOnly": "true"},
    "change_data_feed": True,
    "location": "./elsewhere",
    "file_format": "delta",
    "unique_key": "code",
    "on_schema_change": "fail",
    "incremental_predicates": ["id > 1"],
    "merge_update_columns": ["n"],
    "merge_exclude_columns": ["n"],
    "matched_condition": "a > b",
    "not_matched_condition": "a > b",
    "not_matched_by_source_action": "delete",
    "not_matched_by_source_condition": "a > b",
    "merge_with_schema_evolution": True,
    "cdf_source": "other",
    "cdf_max_versions": 5,
    "on_cdf_gap": "full_refresh",
    "source_roots": ["other"],
    "file_source": "landing.orders",
    "source_patterns": ["json$"],
    "source_exclude": ["tmp"],
    "source_format": "json",
    "source_options": {"multiLine": "true"},
    "source_columns": [{"name": "id", "type": "int"}],
    "max_files_per_trigger": 3,
    "max_bytes_per_trigger": "1g",
    "safety_buffer_seconds": 1,
    "starting_timestamp": "2026-01-01T00:00:00Z",
    "source_compaction_interval": 3,
    "source_retention_files": 3,
    "on_rewritten_file": "skip",
    "on_bad_file": "quarantine",
    "on_moved_root": "accept",
    "rescued_data_column": "rest",
    "event_time": "day",
    "batch_size": "month",
    "begin": "2025-01-01",
    "lookback": 3,
    "concurrent_batches": True,
    "delete_before_insert": False,
    "days_per_batch": 3,
    "skip_to_high_watermark": True,
    "source_path": "landing/%Y/*.json",
    "full_refresh": False,
    "persist_docs": {"relation": True},
    "sql_header": "set x = y;",
    "format": "csv",
    "options": {"header": "true"},
}
# The keys that determine the kind.
TELLS_THE_KIND = {"incremental_strategy", "source_roots", "file_source", "unique_key", "source_path"}


def config_with(key: Key, kind: Kind, spelling: str | None = None) -> dict[str, Any]:
    config = {**BASE[kind], spelling or key.name: VALUES[key.name]}
    if key.needs and kind in key.kinds:
        config[key.needs] = VALUES[key.needs]
    return config


CASES = [
    pytest.param(key, kind, id=f"{key.name}-{kind.value}")
    for key in keys.OF_MODELS
    for kind in BASE
    if key.name != "incremental_strategy"
]


def test_the_kinds_are_told_by_the_config() -> None:
    assert {kind: kind_of(config) for kind, config in BASE.items()} == {kind: kind for kind in BASE}
    assert set(BASE) == set(Kind) - {Kind.SOURCE}


@pytest.mark.parametrize(("key", "kind"), CASES)
def test_a_key_works_or_is_refused(key: Key, kind: Kind) -> None:
    for spelling in key.spellings:
        config = config_with(key, kind, spelling)
        if kind_of({**config, key.name: VALUES[key.name]}) is not kind:
            # By this key a model is of another kind: with a `source_path` windows are over files.
            assert key.name in TELLS_THE_KIND
            continue
        found = check_model(config, own=[spelling], strategies=["ours"])
        if kind in key.kinds:
            assert found.errors == []
            assert reads(key, kind), f"{key.name} is taken on {kind.text}, and nothing reads it"
        elif kind in key.allowed:
            assert found.errors == []
            assert found.ignored[0].startswith(f"`{spelling}` has no effect on {kind.text}: it works on ")
        else:
            assert len(found.errors) == 1
            assert found.errors[0].startswith(f"`{spelling}` has no effect on {kind.text}: it works on ")
        # A folder may set a key for all of its models, unless rows would be doubled.
        doubles = key.name == "unique_key" and kind is Kind.FILES
        assert bool(check_model(config, strategies=["ours"]).errors) == doubles


def reads(key: Key, kind: Kind) -> bool:
    """Whether there is something that uses the key on a model of this kind."""
    if key.name in ("file_format", "full_refresh", "persist_docs", "event_time", "location"):
        return True  # held by functional tests: dbt's own meaning, or where a relation lies
    config = {**config_with(key, kind), "event_time": "at"}
    if key in keys.LAYOUT:
        layout = (
            {"table_properties": {"delta.enableChangeDataFeed": "true"}} if key.name == "change_data_feed" else config
        )
        return Layout.from_config({**layout, "event_time": None}) != Layout()
    if kind in (*INGESTED, Kind.FILE_WINDOWS) and (key in keys.FILES or (key.name == "on_schema_change")):
        base = {"source_roots": ["landing"]}
        if key.name in ("file_source", "source_roots"):
            return True  # held by functional tests
        return FileSource.from_mapping({**base, key.name: VALUES[key.name]}) != FileSource.from_mapping(base)
    if kind in WINDOWS and key.name not in ("sql_header", "lookback", "concurrent_batches"):
        found = {**WINDOW, key.name: VALUES[key.name]}
        return key.name == "event_time" or WindowSettings.from_config(found) != WindowSettings.from_config(WINDOW)
    if kind is Kind.CDF_MERGE and key.name != "sql_header":
        name = {"cdf_source": "s.other"}.get(key.name, VALUES[key.name])
        return ChangeSource.from_mapping({"unique_key": "id", key.name: name}) != ChangeSource.from_mapping(
            {"unique_key": "id"}
        )
    if key.name in ("lookback", "concurrent_batches"):
        return kind in WINDOWS  # dbt's own
    if kind is Kind.SNAPSHOT and key.name == "unique_key":
        return True  # dbt's own
    return re.search(rf"config\.get\('{key.name}'", MACROS) is not None


@pytest.mark.parametrize("kind", BASE)
def test_a_strategy_is_for_incremental_models(kind: Kind) -> None:
    base = {key: value for key, value in BASE[kind].items() if key != "incremental_strategy"}
    found = check_model({**base, "incremental_strategy": "merge"}, own=["incremental_strategy"]).errors
    if base["materialized"] == "incremental" and kind is not Kind.FILES and kind is not Kind.FILE_WINDOWS:
        assert found == []
    elif kind in (Kind.FILES, Kind.FILE_WINDOWS):
        assert "must be append or microbatch on an incremental model over @data, not 'merge'" in found[0]
    else:
        assert found == [f"`incremental_strategy` has no effect on {kind.text}: it works on incremental models"]


@pytest.mark.parametrize(
    "strategy", ["merge", "delete+insert", "insert_overwrite", "replace_where", "cdf_merge", "ours"]
)
def test_files_are_never_merged_or_replaced_in_silence(strategy: str) -> None:
    config = {**BASE[Kind.FILES], "incremental_strategy": strategy, "unique_key": "id"}
    for own in ((), ("incremental_strategy", "unique_key", "source_roots")):
        problems = " ".join(check_model(config, own=own, strategies=["ours"]).errors)
        assert f"not '{strategy}'" in problems
        assert "`unique_key` has no effect on an incremental model over @data" in problems
        assert "cdf_merge` or merge" in problems


def test_a_key_of_a_microbatch_model_is_allowed_where_its_windows_are_replaced() -> None:
    config = {**WINDOW, "unique_key": "id"}
    assert check_model(config, own=["unique_key"]).errors == []
    added = check_model({**config, "delete_before_insert": False}, own=["unique_key"]).errors
    assert added[0].startswith("`unique_key` has no effect on a microbatch model: it works on ")


def test_a_folders_merge_without_a_key_appends_files_as_it_appends_rows() -> None:
    found = check_model({**BASE[Kind.FILES], "incremental_strategy": "merge"})
    assert found.errors == []
    assert len(found.ignored) == 1
    assert check_model({**BASE[Kind.FILES], "incremental_strategy": "insert_overwrite"}).errors


@pytest.mark.parametrize("strategy", ["cdf_merge", "microbatch"])
def test_a_python_model_has_the_strategies_that_it_can_have(strategy: str) -> None:
    config = {**WINDOW, "incremental_strategy": strategy, "unique_key": "id"}
    problems = " ".join(check_model(config, language="python").errors)
    assert (
        f"of a Python model must be one of append, merge, insert_overwrite, delete+insert, replace_where, not '{strategy}'"
        in problems
    )


def test_a_python_model_reads_no_files_by_config() -> None:
    for own in ((), ("source_roots",)):
        found = check_model({"materialized": "table", "source_roots": ["landing"]}, own=own, language="python").errors
        assert found[0].startswith("`source_roots` has no effect on a table in Python: it works on ")


@pytest.mark.parametrize("key", [key for key in keys.OF_MODELS if key.kinds], ids=lambda key: key.name)
def test_a_wrong_value_is_named(key: Key) -> None:
    for kind in key.kinds:
        if kind in BASE and key.name != "incremental_strategy":
            config = {**config_with(key, kind), key.name: 1 + 2j}
            problems = " ".join(check_model(config, own=[key.name]).errors)
            assert f"`{key.name}` " in problems
            assert "not (1+2j)" in problems


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (
            BASE[Kind.APPEND] | {"incremental_strategy": "upsert"},
            "must be one of append, merge, insert_overwrite, delete+insert",
        ),
        (BASE[Kind.MERGE] | {"on_schema_change": "sync"}, "`on_schema_change` must be one of ignore, fail"),
        (WINDOW | {"lookback": -1}, "`lookback` must be a whole number, 0 or more, not -1"),
        (WINDOW | {"lookback": "two"}, "`lookback` must be a whole number, 0 or more, not 'two'"),
        (WINDOW | {"batch_size": "week"}, "`batch_size` must be one of hour, day, month, year, not 'week'"),
        (WINDOW | {"concurrent_batches": "yes"}, "`concurrent_batches` must be true or false, not 'yes'"),
        (
            BASE[Kind.MERGE] | {"merge_update_columns": 5},
            "`merge_update_columns` must be a column's name or a list of them",
        ),
        (BASE[Kind.TABLE] | {"file_format": "parquet"}, "`file_format` must be delta, not 'parquet'"),
    ],
)
def test_wrong_values(config: dict[str, Any], message: str) -> None:
    assert message in " ".join(check_model(config).errors)


@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_an_empty_value_is_no_value(empty: object) -> None:
    for kind, base in BASE.items():
        for key in keys.OF_MODELS:
            if key.name not in base:
                assert check_model({**base, key.name: empty}, own=[key.name], strategies=["ours"]).errors == [], kind


def test_defaults_of_dbt_are_nothing_that_a_model_says() -> None:
    given = {"on_schema_change": "ignore", "lookback": 1, "unique_key": None, "persist_docs": {}}
    assert check_model({"materialized": "view", **given}) == check_model({"materialized": "view"})


def test_all_is_in_one_message() -> None:
    config = {"materialized": "view", "unique_key": "id", "cluster_by": "day", "location_root": "/x", "uniqe_key": "id"}
    found = check_model(config, own=["unique_key", "cluster_by"], extra=["location_root", "uniqe_key", "owner"]).errors
    assert len(found) == 4


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("safety_buffer", "safety_buffer_seconds"),
        ("safety_buffer_minutes", "safety_buffer_seconds"),
        ("source_retention", "source_retention_files"),
        ("compaction_interval", "source_compaction_interval"),
        ("files_per_trigger", "max_files_per_trigger"),
        ("max_file_per_trigger", "max_files_per_trigger"),
        ("update_columns", "merge_update_columns"),
        ("source_root", "source_roots"),
        ("schema_evolution", "merge_with_schema_evolution"),
        ("high_watermark", "skip_to_high_watermark"),
        ("partitionby", "partition_by"),
        ("uniqe_key", "unique_key"),
    ],
)
def test_near_misses_are_found(given: str, meant: str) -> None:
    assert check_model({"materialized": "table"}, extra=[given]).errors == [
        f"`{given}` is not known: did you mean `{meant}`?"
    ]
    assert check_model({"materialized": "table"}, extra=[given], by_package=True).errors == []


OTHERS = re.findall(
    r"\w+",
    """
transient copy_grants automatic_clustering secure snowflake_warehouse query_tag target_lag tmp_relation_type table_format
external_volume base_location_root base_location_subpath row_access_policy table_tag refresh_mode initialize catalog_name
hours_to_expiration kms_key_name labels resource_tags require_partition_filter partition_expiration_days copy_partitions
grant_access_to enable_refresh refresh_interval_minutes max_staleness enable_list_inference partitions
intermediate_format gcs_bucket submission_method dataproc_cluster_name timeout
sort sort_type dist bind backup auto_refresh unlogged indexes
liquid_clustered_by auto_liquid_cluster databricks_tags compression include_full_name_in_path databricks_compute
source_alias target_alias skip_matched_step skip_not_matched_step python_job_config job_cluster_config create_notebook
schedule zorder unique_tmp_table_suffix use_safer_relation_operations view_update_via_alter packages index_url
additional_libs user_folder_for_python column_tags row_filter
s3_data_dir s3_data_naming table_type write_compression bucketed_by bucket_count force_batch lf_tags_config
field_delimiter ha seed_by_insert update_condition insert_condition delete_condition
engine order_by primary_key inserts_only sharding_key ttl settings query_settings
as_columnstore distribution index view_security on_table_exists table_kind primary_index fallback
strategy updated_at check_cols target_schema target_database snapshot_meta_column_names dbt_valid_to_current
invalidate_hard_deletes quote_columns column_types delimiter where limit fail_calc warn_if error_if severity
store_failures_as on_configuration_change group access docs meta tags enabled alias schema database freshness
loaded_at_field loaded_at_query static_analysis grants post_hook pre_hook
owner team domain sla pii source_system data_source table_owner retention_days description_long batch_id load_type
""",
)


@pytest.mark.parametrize("key", OTHERS)
def test_keys_of_other_adapters_and_the_users_own_are_let_be(key: str) -> None:
    found = check_model({"materialized": "incremental"}, own=[key], extra=[key])
    assert (found.errors, found.ignored) == ([], [])


def test_defaults_are_those_of_the_engine() -> None:
    by_name = {key.name: key for key in keys.OF_MODELS}
    for made in (FileSource(("/landing",)), ChangeSource(("id",))):
        for item in fields(made):
            key = by_name.get(item.name)
            if key is not None and item.name not in ("source_roots", "unique_key"):
                empty = (None, (), {})
                value = getattr(made, item.name)
                assert value == key.default or (value in empty and key.default in empty), item.name
    settings = WindowSettings.from_config(WINDOW)
    for name in ("delete_before_insert", "days_per_batch", "skip_to_high_watermark", "on_schema_change"):
        assert getattr(settings, name) == by_name[name].default


@pytest.mark.parametrize(
    ("section", "made", "elsewhere"),
    [
        (keys.FILES, FileSource, {"file_source"}),
        (keys.SECTIONS["Changes"], ChangeSource, set()),
        (keys.WINDOW_KEYS, WindowSettings, {"lookback", "concurrent_batches"}),  # dbt itself uses these
    ],
)
def test_the_engine_takes_every_key_of_a_pipeline(section: tuple[Key, ...], made: type, elsewhere: set[str]) -> None:
    """A key without a field would be accepted in a model's config, and have no effect."""
    assert {key.name for key in section} <= {item.name for item in fields(made)} | elsewhere


def test_every_key_is_there_once_and_has_a_value_to_test_with() -> None:
    spellings = [spelling for section in keys.SECTIONS.values() for key in section for spelling in key.spellings]
    assert len(set(spellings)) == len(spellings)
    assert set(VALUES) == {key.name for section in keys.SECTIONS.values() for key in section} - {"incremental_strategy"}
    assert {key.name.removeprefix("session.") for key in keys.PROFILE if key.name.startswith("session.")} == set(
        SessionSettings.known()
    )


def test_a_source_takes_its_own_keys_and_those_of_files() -> None:
    for key in keys.OF_SOURCES:
        base = {"source_roots": ["landing"]} if key in keys.FILES else {"location": "./landing"}
        assert check_source({**base, key.name: VALUES[key.name]}) == []
    for key in keys.OF_MODELS:
        if Kind.SOURCE not in key.kinds and key.name != "incremental_strategy":
            assert check_source({"location": "./x", key.name: VALUES[key.name]})[0].startswith(
                f"`{key.name}` has no effect"
            )


def test_the_table_needs_nothing_heavy() -> None:
    allowed = ("penstock.config", "penstock.errors", "penstock.sql.quoting", "penstock.secrets")
    for file in (ROOT / "src/penstock/config").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("penstock"):
                assert f"{node.module}.".startswith(tuple(f"{name}." for name in allowed)), file
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name.split(".")[0] in ("dbt", "pyarrow", "sqlglot", "deltalake")]
