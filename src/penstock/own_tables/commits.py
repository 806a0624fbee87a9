"""The columns about commits, which several own tables have."""

from __future__ import annotations

from datetime import datetime, timezone

from penstock.inspection.history import Event, history
from penstock.inspection.table_ledger import TableLedger
from penstock.own_tables.rows import Row

COMMITTED, CANCELLED, UNFINISHED, WAITING = "committed", "cancelled", "unfinished", "waiting"


def events_by_batch(ledger: TableLedger) -> dict[int, Event]:
    """The newest commit of each number of the table's generation, as far as the log still has them."""
    found: dict[int, Event] = {}
    for event in history(ledger):
        if event.batch is not None:
            found.setdefault(event.batch, event)
    return found


def commit_columns(event: Event | None) -> Row:
    """Time, version and rows of a commit; nothing if the log does not have it."""
    if event is None:
        return {}
    return {
        "committed_at": event.time,
        "version": event.version,
        "rows_inserted": event.rows_inserted,
        "rows_updated": event.rows_updated,
        "rows_deleted": event.rows_deleted,
    }


def moment(millis: int) -> datetime:
    """A time from milliseconds since 1970."""
    return datetime.fromtimestamp(millis / 1000, tz=timezone.utc)
