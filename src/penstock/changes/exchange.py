"""The change of a model's table by the places of its rows: old rows out by deletion vectors, new rows in.

What one MERGE does, by reading the target's keys once: which file and which row of it each key that changes is at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.changes import merge
from penstock.changes.merge import ROW
from penstock.changes.weights import FILE, INDEX, Views
from penstock.layout import literal
from penstock.names import quote
from penstock.table import Column, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

BY_ROW = "delta.enableDeletionVectors"
_FEED = "delta.enableChangeDataFeed"
# What keeps an identity for each row must be told which new row is which old one.
_WITH_IDENTITY = "delta.enableRowTracking"
_CHANGE_TYPE = "_change_type"
_DIFFERS, _KEPT = "penstock_differs", "penstock_kept"
_ROWS_PER_FILE = 500_000


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
    source: str
    unique_key: tuple[str, ...]
    columns: Sequence[Column]
    """What the model makes, as the table has it."""
    compare: bool
    """Whether a key's new row may be the row that is there."""
    within: Sequence[str]
    _matched: str = field(init=False)

    def __post_init__(self) -> None:
        self._matched = self.views.kept(self._matching())

    def counts(self) -> Counts:
        found = self.views.first(
            "select count_if(kind = 'updated'), count_if(kind = 'deleted'), count_if(kind = 'inserted') from (\n"
            f"select if({ROW} is null, 'deleted', 'updated') as kind from {self._matched} where {_DIFFERS}\n"
            f"union all\nselect 'inserted' from {self._inserted()}\n)"
        )
        assert found is not None
        return Counts(*found)

    def places(self) -> DataFrame:
        """Where the rows are that leave."""
        return self.views.frame(f"select {FILE}, {INDEX} from {self._matched} where {_DIFFERS}")

    def rows(self, files: int) -> DataFrame:
        """The rows that come, for so many files; and, for a table with a feed of its own, those that its feed shows."""
        updated = f"{self._matched} where {_DIFFERS} and {ROW} is not null"
        inserted, new, old = self._inserted(), self._new(kept=True), self._old()
        parts: list[tuple[str, str, str | None]] = [(new, updated, None), (self._new(kept=False), inserted, None)]
        if self._has_feed:
            parts += [
                (old, updated, "update_preimage"),
                (new, updated, "update_postimage"),
                (old, f"{self._matched} where {_DIFFERS} and {ROW} is null", "delete"),
                (self._new(kept=False), inserted, "insert"),
            ]
        texts = [f"select {items}{self._kind(kind)} from {rows}" for items, rows, kind in parts]
        return self.views.frame("\nunion all\n".join(texts)).coalesce(files)

    @property
    def _has_feed(self) -> bool:
        return self.table.properties.get(_FEED) == "true"

    def _kind(self, kind: str | None) -> str:
        if not self._has_feed:
            return ""
        return f", cast({'null' if kind is None else literal(kind)} as string) as {_CHANGE_TYPE}"

    def _matching(self) -> str:
        """Each row of the table whose key may change, with where it is."""
        made = {column.name.lower() for column in self.columns} - {key.lower() for key in self.unique_key}
        everything = self._has_feed or self.compare
        kept = [column.name for column in self.table.columns if everything or column.name.lower() not in made]
        target = self.views.placed(self.table.location, kept)
        differs = f"{ROW} is null or {merge.differs(self.columns)}" if self.compare else "true"
        shown = ", ".join(f"penstock_target.{quote(name)}" for name in kept)
        return (
            f"select penstock_changes.*, penstock_target.{FILE}, penstock_target.{INDEX}, struct({shown}) as {_KEPT}, "
            f"{merge.refusing_new(self.unique_key, differs)} as {_DIFFERS}\n"
            f"from {self.source} as penstock_changes join {target} as penstock_target\n"
            f"on {merge.on(self.unique_key, self.within)}"
        )

    def _inserted(self) -> str:
        same = " and ".join(
            f"penstock_changes.{key} = penstock_matched.{key}" for key in merge.key_names(self.unique_key)
        )
        return (
            f"(select * from {self.source} as penstock_changes left anti join {self._matched} as penstock_matched on {same} "
            f"where {ROW} is not null)"
        )

    def _new(self, *, kept: bool) -> str:
        """The table's columns out of the model's row; what the model does not make stays, or is null in a new row."""
        made = {column.name.lower() for column in self.columns}
        items = []
        for column in self.table.columns:
            name = quote(column.name)
            if column.name.lower() in made:
                items.append(f"{ROW}.{name} as {name}")
            else:
                items.append(f"{_KEPT}.{name} as {name}" if kept else f"cast(null as {column.type}) as {name}")
        return ", ".join(items)

    def _old(self) -> str:
        return ", ".join(f"{_KEPT}.{quote(column.name)} as {quote(column.name)}" for column in self.table.columns)
