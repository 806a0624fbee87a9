"""Rows of own tables as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from penstock.lake.reserved import TABLES
from penstock.sql.names import Name

Row = Mapping[str, Any]
"""Values by column. A column that is missing is null."""

_TYPES = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def schema_of(name: Name) -> pa.Schema:
    """The columns of an own table as Arrow."""
    return pa.schema([(column.name, _TYPES[column.type]) for column in TABLES[name]])


def arrow(name: Name, rows: Iterable[Row]) -> pa.Table:
    """Rows with all columns of an own table, in their order."""
    found, schema = list(rows), schema_of(name)
    return pa.table([pa.array([row.get(field.name) for row in found], field.type) for field in schema], schema=schema)
