"""The keys of files, for models over `@data` and for sources.

To add a key: define it here, add a field with the same name and default to `files.config.FileSource`, and use that
field. Add a value to `VALUES` in `tests/unit/config/test_keys.py`, run `make reference`, and describe the key in
`docs/files.md`. The unit tests fail if the field, the value or the reference is missing, or if the defaults differ.
"""

from __future__ import annotations

from penstock.config import values
from penstock.config.formats import FORMATS, IN_PLACE
from penstock.config.key import Key
from penstock.config.kinds import INGESTED, Kind
from penstock.config.source_columns import source_columns

_READ = (*INGESTED, Kind.FILE_WINDOWS, Kind.SOURCE)
_LOADED = (*INGESTED, Kind.SOURCE)

FILES = (
    Key(
        "source_roots",
        "The folders or URIs where the files arrive. A missing one is an error; an empty one is not. Roots may overlap: "
        "each file is loaded once.",
        values.roots,
        _READ,
        aliases=("ss_source_path",),
        unset="required, or `file_source`",
    ),
    Key(
        "file_source",
        "A dbt source, as `source.table`, whose config has the keys of this section. The model's own keys win.",
        values.source,
        (*INGESTED, Kind.FILE_WINDOWS),
    ),
    Key(
        "source_patterns",
        "Regular expressions for the path below the root. Files that match none of them are ignored.",
        values.patterns,
        _READ,
        default=(),
        unset="all files",
    ),
    Key(
        "source_exclude",
        "Regular expressions for the path below the root. Files that match one of them are ignored.",
        values.patterns,
        _READ,
        default=(),
    ),
    Key(
        "source_format",
        "The format of the files. If the files have different extensions, it is required.",
        values.one_of(*FORMATS),
        _READ,
        unset="from the extension",
    ),
    Key("source_options", "Spark's options for the format.", values.options, _READ, default={}),
    Key(
        "source_columns",
        "The columns of the files. `extract: false` marks a column that the SELECT computes.",
        source_columns,
        _READ,
        default=(),
        aliases=("scope_columns",),
        unset="inferred",
    ),
    Key(
        "max_files_per_trigger",
        "The maximum number of files in a batch. A batch ends at the first limit that it reaches, but has at least one "
        "file.",
        values.positive,
        _LOADED,
        default=50,
    ),
    Key("max_bytes_per_trigger", "The maximum number of bytes in a batch.", values.size, _LOADED),
    Key(
        "safety_buffer_seconds",
        "Files younger than this wait for the next run, because they may be incomplete. 0 loads all files.",
        values.seconds,
        _READ,
        default=30,
    ),
    Key(
        "starting_timestamp",
        "The first run and a full refresh skip files older than this time, and record them as skipped.",
        values.instant,
        _LOADED,
    ),
    Key(
        "source_compaction_interval",
        "The number of batches after which the ledger is compacted.",
        values.positive,
        _LOADED,
        default=10,
    ),
    Key("source_retention_files", "The number of ledger files that are kept.", values.positive, _LOADED, default=100),
    Key(
        "on_rewritten_file",
        "How the run reacts if a loaded file has a new time or size. `ingest` loads it again. `replace` also deletes its "
        "earlier rows in the same commit; the SELECT must have `source_file_uri`.",
        values.one_of("fail", "skip", "ingest", "replace"),
        _LOADED,
        default="fail",
    ),
    Key(
        "on_bad_file",
        "How the run reacts if a file can't be parsed. `quarantine` records the file and the reason, loads the other "
        "files, and warns.",
        values.one_of("fail", "quarantine"),
        _LOADED,
        default="fail",
    ),
    Key(
        "on_moved_root",
        "How the run reacts if a new root has files that were loaded from another root. `accept` treats them as loaded; "
        "`ingest` loads them again.",
        values.one_of("fail", "accept", "ingest"),
        _LOADED,
        default="fail",
    ),
    Key(
        "rescued_data_column",
        "For csv and json: a column for values that do not fit the types of their columns, as a JSON object. Without "
        "it, such values fail the run.",
        values.column,
        _READ,
    ),
)

OF_A_SOURCE = (
    Key(
        "format",
        "The format of the files at `location`.",
        values.one_of("delta", *IN_PLACE),
        (Kind.SOURCE,),
        default="delta",
    ),
    Key("options", "Spark's options for the format.", values.block, (Kind.SOURCE,), default={}),
)
