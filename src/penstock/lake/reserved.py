"""The two reserved schemas, and the columns of the lake's own tables in them. `penstock.own_tables` makes their rows.

An own table is read only, and has no folder. A lake that already has a schema of such a name keeps it: its relations
are found first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Protocol

from penstock.delta.table import Column
from penstock.errors import PenstockError
from penstock.sql.names import Name
from penstock.sql.wanted import Wanted

if TYPE_CHECKING:
    import pyarrow as pa

SYSTEM_TABLE: Final = "system table"
"""The kind of an own table."""

_TABLE = (("table_schema", "string", "the table's schema"), ("table_name", "string", "the table's name"))
_CATALOG = ("table_catalog", "string", "always spark_catalog")
_COMMIT = (
    ("planned_at", "timestamp", "when the plan was written"),
    ("committed_at", "timestamp", "when the commit was made; null if the log does not have the commit (any more)"),
    ("version", "bigint", "the Delta version of the commit; null as committed_at"),
)
_DEFINITIONS: Mapping[str, tuple[str, tuple[tuple[str, str, str], ...]]] = {
    "information_schema.schemata": (
        "the schemas of the lake",
        (
            ("catalog_name", "string", "always spark_catalog"),
            ("schema_name", "string", "the schema's name"),
            ("schema_owner", "string", "always null: a lake has no owners"),
            ("location", "string", "the schema's folder; null for a reserved schema"),
        ),
    ),
    "information_schema.tables": (
        "the tables, views and raw files of the lake, and the lake's own tables",
        (
            _CATALOG,
            *_TABLE,
            ("table_type", "string", "BASE TABLE, VIEW, or EXTERNAL TABLE for raw files; VIEW for an own table"),
            ("is_insertable_into", "string", "YES for a table, else NO"),
            ("table_owner", "string", "always null: a lake has no owners"),
            ("comment", "string", "the description of a table or view"),
            ("created", "timestamp", "when a Delta table was created or replaced"),
            ("last_altered", "timestamp", "the time of a Delta table's newest commit"),
            ("data_source_format", "string", "DELTA, the format of raw files, or null"),
            ("storage_path", "string", "where the data is; null for views and own tables"),
        ),
    ),
    "information_schema.columns": (
        "the columns of all relations in information_schema.tables",
        (
            _CATALOG,
            *_TABLE,
            ("column_name", "string", "the column's name"),
            ("ordinal_position", "int", "the column's position, from 1 on"),
            ("column_default", "string", "always null"),
            ("is_nullable", "string", "YES or NO"),
            ("data_type", "string", "the whole type as Spark's SQL spells it, such as decimal(10,2)"),
            ("character_maximum_length", "int", "the length of a char or varchar"),
            ("numeric_precision", "int", "the digits of a decimal"),
            ("numeric_scale", "int", "the digits of a decimal after the point"),
            ("comment", "string", "the column's description"),
        ),
    ),
    "penstock.relations": (
        "all tables, views and raw files of the lake, and what needs attention",
        (
            *_TABLE,
            ("kind", "string", "files, changes, windows, table, view or raw files"),
            ("version", "bigint", "the newest Delta version"),
            ("row_count", "bigint", "rows, from the statistics in the log"),
            ("size", "bigint", "bytes of the data files"),
            ("data_files", "bigint", "data files"),
            ("small_files", "bigint", "data files that OPTIMIZE could join"),
            ("deleted_rows", "bigint", "rows that deletion vectors mark as deleted, and that are still in the files"),
            ("changed_at", "timestamp", "the time of the newest commit"),
            ("last_run_at", "timestamp", "when a run last wrote its summary or committed"),
            ("files_waiting", "bigint", "files that are not in the table yet"),
            ("files_quarantined", "bigint", "files that could not be read and were left out"),
            ("versions_behind", "bigint", "versions of followed tables that are not in the table yet"),
            ("holes", "bigint", "ranges of windows that are missing"),
            ("error", "string", "why the relation can't be read, or why its next run would fail"),
            ("attention", "string", "what needs attention, most urgent first"),
        ),
    ),
    "penstock.files": (
        "every file that a table was built from, and every file that waits",
        (
            *_TABLE,
            ("path", "string", "the path that the file is read from"),
            ("status", "string", "ingested, replaced, skipped, quarantined, released or waiting"),
            (
                "reason",
                "string",
                "why the file was skipped or quarantined; for a waiting file, that it is too young; else null",
            ),
            ("size", "bigint", "bytes"),
            ("modified_at", "timestamp", "when the file was written"),
            ("batch_id", "bigint", "the batch that recorded the file; null if it waits"),
            ("planned_at", "timestamp", "when this batch was planned"),
        ),
    ),
    "penstock.batches": (
        "the batches of files of each table since it was created or last refreshed",
        (
            *_TABLE,
            ("batch_id", "bigint", "the batch, from 0 on"),
            ("number", "bigint", "the number of the batch's plan, the name of its file in _checkpoint/sources"),
            ("status", "string", "committed, cancelled or unfinished"),
            ("reason", "string", "why the batch was cancelled"),
            *_COMMIT,
            ("seconds", "double", "from planned_at to committed_at"),
            ("files", "bigint", "files that were read"),
            ("size", "bigint", "bytes of these files"),
            ("rows_inserted", "bigint", "rows that the commit added; null as committed_at"),
            ("files_skipped", "bigint", "files that were recorded without reading them, such as empty ones"),
            ("files_quarantined", "bigint", "files that could not be read and were left out"),
        ),
    ),
    "penstock.changes": (
        "the versions of its sources that each cdf_merge table has, and those that wait",
        (
            *_TABLE,
            ("source", "string", "the followed table"),
            ("status", "string", "committed, cancelled, unfinished or waiting"),
            (
                "first_version",
                "bigint",
                "the first version of the source; null if the table was built from last_version",
            ),
            ("last_version", "bigint", "the last version of the source"),
            ("number", "bigint", "the number of the plan; null if the versions wait"),
            ("way", "string", "build, changes, whole, or empty if no row changed; null if the versions wait"),
            ("reason", "string", "why the model was computed as a whole, or why the plan was cancelled"),
            *_COMMIT,
            ("waiting_since", "timestamp", "the time of the first version that waits; null if none waits"),
            ("rows_inserted", "bigint", "rows that the commit inserted; for all sources of the commit together"),
            ("rows_updated", "bigint", "rows that the commit updated, likewise"),
            ("rows_deleted", "bigint", "rows that the commit deleted, likewise"),
        ),
    ),
    "penstock.windows": (
        "the windows that each microbatch table has, and the ranges that are missing",
        (
            *_TABLE,
            ("window_start", "timestamp", "the begin of the range"),
            ("window_end", "timestamp", "its end, which is not in it"),
            ("status", "string", "loaded, hole or unfinished"),
            (
                "number",
                "bigint",
                "the number of the plan that added it; null for replaced windows, and for windows of older plans",
            ),
            *_COMMIT,
            ("rows_inserted", "bigint", "rows that the commit added; null as version"),
        ),
    ),
}


class OwnRows(Protocol):
    """Makes the rows of the lake's own tables."""

    def rows(self, name: Name, wanted: Wanted = ...) -> pa.Table:
        """The rows of an own table as they are now; rows that are not `wanted` may be left out."""


TABLES: Mapping[Name, tuple[Column, ...]] = {
    Name.parse(name): tuple(Column(*column[:2], comment=column[2]) for column in columns)
    for name, (_, columns) in _DEFINITIONS.items()
}
"""The columns of each own table."""
DESCRIPTIONS: Mapping[Name, str] = {Name.parse(name): text for name, (text, _) in _DEFINITIONS.items()}
FILES = Name("penstock", "files")
SCHEMAS = ("information_schema", "penstock")


def hidden_in(text: str) -> set[Name]:
    """The own tables that a text names in IDENTIFIER('…'). Spark knows such a table after its first use, without rows."""
    lower = text.lower()
    return {name for name in TABLES if str(name) in lower} if "identifier" in lower else set()


def refusal(name: Name | str) -> PenstockError:
    """The error for a statement that would write an own table, or create something in a reserved schema."""
    if isinstance(name, Name) and name in TABLES:
        return PenstockError(
            f"{name} is one of the lake's own tables, which can only be read",
            fix="To keep its rows, create a table from it in another schema.",
        )
    schema = name if isinstance(name, str) else name.schema
    return PenstockError(
        f"The schema {schema} is reserved for the lake's own tables",
        where=None if isinstance(name, str) else str(name),
        fix="Use another schema.",
    )
