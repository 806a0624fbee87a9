"""`penstock.batches`: the batches of files of each table, since it was created or last refreshed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

from penstock.files.plan import KIND, FilePlan
from penstock.files.records import QUARANTINED, READ, SKIPPED
from penstock.inspection.history import Event
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup
from penstock.own_tables.commits import CANCELLED, COMMITTED, UNFINISHED, commit_columns, events_by_batch, moment
from penstock.own_tables.relation_list import each, ledgers, named
from penstock.own_tables.rows import Row
from penstock.sql.wanted import Wanted


def batches(lake: Lookup, wanted: Wanted) -> Iterator[Row]:
    """The batches of all tables of files, the oldest first."""
    for rows in each(lambda ledger: list(_batches(ledger)), ledgers(lake, wanted, KIND)):
        yield from rows


def _batches(ledger: TableLedger) -> Iterator[Row]:
    recorded, events = _by_batch(ledger.files.records), events_by_batch(ledger)
    for batch in sorted({*recorded, *events}):
        yield _batch(ledger, batch, recorded.get(batch), events.get(batch))
    number = ledger.unfinished
    plan = None if number is None else ledger.file_plan(number)
    if plan is not None:
        yield {**named(ledger), "status": UNFINISHED, **_planned(plan)}


def _batch(ledger: TableLedger, batch: int, recorded: Row | None, event: Event | None) -> Row:
    number = ledger.state.generation + batch
    row: dict[str, Any] = {"status": COMMITTED, "files": 0, "size": 0, "files_skipped": 0, "files_quarantined": 0}
    if event is not None and event.kind == CANCELLED:
        plan = ledger.file_plan(number)
        row = {"status": CANCELLED, "reason": event.what, **({} if plan is None else _planned(plan))}
    elif recorded is not None:
        row |= recorded
    row |= {**named(ledger), "batch_id": batch, "number": number, **commit_columns(event)}
    if event is not None and event.time is not None:
        if row.get("planned_at") is None and event.seconds is not None:
            row["planned_at"] = event.time - timedelta(seconds=event.seconds)
        if row.get("planned_at") is not None:
            row["seconds"] = max(0.0, (event.time - row["planned_at"]).total_seconds())
    return row


def _planned(plan: FilePlan) -> Row:
    """The columns that a plan tells before it is committed."""
    counts = _by_batch(plan.records()).get(plan.batch_id, {})
    return {
        "files": 0,
        "size": 0,
        **counts,
        "batch_id": plan.batch_id,
        "number": plan.number,
        "planned_at": moment(plan.time),
    }


def _by_batch(records: pa.Table) -> Mapping[int, Row]:
    """What the ledger records of each batch."""
    grouped = records.group_by(["batchId", "status"]).aggregate(
        [("path", "count"), ("size", "sum"), ("batchProcessingTime", "max")]
    )
    found: dict[int, dict[str, Any]] = {}
    for line in grouped.to_pylist():
        row = found.setdefault(line["batchId"], {"files": 0, "size": 0, "files_skipped": 0, "files_quarantined": 0})
        row["planned_at"] = moment(line["batchProcessingTime_max"])
        if line["status"] in READ:
            row["files"] += line["path_count"]
            row["size"] += line["size_sum"] or 0
        elif line["status"] in (SKIPPED, QUARANTINED):
            row[f"files_{line['status']}"] += line["path_count"]
    return found
