"""`penstock.changes`: the versions of its sources that each `cdf_merge` table has, and those that wait."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.changes.plan import KIND, ChangePlan
from penstock.changes.version_range import VersionRange
from penstock.delta.log import commit_file, commit_info
from penstock.delta.table import Table
from penstock.errors import NotFound, PenstockError
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup
from penstock.own_tables.commits import (
    CANCELLED,
    COMMITTED,
    UNFINISHED,
    WAITING,
    commit_columns,
    events_by_batch,
    moment,
)
from penstock.own_tables.relation_list import each, ledgers, named
from penstock.own_tables.rows import Row
from penstock.sql.wanted import Wanted
from penstock.storage import Storage


def changes(lake: Lookup, wanted: Wanted) -> Iterator[Row]:
    """The version ranges of all tables that follow changes, the oldest first; those that wait come last."""
    for rows in each(lambda ledger: list(_changes(ledger, wanted)), ledgers(lake, wanted, KIND)):
        yield from rows


def _changes(ledger: TableLedger, wanted: Wanted) -> Iterator[Row]:
    state, events = ledger.state, events_by_batch(ledger)
    assert state.mark is not None
    for number in sorted(ledger.journal.records().plans):
        plan = ledger.change_plan(number) if state.generation <= number <= state.mark + 1 else None
        if plan is None:
            continue
        event = events.get(number - state.generation)
        row = {"status": COMMITTED, "reason": plan.whole or None, **commit_columns(event)}
        if number > state.mark:
            row["status"] = UNFINISHED
        elif (event is not None and event.kind == CANCELLED) or (number == state.mark and state.last_is_void):
            row |= {"status": CANCELLED, "reason": event.what if event is not None else None}
        for versions in plan.ranges:
            if not versions.is_empty:
                yield {**named(ledger), **_of(plan), **_range(versions), **row}
    if wanted.admits(status=WAITING):
        for versions in ledger.changes.position(void=state.last_is_void).values():
            yield from _waiting(ledger, versions)


def _of(plan: ChangePlan) -> Row:
    way = "build" if plan.replace else "whole" if plan.whole else "changes" if plan.rows else ""
    return {"number": plan.number, "way": way, "planned_at": moment(plan.time)}


def _range(versions: VersionRange) -> Row:
    first = None if versions.start is None else versions.start + 1
    return {"source": versions.name, "first_version": first, "last_version": versions.end}


def _waiting(ledger: TableLedger, versions: VersionRange) -> Iterator[Row]:
    """The versions of a source after those that are in."""
    options = ledger.lake.storage_options
    try:
        newest = Table.open(versions.location, options, files=False).version
    except PenstockError as error:
        raise PenstockError(
            f"The versions of {versions.name} that wait for {ledger.relation} are not known: {error}",
            fix=f"To leave them out: WHERE status <> '{WAITING}'.",
        ) from error
    if newest > versions.end:
        first = versions.end + 1
        yield {
            **named(ledger),
            "source": versions.name,
            "status": WAITING,
            "first_version": first,
            "last_version": newest,
            "waiting_since": _time_of(Storage(versions.location, options), first),
        }


def _time_of(storage: Storage, version: int) -> object:
    """The time of a commit; None if log cleanup has deleted it."""
    try:
        millis = commit_info(storage.read(commit_file(version))).get("timestamp")
    except NotFound:
        return None
    return moment(millis) if isinstance(millis, int) else None
