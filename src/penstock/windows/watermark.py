"""Which event times a table has, from the statistics in its Delta log."""

from __future__ import annotations

from datetime import datetime

from penstock.delta.table import Table
from penstock.windows.bounds import moment_of
from penstock.windows.window import Window


def high_watermark(table: Table, column: str) -> datetime | None:
    """The highest event time in a table; None where the log does not have it. No JVM starts."""
    extremes = table.extremes(column)
    moments = [moment_of(most) for _, most in extremes or ()]
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None


def may_hold(table: Table, column: str, window: Window) -> bool:
    """Whether a table may have rows in a window; True where the log does not tell. No JVM starts."""
    extremes = table.extremes(column)
    if extremes is None:
        return True
    for least, most in extremes:
        low, high = moment_of(least), moment_of(most)
        if low is None or high is None or (low < window.end and high >= window.start):
            return True
    return False
