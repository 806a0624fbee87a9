"""A column, with its type as Spark writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dbt.adapters.base.column import Column

from penstock.delta.table import Column as TableColumn
from penstock.sql.quoting import quote

_INTEGERS = ("tinyint", "smallint", "int", "integer", "bigint", "byte", "short", "long")
_FLOATS = ("float", "real", "double")


@dataclass
class PenstockColumn(Column):
    TYPE_LABELS: ClassVar[dict[str, str]] = {
        "STRING": "string",
        "TEXT": "string",
        "TIMESTAMP": "timestamp",
        "FLOAT": "double",
        "INTEGER": "int",
        "BOOLEAN": "boolean",
        "LONG": "bigint",
    }
    comment: str | None = None

    @classmethod
    def of(cls, column: TableColumn) -> PenstockColumn:
        return cls(column=column.name, dtype=column.type, comment=column.comment)

    @property
    def quoted(self) -> str:
        return quote(self.column)

    @property
    def data_type(self) -> str:
        return self.dtype

    def is_string(self) -> bool:
        return self.dtype.lower().split("(")[0] in ("string", "varchar", "char", "text")

    def is_integer(self) -> bool:
        return self.dtype.lower() in _INTEGERS

    def is_float(self) -> bool:
        return self.dtype.lower() in _FLOATS

    def is_numeric(self) -> bool:
        return self.dtype.lower().startswith(("decimal", "numeric", "dec"))

    def is_number(self) -> bool:
        return self.is_integer() or self.is_float() or self.is_numeric()

    def string_size(self) -> int:
        return 256

    @classmethod
    def string_type(cls, size: int) -> str:
        return "string"

    @classmethod
    def numeric_type(cls, dtype: str, precision: int | None, scale: int | None) -> str:
        return dtype if precision is None or scale is None else f"decimal({precision},{scale})"

    def can_expand_to(self, other_column: Column) -> bool:
        # A Delta string has no length to expand.
        return False
