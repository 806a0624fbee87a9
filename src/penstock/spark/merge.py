"""The change of a model's table by the places of its rows: old rows out by deletion vectors, new rows in.

What one MERGE does, by reading the target's keys once: which file and which row of it each key that changes is at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.changes.incremental import merge
from penstock.changes.incremental.merge import ROW
from penstock.changes.incremental.weights import FILE, INDEX, Views
from penstock.delta.table import Column, Table
from penstock.sql.quoting import literal, quote

if TYPE_CHECKING:
    from penstock.spark.backend import DataFrame

BY_ROW = "delta.enableDeletionVectors"
_FEED = "delta.enableChangeDataFeed"
# What keeps an identity for each row must be told which new row is which old one.
_WITH_IDENTITY = "delta.enableRowTracking"
_CHANGE_TYPE = "_change_type"
_DIFFERS, _KEPT = "penstock_differs", "penstock_kept"
_ROWS_PER_FILE = 500_000
_UPDATED = f"({_DIFFERS} and {FILE} is not null and {ROW} is not null)"
_DELETED = f"({FILE} is not null and {ROW} is null)"
_INSERTED = f"({FILE} is null and {ROW} is not null)"


def can_exchange(table: Table) -> bool:
    properties = table.properties
    return properties.get(BY_ROW) == "true" and properties.get(_WITH_IDENTITY) != "true"


@dataclass
class Counts:
    updated: int
    deleted: int
    inserted: int

    @property
    def written(self) -> int:
        return self.updated + self.inserted

    @property
    def files(self) -> int:
        """How many files the new rows are worth."""
        return 1 + self.written // _ROWS_PER_FILE

    def __bool__(self) -> bool:
        return bool(self.updated or self.deleted or self.inserted)

    def metrics(self) -> dict[str, int]:
        return {
            "numTargetRowsUpdated": self.updated,
            "numTargetRowsDeleted": self.deleted,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsCopied": 0,
            "operationNumSourceRows": self.written + self.deleted,
        }


@dataclass
class Exchange:
    """The queries of one exchange, over a `source` with a row for each key that may change."""

    views: Views
    table: Table
    rows: DataFrame
    """What the table holds: every row that may change, at least."""
    source: str
    unique_key: tuple[str, ...]
    columns: Sequence[Column]
    """What the model makes, as the table has it."""
    compare: bool
    """Whether a key's new row may be the row that is there."""
    few: bool
    """Whether the keys that may change fit into memory."""
    _changes: str = field(init=False)
    """Each key that may change: its new row, and where its old row is, where it has one."""

    def __post_init__(self) -> None:
        self._changes = self.views.kept(self._placed())

    def counts(self) -> Counts:
        found = self.views.first(
            f"select count_if({_UPDATED}), count_if({_DELETED}), count_if({_INSERTED}) from {self._changes}"
        )
        assert found is not None
        return Counts(*found)

    def leaving(self) -> DataFrame:
        """Where the rows are that leave."""
        return self.views.frame(f"select {FILE}, {INDEX} from {self._changes} where {_UPDATED} or {_DELETED}")

    def coming(self, files: int) -> DataFrame:
        """The rows that come, for so many files; and, for a table with a feed of its own, those that its feed shows."""
        new, old = self._new(), self._old()
        parts: list[tuple[str, str, str | None]] = [(new, f"{_UPDATED} or {_INSERTED}", None)]
        if self._has_feed:
            parts += [
                (old, _UPDATED, "update_preimage"),
                (new, _UPDATED, "update_postimage"),
                (old, _DELETED, "delete"),
                (new, _INSERTED, "insert"),
            ]
        texts = [f"select {items}{self._kind(kind)} from {self._changes} where {rows}" for items, rows, kind in parts]
        return self.views.frame("\nunion all\n".join(texts)).coalesce(files)

    @property
    def _has_feed(self) -> bool:
        return self.table.properties.get(_FEED) == "true"

    def _kind(self, kind: str | None) -> str:
        if not self._has_feed:
            return ""
        return f", cast({'null' if kind is None else literal(kind)} as string) as {_CHANGE_TYPE}"

    def _placed(self) -> str:
        keys = merge.key_names(self.unique_key)
        same = " and ".join(f"penstock_changes.{key} = penstock_target.{key}" for key in keys)
        differs = f"{ROW} is null or {merge.differs(self.columns, _KEPT)}" if self.compare else "true"
        return (
            f"select penstock_changes.*, {FILE}, {INDEX}, {_KEPT}, "
            f"{merge.refusing_new(self.unique_key, f'{FILE} is not null', differs)} as {_DIFFERS}\n"
            f"from {self.source} as penstock_changes left join ({self._matching()}\n) as penstock_target on {same}"
        )

    def _matching(self) -> str:
        """Each row of the table whose key may change, with where it is: the one query that reads all of its keys."""
        made = {column.name.lower() for column in self.columns} - {key.lower() for key in self.unique_key}
        everything = self._has_feed or self.compare
        kept = [column.name for column in self.table.columns if everything or column.name.lower() not in made]
        target = self.views.placed(self.rows, kept)
        keys = ", ".join(merge.key_names(self.unique_key))
        shown = ", ".join(f"penstock_target.{quote(name)}" for name in kept)
        # The table would be shuffled and sorted for a join with rows that have all of their columns.
        hint = "/*+ broadcast(penstock_changes) */ " if self.few else ""
        return (
            f"select {hint}penstock_changes.*, penstock_target.{FILE}, penstock_target.{INDEX}, "
            f"struct({shown}) as {_KEPT}\n"
            f"from {target} as penstock_target join (select {keys} from {self.source}) as penstock_changes\n"
            f"on {merge.on(self.unique_key)}"
        )

    def _new(self) -> str:
        """The table's columns out of the model's row; what the model does not make stays, or is null in a new row."""
        made = {column.name.lower() for column in self.columns}
        items = []
        for column in self.table.columns:
            name = quote(column.name)
            items.append(f"{ROW if column.name.lower() in made else _KEPT}.{name} as {name}")
        return ", ".join(items)

    def _old(self) -> str:
        return ", ".join(f"{_KEPT}.{quote(column.name)} as {quote(column.name)}" for column in self.table.columns)
