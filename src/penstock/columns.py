"""A query's columns and a table's: how they differ, and what `on_schema_change` does about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.commits import note_of
from penstock.config.keys import POLICIES
from penstock.errors import PenstockError
from penstock.names import Name
from penstock.quoting import field_name, quote
from penstock.table import Column, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from penstock.lake import Lake
    from penstock.runner import Runner

IGNORE, FAIL, APPEND, SYNC = POLICIES
_SIZED = re.compile(r"\b(?:var)?char\(\d+\)")


def of_frame(frame: DataFrame) -> list[Column]:
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
    """A type as SQL can read it: Spark's own text does not quote the fields of a struct.

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


class Difference:
    """What sets the columns that a query makes apart from those that a table has; letter case does not.

    >>> Difference([Column("id", "int"), Column("new", "date")], [Column("ID", "bigint"), Column("old", "date")])
    new: new; missing: old; of another type: ID
    """

    def __init__(self, made: Iterable[Column], have: Iterable[Column]) -> None:
        made_by_name = {column.name.lower(): column for column in made}
        have_by_name = {column.name.lower(): column for column in have}
        self.new = [column for key, column in made_by_name.items() if key not in have_by_name]
        self.gone = [column.name for key, column in have_by_name.items() if key not in made_by_name]
        self.retyped = {
            column.name: made_by_name[key].type
            for key, column in have_by_name.items()
            if key in made_by_name and _plain(made_by_name[key].type) != _plain(column.type)
        }

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.retyped)

    def __repr__(self) -> str:
        parts = {
            "new": [column.name for column in self.new],
            "missing": self.gone,
            "of another type": list(self.retyped),
        }
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)

    def refuse(self, where: str) -> None:
        """What `fail` asks for."""
        if self:
            raise PenstockError(
                f"The model's columns are not the table's ({self})",
                where=where,
                fix="Set `on_schema_change`, or run with --full-refresh.",
            )


def _plain(type: str) -> str:
    """A type without the length of its texts: a query over a VARCHAR makes a STRING."""
    return _SIZED.sub("string", type)


def fit(lake: Lake, name: Name, made: Sequence[Column], policy: str, runner: Runner, note: str) -> list[Column]:
    """The table's columns that a query fills, in the query's order, after the table was made to fit as the policy says.

    `note` is what a commit that rewrites the table carries.
    """
    have = lake.columns(name)
    difference = Difference(made, have)
    if policy == FAIL:
        difference.refuse(str(name))
    if (policy == APPEND and difference.new) or (policy == SYNC and difference):
        reshape(
            lake,
            name,
            add={column.name: column.type for column in difference.new},
            remove=difference.gone if policy == SYNC else (),
            retype=difference.retyped if policy == SYNC else None,
            runner=runner,
            note=note,
        )
        have = lake.columns(name)
    by_name = {column.name.lower(): column for column in have}
    return [by_name[column.name.lower()] for column in made if column.name.lower() in by_name]


def reshape(
    lake: Lake,
    name: Name,
    *,
    add: Mapping[str, str],
    remove: Sequence[str] = (),
    retype: Mapping[str, str] | None = None,
    runner: Runner,
    note: str | None = None,
) -> None:
    """Change a table's columns in one commit: added ones in its metadata, others by writing it anew, with the note.

    Delta drops a column without a rewrite only after an upgrade of the table's protocol that many readers
    do not know; the rewrite keeps the table's id, properties and protocol.
    """
    lake.check_writable()
    relation = lake.get(name)
    if not remove and not retype:
        if add:
            added = ", ".join(f"{quote(column)} {type}" for column, type in add.items())
            runner.run(f"alter table {name.sql} add columns ({added})")
        return
    gone = {column.lower() for column in remove}
    types = {column.lower(): type for column, type in (retype or {}).items()}
    wanted = [
        f"cast({quote(column.name)} as {types[column.name.lower()]}) as {quote(column.name)}"
        if column.name.lower() in types
        else quote(column.name)
        for column in lake.columns(name)
        if column.name.lower() not in gone
    ]
    wanted += [f"cast(null as {type}) as {quote(column)}" for column, type in add.items()]
    table = Table.open(relation.location, lake.storage_options, files=False)
    partitions = [column for column in table.partition_columns if column.lower() not in gone]
    runner.overwrite(
        f"select {', '.join(wanted)} from {name.sql}", relation, partitions, note or note_of("columns", table.version)
    )
