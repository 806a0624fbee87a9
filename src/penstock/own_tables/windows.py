"""`penstock.windows`: the windows that each microbatch table has, and the ranges that are missing."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup
from penstock.own_tables.commits import UNFINISHED, commit_columns, events_by_batch, moment
from penstock.own_tables.relation_list import each, ledgers, named
from penstock.own_tables.rows import Row
from penstock.sql.wanted import Wanted
from penstock.windows.ledger import WindowLedger
from penstock.windows.plan import APPEND, KIND, WindowPlan
from penstock.windows.window import Window

LOADED, HOLE = "loaded", "hole"


def windows(lake: Lookup, wanted: Wanted) -> Iterator[Row]:
    """The windows of all tables that are built by windows, in the order of their times."""
    for rows in each(lambda ledger: sorted(_windows(ledger), key=_time), ledgers(lake, wanted, KIND)):
        yield from rows


def _time(row: Row) -> tuple[object, object]:
    return row["window_start"], row["window_end"]


def _windows(ledger: TableLedger) -> Iterator[Row]:
    state, known, events = ledger.state, ledger.windows, events_by_batch(ledger)
    recorded = dict(WindowLedger(ledger.journal).recorded(state))
    for window, written in recorded.items():
        yield {**_row(ledger, window, LOADED), "committed_at": written}
    plans = _plans(ledger)
    for plan in plans:
        commit = commit_columns(events.get(plan.number - state.generation))
        for window in plan.windows:
            if window not in recorded:
                yield {**_row(ledger, window, LOADED), **_of(plan), **commit}
    if plans and plans[0].mode == APPEND:
        # The plans of these windows are gone.
        for window in plans[0].before.windows:
            yield _row(ledger, window, LOADED)
    for window in known.holes(()).windows:
        yield _row(ledger, window, HOLE)
    number = ledger.unfinished
    unfinished = None if number is None else ledger.window_plan(number)
    if unfinished is not None:
        for window in unfinished.windows:
            yield {**_row(ledger, window, UNFINISHED), **_of(unfinished)}


def _plans(ledger: TableLedger) -> list[WindowPlan]:
    """The committed plans of the table's generation that are kept, the oldest first."""
    state = ledger.state
    numbers = sorted(
        number
        for number in ledger.journal.records().plans
        if state.mark is not None and state.generation <= number <= state.mark
    )
    return [plan for number in numbers if (plan := ledger.window_plan(number)) is not None]


def _row(ledger: TableLedger, window: Window, status: str) -> Row:
    return {**named(ledger), "window_start": window.start, "window_end": window.end, "status": status}


def _of(plan: WindowPlan) -> Row:
    return {"number": plan.number, "planned_at": moment(plan.time)}
