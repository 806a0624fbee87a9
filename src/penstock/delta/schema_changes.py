"""Differences between a query's columns and a table's columns, and the values that they may change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from penstock.config.keys import POLICIES
from penstock.delta.table import Column
from penstock.errors import PenstockError
from penstock.sql import casts
from penstock.sql.casts import Change, Verdict

IGNORE, FAIL, APPEND, SYNC = POLICIES
_FIX = "Cast it in the SELECT, or change the table with `on_schema_change: sync_all_columns` or --full-refresh."


class Difference:
    """The differences between a query's columns and a table's columns. Letter case does not matter.

    >>> Difference([Column("id", "int"), Column("new", "date")], [Column("ID", "bigint"), Column("old", "date")])
    new: new; missing: old; of another type: ID (int, in the table bigint)
    """

    def __init__(self, query_columns: Iterable[Column], table_columns: Iterable[Column]) -> None:
        in_query = {column.name.lower(): column for column in query_columns}
        in_table = {column.name.lower(): column for column in table_columns}
        self.new = [column for key, column in in_query.items() if key not in in_table]
        """Columns that only the query has."""
        self.gone = [column.name for key, column in in_table.items() if key not in in_query]
        """Names of columns that only the table has."""
        self.changes = {
            column.name: found
            for key, column in in_table.items()
            if key in in_query and (found := _changes(in_query[key], column))
        }
        """The type changes of each common column, by the table's name of the column."""
        self.retyped = {name: in_query[name.lower()].type for name in self.changes}
        """The query's type of each column in `changes`."""

    def __bool__(self) -> bool:
        return bool(self.new or self.gone or self.changes)

    def __repr__(self) -> str:
        found = [change for changes in self.changes.values() for change in changes]
        parts = {
            "new": [column.name for column in self.new]
            + [change.name for change in found if change.table_type is None],
            "missing": self.gone + [change.name for change in found if change.query_type is None],
            "of another type": [
                f"{change.name} ({change.query_type}, in the table {change.table_type})"
                for change in found
                if change.query_type is not None and change.table_type is not None
            ],
        }
        return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)

    @property
    def new_fields(self) -> list[Change]:
        """The fields that only the query has, in structs of common columns."""
        return [change for changes in self.changes.values() for change in changes if change.table_type is None]

    @property
    def other_than_new(self) -> list[str]:
        """The names of common columns with other changes than new fields."""
        return [
            name for name, changes in self.changes.items() if any(change.table_type is not None for change in changes)
        ]

    def refuse(self, where: str) -> None:
        """Raise an error if there is a difference, for `on_schema_change: fail`."""
        if self:
            raise PenstockError(
                f"The model's columns differ from the table's columns ({self})",
                where=where,
                fix="Set `on_schema_change`, or run with --full-refresh.",
            )


def _changes(in_query: Column, in_table: Column) -> list[Change]:
    if in_query.type == in_table.type:
        return []
    return list(casts.changes(casts.parse(in_query.type), casts.parse(in_table.type), in_table.name))


@dataclass(frozen=True)
class Fitted(Column):
    """A column of the table that a query fills."""

    query_type: str = ""

    def value(self, query_column: str, *, cast_plain: bool = True) -> str:
        """The SQL that converts the query's column to the type of this column."""
        query_type, table_type = casts.parse(self.query_type), casts.parse(self.type)
        return casts.convert(query_column, query_type, table_type, cast_plain=cast_plain)


def fitted(
    query_columns: Sequence[Column],
    table_columns: Sequence[Column],
    where: str,
    policy: str,
    warn: Callable[[str], None],
) -> list[Fitted]:
    """The table's columns that a query fills, in the query's order. Warns if a conversion may change values.

    An error if Spark can't store a query's type in the table's column.
    """
    warn_of_casts(Difference(query_columns, table_columns), where, policy, warn)
    by_name = {column.name.lower(): column for column in table_columns}
    return [
        Fitted(**vars(by_name[column.name.lower()]), query_type=column.type)
        for column in query_columns
        if column.name.lower() in by_name
    ]


def with_new_fields(query_columns: Iterable[Column], table_columns: Iterable[Column]) -> list[Column]:
    """The table's columns, with the fields that only the query has added to their structs."""
    types = {column.name.lower(): column.type for column in query_columns}
    return [
        replace(column, type=str(casts.merged(casts.parse(column.type), casts.parse(types[column.name.lower()]))))
        if types.get(column.name.lower(), column.type) != column.type
        else column
        for column in table_columns
    ]


def warn_of_casts(difference: Difference, where: str, policy: str, warn: Callable[[str], None]) -> None:
    """Warn if the table's types may change values of the query. An error if Spark can't convert a type at all."""
    found = [change for changes in difference.changes.values() for change in changes]
    refused = [str(change) for change in found if change.verdict is Verdict.REFUSED]
    if refused:
        raise PenstockError(
            f"{'; '.join(refused)}, and Spark can't convert the one type to the other",
            where=where,
            fix=f"No row was changed. {_FIX}",
        )
    warnings = []
    for change in found:
        if change.query_type is None:
            if policy == IGNORE:
                warnings.append(f"{change}: it is null in new rows")
        elif change.table_type is None:
            warnings.append(f"{change}: its values are not stored")
        elif change.verdict is not Verdict.LOSSLESS:
            warnings.append(f"{change}: {casts.effect(change.query_type, change.table_type)}")
    if warnings:
        warn(f"{where}: {'; '.join(warnings)}. {_FIX}")


def warn_of_rewrite(
    difference: Difference, retyped: Mapping[str, str], where: str, warn: Callable[[str], None]
) -> None:
    """Warn if `sync_all_columns`, which rewrites the table, may change its values. An error if Spark can't do it."""
    warnings, refused = [], []
    for change in (change for name in retyped for change in difference.changes[name]):
        if change.query_type is None or change.table_type is None:
            continue
        back = casts.verdict(change.table_type, change.query_type)
        if back is Verdict.REFUSED:
            refused.append(str(change))
        elif back is Verdict.LOSSY:
            effect = casts.effect(change.table_type, change.query_type)
            warnings.append(f"{change.name} was {change.table_type} and becomes {change.query_type}: {effect}")
    if refused:
        raise PenstockError(
            f"{'; '.join(refused)}, and `on_schema_change: {SYNC}` can't convert the rows of the table",
            where=where,
            fix="No row was changed. Run with --full-refresh.",
        )
    if warnings:
        warn(f"{where}: `on_schema_change: {SYNC}` rewrites the existing rows: {'; '.join(warnings)}")
