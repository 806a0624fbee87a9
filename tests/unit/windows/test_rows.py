"""The query for a table: each value with the table's name and type, and each row's time checked."""

from __future__ import annotations

import pytest

from penstock.delta.schema_changes import Fitted
from penstock.delta.table import Column
from penstock.errors import PenstockError
from penstock.windows import Window
from penstock.windows.query import RenderedSelect
from penstock.windows.rows import WindowRows, event_column

WINDOW = Window.of("2026-04-01", "2026-04-02")
INSIDE = "`Day` >= date '2026-04-01' and `Day` < date '2026-04-02'"
COLUMNS = [Column("id", "int"), Column("Day", "date")]


def rows(*, filtered: bool) -> WindowRows:
    return WindowRows(WINDOW, None, RenderedSelect("select 1", filtered), COLUMNS, event_column(COLUMNS, "day", "s.t"))


def test_rows_of_an_unfiltered_input_are_filtered() -> None:
    text = rows(filtered=False).new()
    assert text == f"select `id` as `id`, `Day` as `Day` from (\nselect 1\n) where {INSIDE}"


def test_a_row_of_a_filtered_input_that_is_outside_of_the_window_raises() -> None:
    text = rows(filtered=True).new()
    assert f"if({INSIDE}, `Day`, raise_error(" in text
    assert "whose Day lies outside of its window 2026-04-01 … 2026-04-02: " in text
    assert "where" not in text


def test_values_get_the_name_and_type_of_the_tables_column() -> None:
    fitted = [Fitted("ID", "bigint", query_type="int")]
    assert rows(filtered=False).into(fitted).startswith("select cast(`id` as bigint) as `ID` from")


def test_an_event_time_that_is_not_selected_is_an_error() -> None:
    with pytest.raises(
        PenstockError, match="`event_time` names at, which the model does not select: it selects id, Day"
    ):
        event_column(COLUMNS, "at", "s.t")
