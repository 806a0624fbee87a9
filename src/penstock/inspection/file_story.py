"""The files of one table, and what happened to one of them: which batch took it, or why it is not in the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from penstock.delta.commits import OURS
from penstock.errors import NotFound, PenstockError
from penstock.files.config import FileSource
from penstock.files.records import KEY, READ, RELEASED
from penstock.files.roots import READ_PATH, located
from penstock.files.source import Listings, is_hidden
from penstock.files.status import same
from penstock.inspection.table_ledger import TableLedger
from penstock.storage import given_location, is_below, is_uri, prefix

WAITING = "waiting"
_NUMBER = re.compile(rf"{re.escape(OURS)}(\d+) ")

Outcome = Literal["in the table", "waiting", "skipped", "quarantined", "changed", "left out", "not there"]


@dataclass(frozen=True)
class FileRecord:
    """One file, as the ledger has it, or as it waits."""

    path: str
    """Where the file is read from."""
    status: str
    """`ingested`, `replaced`, `skipped`, `quarantined` or `released`, as in the ledger; or `waiting`."""
    size: int
    modified: datetime
    """When the file was written."""
    batch: int | None
    """The number of the batch in its generation; None for a file that waits."""
    recorded: datetime | None
    """When the batch was planned."""
    reason: str | None = None


@dataclass(frozen=True)
class FileStory:
    """What happened to one file."""

    path: str
    outcome: Outcome
    text: str
    """The answer in one sentence."""
    fix: str | None = None
    """What to do, if the file is not in the table and should be."""
    records: tuple[FileRecord, ...] = ()
    """All records of this path in the ledger, the oldest first."""
    version: int | None = None
    """The version of the table that took the file, if the log still has this commit."""


def files_of(ledger: TableLedger, listings: Listings) -> tuple[pa.Table, str | None]:
    """All files of the ledger, and those that wait; and why the waiting ones are not known, if they are not.

    The columns are those of FileRecord, as Arrow, because a ledger may have a million files. The newest come last.
    """
    found = recorded_files(ledger)
    try:
        return pa.concat_tables([found, waiting_files(ledger, listings)]), None
    except PenstockError as error:
        return found, str(error)


def recorded_files(ledger: TableLedger) -> pa.Table:
    """All files of the ledger, with the columns of FileRecord. The newest come last."""
    records = ledger.files.records
    found = _table(records, records["status"], records["batchId"], records["batchProcessingTime"], records["reason"])
    return found.sort_by([("batch", "ascending"), ("path", "ascending")])


def records_of(files: pa.Table) -> Iterator[FileRecord]:
    """The rows of `files_of`."""
    for row in files.to_pylist():
        yield FileRecord(**{**row, "modified": _moment(row["modified"]), "recorded": _moment(row["recorded"])})


def since(files: pa.Table, moment: datetime) -> pa.Table:
    """The files that were recorded, or written if they wait, from a moment on."""
    times = pc.coalesce(files["recorded"], files["modified"])
    return files.filter(pc.greater_equal(times, int(moment.timestamp() * 1000)))


def waiting_files(ledger: TableLedger, listings: Listings) -> pa.Table:
    """All files that the next run, or a later one, finds new. An error where the next run would fail before it plans."""
    selection = ledger.landing(listings, lambda text: None)
    planned = [_as_read(selection.backlog.files), _as_read(selection.aside)]
    young = _as_read(selection.young)
    reasons = [None] * sum(part.num_rows for part in planned) + ["younger than the safety buffer"] * young.num_rows
    found = pa.concat_tables([*planned, young])
    missing = pa.nulls(found.num_rows, pa.int64())
    status = pa.array([WAITING] * found.num_rows, pa.string())
    return _table(found, status, missing, missing, pa.array(reasons, pa.string()))


def _as_read(files: pa.Table) -> pa.Table:
    """Path, time and size of files, by the paths that they are read from."""
    return (located(files) if READ_PATH in files.column_names else files).select(KEY)


def _table(files: pa.Table, status: Any, batch: Any, recorded: Any, reason: Any) -> pa.Table:
    named = _as_read(files)
    return pa.table(
        {
            "path": named["path"],
            "status": status,
            "size": named["size"],
            "modified": named["modificationTime"],
            "batch": batch,
            "recorded": recorded,
            "reason": reason,
        }
    )


def why(ledger: TableLedger, path: str, listings: Listings, base: str | None = None) -> FileStory:
    """What happened to one file. A relative path starts at `base`, or below one of the roots."""
    return _Why(ledger, listings, base).story(path)


class _Why:
    """Looks for one file: in the ledger, in an unfinished plan, on disk, and then in each rule that leaves files out."""

    def __init__(self, ledger: TableLedger, listings: Listings, base: str | None) -> None:
        self._ledger = ledger
        self._listings = listings
        self._base = base
        self._source: FileSource = ledger.file_source
        self._roots = ledger.files.roots

    def story(self, given: str) -> FileStory:
        path, records = self._find(given)
        now = self._on_disk(path)
        if records:
            return self._recorded(path, records, now)
        return self._not_recorded(path, now)

    def _find(self, given: str) -> tuple[str, tuple[FileRecord, ...]]:
        """The path that is meant, and its records: a whole path, or one below the current folder or a root."""
        candidates = [given_location(given, self._base, options=self._ledger.lake.storage_options)]
        if not is_uri(given) and not given.startswith("/"):
            candidates += [prefix(root) + given for root in self._source.source_roots]
        for path in candidates:
            if records := self._records(path):
                return path, records
        return next((path for path in candidates if self._on_disk(path) is not None), candidates[0]), ()

    def _records(self, path: str) -> tuple[FileRecord, ...]:
        records = self._ledger.files.records
        names = pa.array(list(dict.fromkeys([self._roots.known_as(path), path])), pa.string())
        found = records.filter(
            pc.or_(pc.is_in(records["path"], names), pc.fill_null(pc.is_in(records[READ_PATH], names), False))
        )
        rows = _table(found, found["status"], found["batchId"], found["batchProcessingTime"], found["reason"])
        return tuple(records_of(rows.sort_by("batch")))

    def _on_disk(self, path: str) -> tuple[int, int] | None:
        """Time and size of the file as it is listed now; None if the listing does not have it."""
        for root in self._source.source_roots:
            if not is_below(path, root):
                continue
            try:
                listed = self._listings.of([root])
            except NotFound:
                return None
            found = listed.filter(pc.equal(listed["path"], path)).to_pylist()
            if found:
                return found[0]["modificationTime"], found[0]["size"]
        return None

    # A file that the ledger has

    def _recorded(self, path: str, records: tuple[FileRecord, ...], now: tuple[int, int] | None) -> FileStory:
        last = records[-1]
        seen = (int(last.modified.timestamp() * 1000), last.size)
        number = self._ledger.state.generation + (last.batch or 0)
        took = f"batch {last.batch} (plan {number}) of {_text(last.recorded)}"
        version = self._version_of(number)
        if now is not None and not same(seen, now) and last.status in READ:
            what = f"It was taken by {took}, and was written again at {_text(_moment(now[0]))}"
            policy = self._source.on_rewritten_file
            fix = {
                "fail": "The next run fails. Restore the file, or set `on_rewritten_file`.",
                "skip": "`on_rewritten_file: skip`: its first rows stay, and the new content is not read.",
                "ingest": "`on_rewritten_file: ingest`: the next run adds its rows again.",
                "replace": "`on_rewritten_file: replace`: the next run replaces its rows.",
            }[policy]
            return FileStory(path, "changed", what, fix, records, version)
        if last.status in READ:
            gone = "" if now is not None else ". The file itself is not there any more"
            how = "" if version is None else f", in version {version} of the table"
            return FileStory(path, "in the table", f"It was taken by {took}{how}{gone}", None, records, version)
        if last.status == RELEASED:
            return self._waits(path, records, now, f"It was released from quarantine by {took}")
        what = f"It was {last.status} by {took}: {last.reason}"
        if last.status == "quarantined":
            fix = f"Repair the file (then it counts as new), or run `penstock files release {self._ledger.relation} {path}`."
            return FileStory(path, "quarantined", what, fix, records, version)
        early = last.reason == "before starting_timestamp"
        way_out = "Only a run with --full-refresh reads it." if early else None
        return FileStory(path, "skipped", what, way_out, records, version)

    def _version_of(self, number: int) -> int | None:
        """The version whose commit has this number of ours; None if the log does not have it any more."""
        table = self._ledger.state.table
        for commit in table.commits() if table is not None else ():
            found = _NUMBER.match(str(commit.get("userMetadata") or ""))
            if found and int(found.group(1)) <= number:
                return int(commit["version"]) if int(found.group(1)) == number else None
        return None

    # A file that the ledger does not have

    def _not_recorded(self, path: str, now: tuple[int, int] | None) -> FileStory:
        root = next((root for root in self._source.source_roots if is_below(path, root)), None)
        if root is None:
            known = ", ".join(self._source.source_roots)
            return FileStory(
                path, "left out", f"It is below none of the roots: {known}", "Add its folder to `source_roots`."
            )
        below = path[len(prefix(root)) :]
        if hidden := next((part for part in below.split("/") if is_hidden(part)), None):
            return FileStory(
                path, "left out", f"Names such as {hidden} are hidden: Spark does not read them", "Rename the file."
            )
        if now is None:
            return FileStory(path, "not there", "It is not in the ledger, and there is no such file", None)
        if left_out := self._pattern(below):
            return FileStory(path, "left out", left_out, "Correct the patterns of the model.")
        return self._waits(path, (), now, "It is new")

    def _pattern(self, below: str) -> str | None:
        source = self._source
        for pattern in source.source_exclude:
            if re.search(pattern, below):
                return f"`source_exclude` leaves it out: {pattern} matches {below}"
        if source.source_patterns and not any(re.search(pattern, below) for pattern in source.source_patterns):
            return f"`source_patterns` leaves it out: none of {', '.join(source.source_patterns)} matches {below}"
        return None

    def _waits(self, path: str, records: tuple[FileRecord, ...], now: tuple[int, int] | None, text: str) -> FileStory:
        if now is None:
            return FileStory(path, "not there", f"{text}, and the file is not there any more", None, records)
        number = self._ledger.unfinished
        if number is not None:
            plan = self._ledger.file_plan(number)
            if plan is not None and path in located(plan.lines)["path"].to_pylist():
                return FileStory(
                    path,
                    "waiting",
                    f"It is in plan {number}, which is written and not committed",
                    "A run is at work, or was killed: the next run does exactly this plan.",
                    records,
                )
        age = datetime.now(timezone.utc).timestamp() - now[0] / 1000
        buffer = self._source.safety_buffer_seconds
        if age < buffer:
            what = f"it is {max(0, int(age))} s old, and `safety_buffer_seconds` is {buffer:g}"
            return FileStory(path, "waiting", f"{text}, but too young: {what}", "A later run takes it.", records)
        if cancelled := self._cancelled(path):
            text = f"{text}. {cancelled}"
        batch = self._place(path)
        return FileStory(path, "waiting", f"{text}. {batch}", "Run the model.", records)

    def _cancelled(self, path: str) -> str | None:
        """The last cancelled plan that had the file, of the plans that are kept."""
        state = self._ledger.state
        for number in sorted(self._ledger.journal.records().plans, reverse=True):
            after = None if number > (state.mark or -1) else self._ledger.file_plan(number)
            if after is None or after.voided is None:
                continue
            voided, reason = after.voided
            plan = self._ledger.file_plan(voided)
            if plan is not None and path in located(plan.lines)["path"].to_pylist():
                return f"Plan {voided} had it and was cancelled: {reason}"
        return None

    def _place(self, path: str) -> str:
        try:
            selection = self._ledger.landing(self._listings, lambda text: None)
        except PenstockError as error:
            return f"The next run fails before it: {error}"
        if path in located(selection.aside)["path"].to_pylist():
            reason = dict(
                zip(*(located(selection.aside)[name].to_pylist() for name in ("path", "reason")), strict=True)
            )
            return f"The next run records it without reading it: {reason[path]}"
        paths = located(selection.backlog.files)["path"].to_pylist()
        if path not in paths:
            return "It is the same file as another one of the listing"
        return f"It is number {paths.index(path) + 1} of {len(paths)} files that the next run takes"


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, tz=timezone.utc)


def _text(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"
