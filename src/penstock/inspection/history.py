"""Batches, merges, windows and commits of others on one table, in one time line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from itertools import islice, takewhile
from typing import Any

from penstock.changes.plan import KIND as CHANGES
from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.commits import OURS, Commit, is_ours
from penstock.errors import PenstockError
from penstock.files.plan import KIND as FILES
from penstock.files.records import READ, RELEASED
from penstock.inspection.table_ledger import TableLedger
from penstock.windows.plan import KIND as WINDOWS
from penstock.wording import count

_NOTE = re.compile(rf"{re.escape(OURS)}(\S+) .*?(?: void: (.*))?", re.DOTALL)
_MADE = re.compile(r"CREATE|(?:CREATE OR )?REPLACE TABLE")
_KINDS = {FILES: "batch", CHANGES: "merge", WINDOWS: "window"}


@dataclass(frozen=True)
class Event:
    """One commit of a table."""

    version: int
    time: datetime | None
    kind: str
    """`batch`, `merge`, `window`, `refresh` (built anew), `cancelled`, `release`, `columns`, `clone`; `other` for commits
    of others."""
    operation: str
    """As the log has it."""
    batch: int | None = None
    """The number of the commit in its generation."""
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files: int = 0
    """Data files that the commit added."""
    bytes: int = 0
    seconds: float | None = None
    """From the plan to the commit; for commits without a plan, as the log has it."""
    what: str = ""
    """What came in: files, versions of sources, windows; or why a plan was cancelled."""


def history(ledger: TableLedger, limit: int | None = None, since: datetime | None = None) -> list[Event]:
    """The commits of a table that its log still has, newest first: at most `limit`, none before `since`."""
    table = ledger.state.table
    if table is None:
        return []
    events: Iterator[Event] = map(_Teller(ledger).event, table.commits())
    if since is not None:
        moment = since
        events = takewhile(lambda event: event.time is None or event.time >= moment, events)
    return list(islice(events, limit))


class _Teller:
    """Tells what a commit did, from its note, its metrics and the plan of its number."""

    def __init__(self, ledger: TableLedger) -> None:
        self._ledger = ledger

    def event(self, commit: Commit) -> Event:
        metrics = CommitMetrics.from_commit(commit)
        operation = str(commit.get("operation") or "")
        time = _moment(commit.get("timestamp"))
        kind, number, what, planned = "other", None, _of_others(commit), None
        if is_ours(commit):
            kind, number, what = self._ours(str(commit["userMetadata"]), operation)
            if number is not None and kind != "cancelled":
                kind, what, planned = self._planned(kind, number)
        return Event(
            version=metrics.version,
            time=time,
            kind=kind,
            operation=operation,
            batch=None if number is None or number < self._generation else number - self._generation,
            rows_inserted=metrics.rows_inserted,
            rows_updated=metrics.rows_updated,
            rows_deleted=metrics.rows_deleted,
            files=metrics.files,
            bytes=metrics.bytes,
            seconds=_seconds(commit, planned, time),
            what=what,
        )

    @property
    def _generation(self) -> int:
        return self._ledger.state.generation

    @cached_property
    def _kind(self) -> str:
        try:
            return self._ledger.kind
        except PenstockError:
            return "table"  # the newest plan is gone; the log itself still tells the commits

    def _ours(self, note: str, operation: str) -> tuple[str, int | None, str]:
        """The kind by the note alone, the number, and the reason of a cancelled plan."""
        found = _NOTE.fullmatch(note)
        what, void = (found.group(1), found.group(2)) if found else ("", None)
        if not what.isdigit():
            return what or "other", None, ""
        if void is not None:
            return "cancelled", int(what), void
        return "refresh" if _MADE.match(operation) else _KINDS.get(self._kind, "batch"), int(what), ""

    def _planned(self, kind: str, number: int) -> tuple[str, str, datetime | None]:
        """The kind, what came in, and when it was planned, by the ledger; as it was if the ledger does not have it."""
        if number < self._generation:
            return kind, "", None
        if number == self._generation:
            kind = "refresh"
        if self._kind == FILES:
            return self._files(kind, number)
        if self._kind == CHANGES:
            plan = self._ledger.change_plan(number)
            if plan is None:
                return kind, "", None
            why = f" (as a whole: {plan.whole})" if plan.whole else ""
            return kind, f"{plan}{why}", _moment(plan.time)
        if self._kind == WINDOWS:
            windows = self._ledger.window_plan(number)
            if windows is not None:
                return kind, ", ".join(map(str, windows.windows)), _moment(windows.time)
        return kind, "", None

    def _files(self, kind: str, number: int) -> tuple[str, str, datetime | None]:
        found = self._batches.get(number - self._generation, {})
        times = found.get("", 0)
        counts = {status: found[status] for status in found if status}
        read = sum(counts.pop(status, 0) for status in READ)
        if not read and set(counts) == {RELEASED}:
            kind = "release"
        texts = [count(read, "file")] if read or not counts else []
        texts += [f"{number:,} {status}" for status, number in sorted(counts.items())]
        return kind, ", ".join(texts), _moment(times or None)

    @cached_property
    def _batches(self) -> Mapping[int, Mapping[str, int]]:
        """For each batch: how many files have each status; and under an empty status, when it was planned."""
        try:
            records = self._ledger.files.records
        except PenstockError:
            return {}
        grouped = records.group_by(["batchId", "status"]).aggregate([("path", "count"), ("batchProcessingTime", "max")])
        found: dict[int, dict[str, int]] = {}
        for row in grouped.to_pylist():
            batch = found.setdefault(row["batchId"], {})
            batch[row["status"]] = row["path_count"]
            batch[""] = row["batchProcessingTime_max"]
        return found


def _of_others(commit: Commit) -> str:
    parameters = commit.get("operationParameters") or {}
    predicate = parameters.get("predicate")
    by = commit.get("engineInfo") or commit.get("clientVersion")
    return ", ".join(
        [*([f"where {predicate}"] if predicate not in (None, "[]", "") else []), *([f"by {by}"] if by else [])]
    )


def _seconds(commit: Commit, planned: datetime | None, time: datetime | None) -> float | None:
    if planned is not None and time is not None:
        return max(0.0, round((time - planned).total_seconds(), 3))
    metrics: Mapping[str, Any] = commit.get("operationMetrics") or {}
    millis: Any = metrics.get("executionTimeMs", metrics.get("execution_time_ms"))
    return float(millis) / 1000 if str(millis).isdigit() else None


def _moment(millis: Any) -> datetime | None:
    return None if not isinstance(millis, int) else datetime.fromtimestamp(millis / 1000, tz=timezone.utc)
