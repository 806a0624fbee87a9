"""The SQL of a model's changes: which rows of its table change when its sources move from one version to another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from penstock.changes.incremental.way import Keys, MergeWay, Rows
from penstock.changes.query import ChangeQuery
from penstock.changes.version_range import VersionRange
from penstock.delta.schema_changes import Fitted
from penstock.spark.change_feed import ChangeFeed, Segment, TableChanges
from penstock.spark.keyed_rows import COPIES, ROW, differs, key_names, one_row_a_key
from penstock.spark.weights import WEIGHT, net
from penstock.sql.names import Name
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from penstock.spark.views import TemporaryViews

_OLD = "penstock_old"
_NEVER = "false"


@dataclass(frozen=True)
class ModelChange:
    """The change of one model over the version ranges of its sources."""

    query: ChangeQuery
    way: MergeWay
    ranges: Mapping[Name, VersionRange]
    """The followed sources."""
    segments: Mapping[Name, tuple[Segment, ...]]
    pinned: Mapping[Name, int]
    """The versions of the tables that are read and not followed."""
    unique_key: tuple[str, ...]
    views: TemporaryViews

    def new(self) -> str:
        """The model at the end of the version ranges."""
        return self.query.bind([self._at(read, "end") for read in range(len(self.query.reads))])

    def keyed_rows(self, columns: Sequence[Fitted]) -> str:
        """A query with one row for each key that may change: its new row, or null if the row leaves."""
        if isinstance(self.way, Rows):
            return self._by_rows(columns, self.way)
        if isinstance(self.way, Keys):
            return self._by_keys(columns, self.way)
        rows = f"select {self._keyed(columns)}, 1 as {COPIES} from ({self.new()}\n)"
        return one_row_a_key(rows, self.unique_key, _NEVER)

    @property
    def _changing(self) -> list[int]:
        """The table reads whose rows have changed."""
        return [index for index, read in enumerate(self.query.reads) if self.segments.get(read.name)]

    # By rows: the model of the changes

    def _by_rows(self, columns: Sequence[Fitted], way: Rows) -> str:
        rows = self._weighted(columns, way)
        keyed = f"select {self._keyed(columns)}, {WEIGHT} as {COPIES} from {rows}"
        old = f"any_value({ROW}) filter (where {COPIES} < 0)"
        new = f"sum(if({COPIES} < 0, 1, 0)) = 0"
        grouped = one_row_a_key(keyed, self.unique_key, new, f", {old} as {_OLD}")
        changed = f"{ROW} is null or {_OLD} is null or {differs(columns, _OLD, ROW)}"
        return f"select * except ({_OLD}) from ({grouped}\n) where {changed}"

    def _weighted(self, columns: Sequence[Fitted], way: Rows) -> str:
        """A view of the rows that the model makes of the changes, with their weights."""
        shown = ", ".join(_item(column) for column in columns)
        if way.carried is not None:
            text = self.query.with_text(way.carried).bind([ChangeFeed(self.views).net(self._changes(0))])
            return self.views.of(f"select {shown}, {WEIGHT} from ({text}\n)")
        parts = [
            f"select {shown}, {sign} as {WEIGHT} from ({self._bind(self.query.text, read, sign, way.apart)}\n)"
            for read in self._changing
            for sign in (1, -1)
        ]
        rows = self.views.of("\nunion all\n".join(parts))
        if len(self._changing) == 1:
            return rows
        # The change of one table may take back a row that the change of another one makes.
        return self.views.of(net(rows, [(column.name, column.type) for column in columns]))

    # By keys: the model, for the keys that a change touches

    def _by_keys(self, columns: Sequence[Fitted], way: Keys) -> str:
        keys = key_names(self.unique_key)
        touched = self._touched(way, keys)
        by_key = " and ".join(
            f"penstock_model.{quote(column)} <=> penstock_touched.{key}"
            for column, key in zip(self.unique_key, keys, strict=True)
        )
        again = (
            f"select {self._keyed(columns)}, 1 as {COPIES} from (select * from ({self.new()}\n) as penstock_model "
            f"left semi join {touched} as penstock_touched on {by_key})"
        )
        types = {column.name.lower(): column.type for column in columns}
        gone = ", ".join(
            f"cast({key} as {types[column.lower()]})" for column, key in zip(self.unique_key, keys, strict=True)
        )
        rows = f"{again}\nunion all\nselect {gone}, null, 0 from {touched}"
        return one_row_a_key(rows, self.unique_key, _NEVER)

    def _touched(self, way: Keys, keys: Sequence[str]) -> str:
        """A view of the keys that a change touches."""
        pairs = zip(way.affected.keys, keys, strict=True)
        names = ", ".join(f"{quote(name)} as {key}" for (_, name), key in pairs)
        steps = [
            f"select {names} from ({self._bind(way.affected.touched(read), read, None, frozenset())}\n)"
            for read in self._changing
        ]
        return self.views.cached("select distinct * from (" + "\nunion all\n".join(steps) + "\n)")

    # What the table reads stand for

    def _bind(self, text: str, changing: int, sign: int | None, apart: frozenset[tuple[int, int]]) -> str:
        """A text over the changes of one table read; reads before it are at their new version, reads after it at the old.

        The sum of these over all table reads is the whole change.
        """
        relations = []
        for index, read in enumerate(self.query.reads):
            if index == changing:
                relations.append(ChangeFeed(self.views).rows(self._changes(index), sign))
            elif (changing, index) in apart:
                relations.append(self.views.empty(read.location, self._version(index, "end")))
            else:
                relations.append(self._at(index, "end" if index < changing else "start"))
        return self.query.with_text(text).bind(relations)

    def _changes(self, read: int) -> TableChanges:
        versions = self.ranges[self.query.reads[read].name]
        return TableChanges(versions.location, versions.end, self.segments[self.query.reads[read].name])

    def _at(self, read: int, which: Literal["start", "end"]) -> str:
        return self.views.at(self.query.reads[read].location, self._version(read, which))

    def _version(self, read: int, which: Literal["start", "end"]) -> int:
        name = self.query.reads[read].name
        if name not in self.ranges:
            return self.pinned[name]
        versions = self.ranges[name]
        return versions.end if which == "end" or versions.start is None else versions.start

    def _keyed(self, columns: Sequence[Fitted]) -> str:
        """The items of a SELECT over the model: its key's columns, and its row as a struct."""
        by_name = {column.name.lower(): column for column in columns}
        pairs = zip(self.unique_key, key_names(self.unique_key), strict=True)
        keys = [f"{_value(by_name[column.lower()])} as {key}" for column, key in pairs]
        row = ", ".join(_item(column) for column in columns)
        return f"{', '.join(keys)}, struct({row}) as {ROW}"


def _value(column: Fitted) -> str:
    """A column of the model with the type that the table has."""
    return column.value(quote(column.name))


def _item(column: Fitted) -> str:
    return f"{_value(column)} as {quote(column.name)}"
