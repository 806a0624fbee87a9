"""Seeds: agate's rows as Arrow, cast by Spark to their exact types."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available

from dbt.adapters.penstock.engine import EngineAdapter
from penstock.errors import PenstockError
from penstock.spark.runner import Runner
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    import agate
    import pyarrow as pa

_LARGEST_BIGINT = 2**63
_WORD = re.compile(r"[A-Za-z_0-9]+")


def number_type(table: agate.Table, index: int) -> str:
    """Decimals in a CSV are doubles to Spark's users; `column_types` makes them decimals."""
    import agate as agate_

    return "double" if table.aggregate(agate_.MaxPrecision(table.column_names[index])) else integer_type(table, index)


def integer_type(table: agate.Table, index: int) -> str:
    values = table.columns[index].values_without_nulls()
    return "bigint" if all(abs(value) < _LARGEST_BIGINT for value in values) else "decimal(38,0)"


def query(
    runner: Runner, table: agate.Table, adapter: Any, column_types: Mapping[str, str], quote_columns: bool | None
) -> str:
    """A temporary view of the rows, and the query that reads each column with its type.

    With `quote_columns: false` a name that needs quotes is an error: most often the delimiter is another one.
    """
    if quote_columns is False and (wrong := [name for name in table.column_names if not _WORD.fullmatch(name)]):
        raise PenstockError(
            f"Syntax error in the seed's header: {wrong[0]!r} is not a plain column name",
            fix="Set `delimiter` to the delimiter of the file, or set `quote_columns: true`.",
        )
    wanted = {name.lower(): type for name, type in column_types.items()}
    types = [
        wanted.get(name.lower()) or adapter.convert_type(table, index) for index, name in enumerate(table.column_names)
    ]
    view = f"seed_{uuid.uuid4().hex}"
    runner.spark.createDataFrame(_arrow(table)).createOrReplaceTempView(view)
    columns = ", ".join(
        f"cast({quote(name)} as {type}) as {quote(name)}" for name, type in zip(table.column_names, types, strict=True)
    )
    return f"select {columns} from {view}"


def _arrow(table: agate.Table) -> pa.Table:
    """Every value as text, for Spark to cast. So no number passes through a float, and null stays null."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array([_text(value) for value in table.columns[index].values()], pa.string())
            for index, name in enumerate(table.column_names)
        }
    )


def _text(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    return str(value)


class Seeds(EngineAdapter):
    """The type of each column of a seed, and the query that loads it."""

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "string"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return number_type(agate_table, col_idx)

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return integer_type(agate_table, col_idx)

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "timestamp"

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "string"

    @available.parse(lambda *a, **k: "")
    def seed_query(
        self, agate_table: agate.Table, column_types: Mapping[str, str] | None, quote_columns: bool | None = None
    ) -> str:
        """Load a seed's rows into a temporary view; returns the query that reads them with their types."""
        with self.connections.exception_handler("seed"):
            return query(self.runner, agate_table, self, column_types or {}, quote_columns)
