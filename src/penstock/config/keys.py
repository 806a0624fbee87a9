"""Every key that a user can set on a model or a source, once."""

from __future__ import annotations

from penstock.config import values
from penstock.config.key import Key
from penstock.config.kinds import BY_STRATEGY, INCREMENTAL, INGESTED, MODELS, STRATEGIES, TABLES, WINDOWS, Kind
from penstock.config.source_columns import source_columns

POLICIES = ("ignore", "fail", "append_new_columns", "sync_all_columns")
SIZES = ("hour", "day", "month", "year")
FORMATS = ("parquet", "csv", "json", "orc", "avro", "text")
"""The formats of files that can be read as they lie; `binaryFile` too where files are brought in."""

_MERGE = (Kind.MERGE, Kind.OWN_STRATEGY)
_READ = (*INGESTED, Kind.FILE_WINDOWS, Kind.SOURCE)
_BROUGHT_IN = (*INGESTED, Kind.SOURCE)
_FILES_HAVE_NO_KEY = (
    "files by key are not supported yet: load the files by append here, and bring them to one row per key in a model "
    "that reads this one, by `incremental_strategy: cdf_merge` or merge"
)
_SQL_SAYS_IT = "by cdf_merge the table is what the SQL says: write the condition into the SQL"

LAYOUT = (
    Key(
        "partition_by",
        "Columns whose values are folders of the table.",
        values.columns_in_text,
        TABLES,
    ),
    Key(
        "cluster_by",
        "Columns for liquid clustering; changed by the next run when the config changes. Excludes `partition_by`.",
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
        "`true` turns the table's change data feed on, in the commit that creates it.",
        values.flag,
        TABLES,
        default=False,
    ),
    Key(
        "location",
        "Of a model: the table's own folder, anywhere outside of the lake: new, empty, or with a table of the same "
        "columns; to change it, drop the table first. Of a source: the Delta table or the raw files.",
        values.path,
        (*TABLES, Kind.SOURCE),
        aliases=("delta_location",),
        unset="a folder of the lake",
    ),
    Key(
        "file_format",
        "For projects that were written for dbt-spark.",
        values.one_of("delta"),
        MODELS,
        default="delta",
    ),
)

INCREMENTALS = (
    Key(
        "incremental_strategy",
        "How an incremental model brings its rows in; a strategy of your own is a macro `get_incremental_<name>_sql`. "
        "Over `@data` it is `append` or `microbatch`.",
        values.one_of(*STRATEGIES),
        INCREMENTAL,
        unset="`merge` with a `unique_key`, `append` without",
    ),
    Key(
        "unique_key",
        "The columns that identify a row: of a merge, of the rows that delete+insert replaces, of the result of "
        "cdf_merge, of a snapshot. Allowed, without effect, on microbatch models whose windows are replaced.",
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
        "What follows when the model's columns are not the table's: for files, columns that are new in new files. "
        "`sync_all_columns` also drops columns that the model no longer makes.",
        values.one_of(*POLICIES),
        (*INCREMENTAL, Kind.FILE_TABLE),
        default="ignore",
    ),
    Key(
        "incremental_predicates",
        "Conditions on the rows of the table that a merge or delete+insert may touch; with replace_where, the rows to "
        "replace.",
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
            ("merge_exclude_columns", "The columns that a merge leaves as they are.", values.columns, "unique_key"),
            (
                "matched_condition",
                "When a matched row is updated; `DBT_INTERNAL_SOURCE` and `DBT_INTERNAL_DEST` are the two sides.",
                values.condition,
                "unique_key",
            ),
            ("not_matched_condition", "When a new row is inserted.", values.condition, None),
            (
                "not_matched_by_source_action",
                "`delete` removes rows of the table that the model does not return.",
                values.one_of("delete"),
                None,
            ),
            (
                "not_matched_by_source_condition",
                "Which of those rows are removed.",
                values.condition,
                "not_matched_by_source_action",
            ),
        )
    ),
    Key(
        "merge_with_schema_evolution",
        "`true`: MERGE WITH SCHEMA EVOLUTION.",
        values.flag,
        _MERGE,
        default=False,
    ),
)

CHANGES = (
    Key(
        "cdf_source",
        "The tables whose changes are followed: a model's name, `source.table` or `schema.identifier`; a view stands "
        "for the tables behind it. The others are joined as they are; their own changes do not trigger.",
        values.names,
        (Kind.CDF_MERGE,),
        unset="every Delta table that the model reads",
    ),
    Key(
        "cdf_max_versions",
        "At most so many versions of each source in one commit; a run goes on until it has them all.",
        values.positive,
        (Kind.CDF_MERGE,),
    ),
    Key(
        "on_cdf_gap",
        "What follows when changes can't be read any more.",
        values.one_of("fail", "full_refresh"),
        (Kind.CDF_MERGE,),
        default="fail",
    ),
)

FILES = (
    Key(
        "source_roots",
        "Folders or URIs where the files arrive. One that is not there is an error; an empty one is a no-op. Roots may "
        "overlap: a path counts once.",
        values.roots,
        _READ,
        aliases=("ss_source_path",),
        unset="required, or `file_source`",
    ),
    Key(
        "file_source",
        "A dbt source, as `source.table`, whose config has the keys of this section; the model's own win.",
        values.source,
        (*INGESTED, Kind.FILE_WINDOWS),
    ),
    Key(
        "source_patterns",
        "Regular expressions, searched in the path below the root; a file that none of them finds is left out.",
        values.patterns,
        _READ,
        default=(),
        unset="all files",
    ),
    Key("source_exclude", "The same, to leave out.", values.patterns, _READ, default=()),
    Key(
        "source_format",
        "The files' format. Mixed extensions without a choice are an error.",
        values.one_of(*FORMATS, "binaryFile"),
        _READ,
        unset="from the extension",
    ),
    Key("source_options", "Spark's options of the format.", values.options, _READ, default={}),
    Key(
        "source_columns",
        "The columns of the files; `extract: false` marks one that the SELECT makes.",
        source_columns,
        _READ,
        default=(),
        aliases=("scope_columns",),
        unset="inferred",
    ),
    Key(
        "max_files_per_trigger",
        "Files in a batch; whichever limit comes first closes it, and one file is in at least.",
        values.positive,
        _BROUGHT_IN,
        default=50,
    ),
    Key("max_bytes_per_trigger", "Bytes in a batch.", values.size, _BROUGHT_IN),
    Key(
        "safety_buffer_seconds",
        "Younger files wait for the next run: they may still be written. 0 takes all.",
        values.seconds,
        _READ,
        default=30,
    ),
    Key(
        "starting_timestamp",
        "First run of a generation only: older files are recorded as skipped.",
        values.instant,
        _BROUGHT_IN,
    ),
    Key(
        "source_compaction_interval",
        "How many batches make a compaction of the ledger.",
        values.positive,
        _BROUGHT_IN,
        default=10,
    ),
    Key("source_retention_files", "How many record files stay.", values.positive, _BROUGHT_IN, default=100),
    Key(
        "on_rewritten_file",
        "A known path with another time or size. `ingest`: again; `replace`: its earlier rows leave in the same commit, "
        "and the SELECT must have `source_file_uri`.",
        values.one_of("fail", "skip", "ingest", "replace"),
        _BROUGHT_IN,
        default="fail",
    ),
    Key(
        "on_bad_file",
        "A file that can't be read. `quarantine`: it is recorded with its reason, the rest comes in, the run warns.",
        values.one_of("fail", "quarantine"),
        _BROUGHT_IN,
        default="fail",
    ),
    Key(
        "on_moved_root",
        "A new root holds files that came in from another root. `accept`: they are the same files, and stay as they "
        "are; `ingest`: they come in again.",
        values.one_of("fail", "accept", "ingest"),
        _BROUGHT_IN,
        default="fail",
    ),
    Key(
        "rescued_data_column",
        "csv and json: the values of a record that do not fit their columns land there as a JSON object instead of "
        "failing.",
        values.column,
        _READ,
    ),
)

WINDOW_KEYS = (
    Key(
        "event_time",
        "The model's column of time. On any model or source: microbatch models that read it read their window's rows "
        "alone.",
        values.column,
        (*MODELS, Kind.SOURCE),
        unset="none; required by microbatch",
    ),
    Key("batch_size", "The length of a window.", values.one_of(*SIZES), WINDOWS, unset="required"),
    Key("begin", "Where the first run and a full refresh begin.", values.moment, WINDOWS, unset="required"),
    Key("lookback", "How many windows before the newest each run does again.", values.count, WINDOWS, default=1),
    Key(
        "concurrent_batches",
        "Windows side by side: when `event_time` is a partition column their commits are too; else they queue.",
        values.flag,
        WINDOWS,
        unset="dbt's choice",
    ),
    Key(
        "delete_before_insert",
        "`true`: a window's rows are replaced; `false`: they are added, once.",
        values.flag,
        WINDOWS,
        default=True,
    ),
    Key(
        "days_per_batch",
        "How many neighbouring windows are one Spark job and one commit (days, where a window is a day).",
        values.positive,
        WINDOWS,
        default=1,
    ),
    Key(
        "skip_to_high_watermark",
        "Leaves out windows that end at or before MAX(`event_time`) of the table, as its log tells it.",
        values.flag,
        WINDOWS,
        default=False,
    ),
    Key(
        "source_path",
        "For `@data`: a path with `%Y`, `%m`, `%d`, `%j`, `%H`, and `*`, `?`, `[…]`, `**/` in names. Excludes "
        "`source_roots`.",
        values.path,
        (Kind.FILE_WINDOWS,),
    ),
)

OF_DBT = (
    Key("full_refresh", "As in dbt: `false` keeps the table from `--full-refresh`.", values.flag, MODELS),
    Key(
        "persist_docs",
        "As in dbt: descriptions become comments of tables and columns.",
        values.block,
        MODELS,
        default={},
    ),
    Key(
        "sql_header",
        "As in dbt: statements that run before the model's, each with its semicolon.",
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

OF_A_SOURCE = (
    Key(
        "format",
        "The format of the files at `location`.",
        values.one_of("delta", *FORMATS),
        (Kind.SOURCE,),
        default="delta",
    ),
    Key("options", "Spark's options of the format.", values.block, (Kind.SOURCE,), default={}),
)

PROFILE = (
    Key(
        "root",
        "The lake's folder: a path (relative to the project), `file://`, or an object-store URI.",
        values.path,
        (),
        unset="required",
    ),
    Key("schema", "The schema, a folder of the lake, that models go to.", values.text, (), unset="required"),
    Key(
        "threads",
        "dbt's threads; each has a Spark session of its own on the one Spark.",
        values.positive,
        (),
        default=1,
    ),
    Key("session.master", "A Spark master.", values.text, (), default="local[*]"),
    Key("session.remote", "A Spark Connect server. It is not supported yet, so the key is an error.", values.text, ()),
    Key(
        "session.memory",
        "The driver's heap, e.g. `4g`.",
        values.memory,
        (),
        unset="half of what the process may use (control groups respected)",
    ),
    Key("session.spark_config", "Any Spark setting; wins over penstock's own.", values.block, (), default={}),
    Key(
        "session.jars",
        "Jars to start with instead of fetching any.",
        values.strings,
        (),
        unset="Delta's, and Spark's for Avro, fetched once",
    ),
    Key(
        "session.repositories",
        "Maven repositories to ask first: addresses, or blocks of `url`, `user`, `password`.",
        values.several,
        (),
        unset="Maven Central",
    ),
    Key(
        "session.fast_start",
        "Whether Spark starts with penstock's shortcuts ([performance.md](performance.md#starting-spark)); `false` "
        "starts it as Spark's own script does.",
        values.flag,
        (),
        default=True,
    ),
    Key(
        "storage_options",
        "Object-store credentials and settings of its HTTP client (`allow_http: true`, `timeout: 30`), in the keys of "
        "obstore and delta-rs; never logged, never in SQL, never in `dbt debug`.",
        values.block,
        (),
        default={},
    ),
)

SECTIONS: dict[str, tuple[Key, ...]] = {
    "Layout": LAYOUT,
    "Incremental models": INCREMENTALS,
    "Changes": CHANGES,
    "Files": FILES,
    "Windows": WINDOW_KEYS,
    "dbt's own": OF_DBT,
    "Sources": OF_A_SOURCE,
}
OF_MODELS = tuple(key for title, keys in SECTIONS.items() for key in keys if title != "Sources")
OF_SOURCES = tuple(key for keys in SECTIONS.values() for key in keys if Kind.SOURCE in key.kinds)
# Keys of dbt that mean the same here as everywhere: known, so that a near miss of one is found.
DBT = ("materialized", "contract", "hard_deletes", "store_failures", "store_failures_as")
ALIASES = {alias: key.name for keys in SECTIONS.values() for key in keys for alias in key.aliases}
BY_NAME = {spelling: key for key in OF_MODELS for spelling in key.spellings}
KNOWN = (*BY_NAME, *DBT)
