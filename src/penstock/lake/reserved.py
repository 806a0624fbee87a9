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
