"""The columns of a Spark query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.delta.table import Column
from penstock.sql.quoting import field_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType


def of_frame(frame: DataFrame) -> list[Column]:
    """The columns of a DataFrame; nothing runs."""
    return [
        Column(
            name=field.name,
            type=type_text(field.dataType),
            nullable=field.nullable,
            comment=(field.metadata or {}).get("comment"),
        )
        for field in frame.schema.fields
    ]


def type_text(type: DataType) -> str:
    """A type as SQL reads it; Spark's own text does not quote the fields of a struct.

    >>> from pyspark.sql.types import LongType, StructField, StructType
    >>> type_text(StructType([StructField("a-b", LongType()), StructField("c", LongType())]))
    'struct<`a-b`:bigint,c:bigint>'
    """
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(type, StructType):
        return f"struct<{','.join(f'{field_name(field.name)}:{type_text(field.dataType)}' for field in type.fields)}>"
    if isinstance(type, ArrayType):
        return f"array<{type_text(type.elementType)}>"
    if isinstance(type, MapType):
        return f"map<{type_text(type.keyType)},{type_text(type.valueType)}>"
    return type.simpleString()
