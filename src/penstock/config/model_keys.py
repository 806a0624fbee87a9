"""The keys of models: layout, incremental strategies, changes, windows, and dbt's own."""

from __future__ import annotations

from penstock.config import values
from penstock.config.key import Key
from penstock.config.kinds import BY_STRATEGY, INCREMENTAL, MODELS, STRATEGIES, TABLES, WINDOWS, Kind

POLICIES = ("ignore", "fail", "append_new_columns", "sync_all_columns")
SIZES = ("hour", "day", "month", "year")

_MERGE = (Kind.MERGE, Kind.OWN_STRATEGY)
_FILES_HAVE_NO_KEY = (
    "files with a key are not supported yet: append the files here, and reduce them to one row per key in a model "
    "that reads this one, with `incremental_strategy: cdf_merge` or merge"
)
_SQL_SAYS_IT = "with cdf_merge the table is the result of the SQL: write the condition into the SQL"

LAYOUT = (
    Key(
        "partition_by",
        "The partition columns. Each of their values is a folder of the table.",
        values.columns_in_text,
        TABLES,
    ),
    Key(
        "cluster_by",
        "Columns for liquid clustering. If the config changes, the next run changes the table. Excludes `partition_by`.",
        values.columns_in_text,
        TABLES,
    ),
    Key(
        "table_properties",
        "Delta's table properties.",
        values.properties,
        TABLES,
        aliases=("tblproperties", "scope_settings"),
    ),
    Key(
        "change_data_feed",
        "`true` turns on the table's change data feed, from the first commit.",
        values.flag,
        TABLES,
        default=False,
    ),
    Key(
        "location",
        "For a model: the table's own folder outside the lake. It must be new, empty, or hold a table with the same "
        "columns. To change the location, drop the table first. For a source: its Delta table or its raw files.",
        values.path,
        (*TABLES, Kind.SOURCE),
        aliases=("delta_location",),
        unset="a folder of the lake",
    ),
    Key(
        "file_format",
        "Only for projects that were written for dbt-spark.",
        values.one_of("delta"),
        MODELS,
        default="delta",
    ),
)

INCREMENTALS = (
    Key(
        "incremental_strategy",
        "How an incremental model writes its rows. A strategy of your own is a macro `get_incremental_<name>_sql`. "
        "Models over `@data` use `append` or `microbatch`.",
        values.one_of(*STRATEGIES),
        INCREMENTAL,
        unset="`merge` with a `unique_key`, `append` without",
    ),
    Key(
        "unique_key",
        "The columns that identify a row in merge, delete+insert, cdf_merge and snapshots. Microbatch models that "
        "replace their windows may have it, without effect.",
        values.names,
        (Kind.MERGE, Kind.DELETE_INSERT, Kind.OWN_STRATEGY, Kind.CDF_MERGE, Kind.SNAPSHOT),
        unset="none; required by cdf_merge and snapshots",
        allowed=(Kind.MICROBATCH,),
        instead={
            Kind.FILES: _FILES_HAVE_NO_KEY,
            Kind.FILE_TABLE: _FILES_HAVE_NO_KEY,
            Kind.FILE_WINDOWS: _FILES_HAVE_NO_KEY,
        },
    ),
    Key(
        "on_schema_change",
        "How the run reacts if the model's columns differ from the table's, for example because new files have new "
        "columns. `sync_all_columns` also drops columns that the model no longer has.",
        values.one_of(*POLICIES),
        (*INCREMENTAL, Kind.FILE_TABLE),
        default="ignore",
    ),
    Key(
        "incremental_predicates",
        "Conditions on the table's rows: merge and delete+insert change only matching rows, and replace_where replaces "
        "the matching rows.",
        values.conditions,
        (Kind.MERGE, Kind.DELETE_INSERT, Kind.REPLACE_WHERE, Kind.OWN_STRATEGY),
        aliases=("predicates",),
        unset="none; required by replace_where",
        instead={Kind.CDF_MERGE: _SQL_SAYS_IT},
    ),
    *(
        Key(name, doc, check, _MERGE, needs=needs, instead={Kind.CDF_MERGE: _SQL_SAYS_IT})
        for name, doc, check, needs in (
            ("merge_update_columns", "The columns that a merge updates.", values.columns, "unique_key"),
            ("merge_exclude_columns", "The columns that a merge does not update.", values.columns, "unique_key"),
            (
                "matched_condition",
                "A matched row is updated only if this is true. `DBT_INTERNAL_SOURCE` is the model's row, "
                "`DBT_INTERNAL_DEST` the table's row.",
                values.condition,
                "unique_key",
            ),
            ("not_matched_condition", "A new row is inserted only if this is true.", values.condition, None),
            (
                "not_matched_by_source_action",
                "`delete` deletes the table's rows that the model does not return.",
                values.one_of("delete"),
                None,
            ),
            (
                "not_matched_by_source_condition",
                "With `not_matched_by_source_action`, a row is deleted only if this is true.",
                values.condition,
                "not_matched_by_source_action",
            ),
        )
    ),
    Key(
        "merge_with_schema_evolution",
        "`true` uses Delta's `MERGE WITH SCHEMA EVOLUTION`.",
        values.flag,
        _MERGE,
        default=False,
    ),
)

CHANGES = (
    Key(
        "cdf_source",
        "The followed sources: the tables whose changes update the model. Each is a model's name, `source.table` or "
        "`schema.identifier`. A view stands for the tables behind it. Changes in other tables do not update the model.",
        values.names,
        (Kind.CDF_MERGE,),
        unset="every Delta table that the model reads",
    ),
    Key(
        "cdf_max_versions",
        "The maximum number of versions of each source in one commit. A run makes as many commits as it needs.",
        values.positive,
        (Kind.CDF_MERGE,),
    ),
    Key(
        "on_cdf_gap",
        "How the run reacts if the changes since the last run can no longer be read.",
        values.one_of("fail", "full_refresh"),
        (Kind.CDF_MERGE,),
        default="fail",
    ),
)

WINDOW_KEYS = (
    Key(
        "event_time",
        "The column with the time of a row. A microbatch model reads only the rows of its window from a model or source "
        "with this key.",
        values.column,
        (*MODELS, Kind.SOURCE),
        unset="none; required by microbatch",
    ),
    Key("batch_size", "The length of a window.", values.one_of(*SIZES), WINDOWS, unset="required"),
    Key("begin", "The start of the first run and of a full refresh.", values.moment, WINDOWS, unset="required"),
    Key("lookback", "The number of earlier windows that each run loads again.", values.count, WINDOWS, default=1),
    Key(
        "concurrent_batches",
        "`true` runs windows in parallel. Their commits are parallel only if `event_time` is a partition column.",
        values.flag,
        WINDOWS,
        unset="dbt's choice",
    ),
    Key(
        "delete_before_insert",
        "`true` replaces a window's rows. `false` adds them, once.",
        values.flag,
        WINDOWS,
        default=True,
    ),
    Key(
        "days_per_batch",
        "The number of neighbouring windows in one Spark job and one commit. These are days if `batch_size` is `day`.",
        values.positive,
        WINDOWS,
        default=1,
    ),
    Key(
        "skip_to_high_watermark",
        "`true` skips windows that end at or before MAX(`event_time`) of the table, which is read from its log.",
        values.flag,
        WINDOWS,
        default=False,
    ),
    Key(
        "source_path",
        "The path of a window's files for `@data`: with `%Y`, `%m`, `%d`, `%j`, `%H`, and with `*`, `?`, `[…]`, `**/` "
        "in names. Excludes `source_roots`.",
        values.path,
        (Kind.FILE_WINDOWS,),
    ),
)

OF_DBT = (
    Key("full_refresh", "As in dbt: `false` ignores `--full-refresh` for this model.", values.flag, MODELS),
    Key(
        "persist_docs",
        "As in dbt: descriptions become comments of the table and its columns.",
        values.block,
        MODELS,
        default={},
    ),
    Key(
        "sql_header",
        "As in dbt: statements that run before the model's statement. Each ends with a semicolon.",
        values.statements,
        (
            Kind.TABLE,
            Kind.VIEW,
            Kind.SEED,
            Kind.SNAPSHOT,
            *(kind for kind in BY_STRATEGY if kind is not Kind.CDF_MERGE),
            *WINDOWS,
        ),
    ),
)
