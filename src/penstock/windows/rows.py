"""The rows that a model makes of one window, as a query for its table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.delta.schema_changes import Fitted
from penstock.delta.table import Column
from penstock.errors import PenstockError
from penstock.sql.quoting import literal, quote
from penstock.windows import bounds
from penstock.windows.query import RenderedSelect
from penstock.windows.window import Window


def event_column(columns: Iterable[Column], event_time: str, where: str) -> Column:
    """The column that `event_time` names; an error if there is none."""
    columns = list(columns)
    found = next((column for column in columns if column.name.lower() == event_time.lower()), None)
    if found is None:
        raise PenstockError(
            f"`event_time` names {event_time}, which the model does not select: it selects "
            + ", ".join(column.name for column in columns),
            where=where,
            fix="Select that column, or set `event_time` to one of these columns.",
        )
    return found


@dataclass(frozen=True)
class WindowRows:
    """The model over one window, and the columns that Spark finds in it."""

    window: Window
    schema: dict[str, Any] | None
    """The format and columns that the files of `@data` are read with."""
    rendered: RenderedSelect
    columns: Sequence[Column]
    time: Column
    """The column of the event time."""

    def new(self) -> str:
        """The query for a new table."""
        return self._query(f"{self._value(column)} as {quote(column.name)}" for column in self.columns)

    def into(self, columns: Sequence[Fitted]) -> str:
        """The query for a table with these columns: each value with the table's name and type."""
        made = {column.name.lower(): self._value(column) for column in self.columns}
        return self._query(f"{column.value(made[column.name.lower()])} as {quote(column.name)}" for column in columns)

    def _query(self, items: Iterable[str]) -> str:
        where = "" if self.rendered.filtered else f" where {self._inside}"
        return f"select {', '.join(items)} from (\n{self.rendered.text}\n){where}"

    def _value(self, column: Column) -> str:
        """A column; the event time raises where it lies outside of the window.

        The check is in the list of columns, not in a WHERE: Spark may move a condition below a join that drops the row.
        """
        value = quote(column.name)
        if column is not self.time or not self.rendered.filtered:
            return value
        says = literal(f"The model makes a row whose {column.name} lies outside of its window {self.window}: ")
        wrong = f"raise_error(concat({says}, coalesce(cast({value} as string), 'null')))"
        return f"if({self._inside}, {value}, {wrong})"

    @property
    def _inside(self) -> str:
        return bounds.inside(self.time.name, self.time.type, self.window)
