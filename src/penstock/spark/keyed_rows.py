"""Rows by key: a relation with one row for each key that may change, and the SQL that merges it into a table.

Beside the key's columns, which have names of our own, such a relation has `penstock_row` (the new row as a struct; null
if the row leaves the table) and `penstock_new` (whether the table cannot have a row of this key yet).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from penstock.delta.table import Column
from penstock.spark.comparison import identity
from penstock.spark.key_checks import raise_not_unique, raise_null, raise_taken
from penstock.sql.quoting import literal, quote

ROW, NEW = "penstock_row", "penstock_new"
COPIES = "penstock_n"
"""How often a row comes into a key: 1 for a new row, 0 or less for one that leaves."""
CHANGES, TARGET = "penstock_changes", "penstock_target"
"""The names of the relation and of the table in a join."""
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}


def key_names(key: Sequence[str]) -> list[str]:
    """The names of the key's columns in a relation of keyed rows."""
    return [quote(f"penstock_key_{index}") for index in range(len(key))]


def one_row_a_key(rows: str, key: Sequence[str], new: str, more: str = "") -> str:
    """A query with one row for each key, out of rows with the key's columns, `penstock_row` and `penstock_n`.

    More than one new row of a key, or a new row without a key, fails in the same job.
    """
    keys = key_names(key)
    null = " or ".join(f"{column} is null" for column in keys)
    copies = f"sum(greatest({COPIES}, 0))"
    return (
        f"select {', '.join(keys)}, case when {copies} > 0 and ({null}) then {raise_null(key, keys)} "
        f"when {copies} > 1 then {raise_not_unique(key, keys)} "
        f"else any_value({ROW}) filter (where {COPIES} > 0) end as {ROW}, {new} as {NEW}{more} "
        f"from ({rows}\n) group by {', '.join(keys)}"
    )


def differs(columns: Sequence[Column], old: str, new: str) -> str:
    """Whether any value of two rows differs."""
    return " or ".join(
        f"not ({identity(f'{old}.{quote(column.name)}', column.type)} <=> "
        f"{identity(f'{new}.{quote(column.name)}', column.type)})"
        for column in columns
    )


@dataclass(frozen=True)
class KeyedRows:
    """A relation with one row for each key that may change."""

    relation: str
    key: tuple[str, ...]
    columns: Sequence[Column]
    """The columns of `penstock_row`, as the table has them."""

    def same_key(self, within: Sequence[str] = ()) -> str:
        """The join condition: a row of the table has the key; `within` are more conditions on the table's row."""
        pairs = zip(self.key, key_names(self.key), strict=True)
        same = [f"{quote(column)} = {CHANGES}.{name}" for column, name in pairs]
        return " and ".join(f"{TARGET}.{condition}" for condition in [*same, *within])

    def unless_taken(self, there: str, otherwise: str) -> str:
        """`otherwise`, which fails if the key is new and `there` says that the table has a row with it."""
        raised = raise_taken(self.key, [f"{CHANGES}.{name}" for name in key_names(self.key)])
        return f"case when {CHANGES}.{NEW} and {there} then {raised} else {otherwise} end"

    def extent(self) -> str:
        """A query for the number of keys, and the least and the greatest value of each of their columns."""
        bounds = ", ".join(f"min({name}), max({name})" for name in key_names(self.key))
        return f"select count(*), {bounds} from {self.relation}"

    def within(self, bounds: Sequence[Any]) -> list[str]:
        """Conditions that the table's rows of these keys meet, one column each, its name first.

        `bounds` are the extent's least and greatest values. Delta skips files by these conditions.
        """
        types = {column.name.lower(): column.type for column in self.columns}
        conditions = []
        for index, column in enumerate(self.key):
            least, most = (_literal(value, types[column.lower()]) for value in bounds[2 * index : 2 * index + 2])
            if least is not None and most is not None:
                conditions.append(f"{quote(column)} between {least} and {most}")
        return conditions

    def merge_into(self, target: str, *, within: Sequence[str] = (), whole: bool = False) -> str:
        """The MERGE that deletes, updates and inserts. It writes no row whose values stay the same.

        With `whole`, rows of the table whose key is not in the relation are deleted.
        """
        names = [quote(column.name) for column in self.columns]
        values = [f"{CHANGES}.{ROW}.{name}" for name in names]
        sets = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        # Delta computes the condition for rows without a match as well.
        there = f"{TARGET}.{quote(self.key[0])} is not null"
        changed = self.unless_taken(there, differs(self.columns, TARGET, f"{CHANGES}.{ROW}"))
        return (
            f"merge into {target} as {TARGET}\nusing {self.relation} as {CHANGES}\non {self.same_key(within)}\n"
            f"when matched and {CHANGES}.{ROW} is null then delete\n"
            f"when matched and {changed} then update set {sets}\n"
            f"when not matched and {CHANGES}.{ROW} is not null then insert ({', '.join(names)}) "
            f"values ({', '.join(values)})" + ("\nwhen not matched by source then delete" if whole else "")
        )


def _literal(value: Any, type: str) -> str | None:
    """A value that Delta compares with a file's statistics; None for types whose text may stand for another value."""
    if value is None or (type not in _SUFFIXES and type not in ("date", "string")):
        return None
    if type in _SUFFIXES:
        return f"{value}{_SUFFIXES[type]}"
    return f"date {literal(str(value))}" if type == "date" else literal(value)
