"""The file ledger: the committed plans of a generation, loose and compacted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock.errors import CommitConflict, NotFound, PenstockError
from penstock.files.plan import RECORDS, FilePlan
from penstock.files.roots import Roots
from penstock.files.source import none
from penstock.protocol.journal import FOLDER, Journal, Records
from penstock.protocol.plan import FORMAT, check_format, check_ledger
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.steps import Step
from penstock.storage import join

log = logger("penstock.files")

_HEADER = b"penstock"
_TIER = 10
_ATTEMPTS = 5
_LARGE = 100_000
"""Lines: a plan of more takes seconds to read, and is compacted by itself."""


@dataclass(frozen=True)
class Span:
    """A run of numbers, both ends in it."""

    first: int
    last: int


@dataclass(frozen=True)
class Compaction:
    """What a compaction file holds."""

    span: Span
    records: pa.Table
    schema: dict[str, Any] | None
    folders: tuple[str, ...]
    format: str | None
    voided: int | None = None
    """The number before the span, where that was cancelled: its own plan does not know it."""
    ledger: str | None = None
    """The table's life that it belongs to."""
    roots: Roots | None = None
    """Those of the newest plan in it; None in compactions of 0.1.0, which do not tell them."""

    def to_bytes(self, generation: int) -> bytes:
        header = {
            "format_version": FORMAT,
            "ledger": self.ledger,
            "generation": generation,
            **(self.roots or Roots()).to_header(),
            "first": self.span.first,
            "last": self.span.last,
            "schema": self.schema,
            "folders": list(self.folders),
            "source_format": self.format,
            "voided": self.voided,
        }
        records = self.records.replace_schema_metadata({_HEADER: json.dumps(header).encode()})
        sink = io.BytesIO()
        # A damaged record could bring a file in again, or lose one: it is to be noticed.
        pq.write_table(records, sink, compression="zstd", write_page_checksum=True)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Compaction:
        try:
            # Not read_table, which imports pandas: half a second of a run that finds nothing new.
            table = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read()
            header = json.loads((table.schema.metadata or {})[_HEADER])
            check_format(header, where)
            return cls(
                Span(header["first"], header["last"]),
                _records(table),
                header.get("schema"),
                tuple(header.get("folders") or ()),
                header.get("source_format"),
                header.get("voided"),
                header.get("ledger"),
                None if header["format_version"] == 1 else Roots.from_header(header),
            )
        except (ValueError, KeyError, TypeError, OSError, pa.ArrowException) as error:
            raise PenstockError(
                f"This compaction of the ledger can't be read: {error}",
                where=where,
                fix="Move it away: where its plans are still there they are read instead; "
                "else put it back from a backup, or run with --full-refresh.",
            ) from error


class Ledger:
    """What is in the table already, read once and then kept up with the log."""

    def __init__(self, journal: Journal[FilePlan]) -> None:
        self._journal = journal
        self._life: tuple[str | None, int] | None = None
        """The ledger and the generation that was read."""
        self._parts: list[pa.Table] = []
        self._last = -1
        """The last number that `records` covers."""
        self._void: int | None = None
        """The number before the oldest one read, where that was cancelled."""
        self._spans: dict[int, Span] = {}
        self.schema: dict[str, Any] | None = None
        self.folders: tuple[str, ...] = ()
        self.format: str | None = None
        self.roots = Roots()
        """The roots of the newest plan."""

    @property
    def records(self) -> pa.Table:
        return pa.concat_tables(self._parts) if self._parts else none(RECORDS)

    def follow(self, state: State) -> pa.Table:
        """Read what was committed since the last call, or all of it on the first; returns what was added."""
        if state.mark is None:
            return none(RECORDS)
        if not self.covers(state):
            self._life, self._parts, self._last = (state.ledger, state.generation), [], state.generation - 1
            self.roots = Roots()
        parts = self._read(Span(self._last + 1, state.mark), state)
        self._parts += parts
        self._last = state.mark
        return pa.concat_tables(parts) if parts else none(RECORDS)

    def covers(self, state: State) -> bool:
        """Whether what was read so far is of the table as it is now, and not of one before a refresh."""
        return self._life == (state.ledger, state.generation)

    def _read(self, span: Span, state: State) -> list[pa.Table]:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                # The plan that was just committed is read without looking around.
                alone = span.last <= span.first and attempt == 1 and bool(self._parts)
                return list(self._read_once(span, state, None if alone else self._journal.records()))
            except NotFound as error:
                # Another run may have compacted and tidied up between our listing and our reading; and beyond the
                # mark that we know, so that what we look for is only in a compaction of later numbers.
                if self._journal.state().mark != state.mark:
                    raise CommitConflict("another run has moved the ledger on") from error
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _read_once(self, span: Span, state: State, records: Records | None) -> Iterator[pa.Table]:
        """From the newest down: a compaction where there is one, else the plan itself."""
        number = span.last
        void = state.void if state.last_is_void else None
        newest = True
        while number >= span.first:
            if records is not None and number in records.compactions and (found := self._compaction(number, state)):
                if newest:
                    self.schema, self.folders, self.format = found.schema, found.folders, found.format
                    self.roots = found.roots or self._roots_of_0_1_0(number, state)
                inside = found.records if found.roots is not None else self.roots.identify(found.records)
                if found.span.first < span.first:
                    inside = inside.filter(pc.greater_equal(inside["batchId"], span.first - state.generation))
                yield inside
                number, void, newest = found.span.first - 1, found.voided, False
                continue
            plan = self._plan(number, state)
            if newest:
                self.schema, self.folders, self.format = plan.schema, plan.folders, plan.format
                self.roots = plan.roots
            if number != void:
                yield plan.named(self.roots).records()
            void = plan.voided[0] if plan.voided is not None else None
            number, newest = number - 1, False
        self._void = void

    def _roots_of_0_1_0(self, number: int, state: State) -> Roots:
        """Its compactions do not tell their roots; the plan of the mark does, which retention keeps."""
        return self.roots if self.roots.roots else self._plan(number, state).roots

    def _plan(self, number: int, state: State) -> FilePlan:
        path = self._journal.path_of(number)
        where = join(self._journal.location, path)
        try:
            data = self._journal.storage.read(path)
        except NotFound as error:
            raise NotFound(
                f"The ledger lacks batch {number}, which is in the table: neither its plan nor a compaction of it is there",
                where=where,
                fix="Put the file back from a backup, or run with --full-refresh.",
            ) from error
        plan = FilePlan.from_bytes(number, data, where, committed=True)
        check_ledger(plan, state, where)
        return plan

    def _compaction(self, number: int, state: State) -> Compaction | None:
        """The compaction of a number; None where it is of another life of the table."""
        path = _compaction_path(number)
        found = Compaction.from_bytes(self._journal.storage.read(path), join(self._journal.location, path))
        if found.ledger != state.ledger:
            log.debug("%s is of another life of this table (%s) and is not read", path, found.ledger)
            return None
        self._spans[number] = found.span
        return found

    def _span(self, number: int, state: State) -> Span | None:
        if number not in self._spans:
            self._compaction(number, state)
        return self._spans.get(number)

    # Keeping it small

    def tidy(self, state: State, interval: int, keep: int, step: Step) -> None:
        """Compact where that is due, then remove the oldest files that a compaction covers."""
        if state.mark is None or state.mark < state.generation:
            return
        if any(part.num_rows > _LARGE for part in self._parts[-1:]):
            self._compact(Span(state.mark, state.mark), state)
        done = state.mark - state.generation + 1
        due = state.generation + done // interval * interval - 1
        if due < state.generation:
            return
        if done % interval and self._journal.storage.exists(_compaction_path(due)):
            return
        step("compaction")
        try:
            records = self._journal.records()
            if due not in records.compactions:
                self._compact(tier(due, state.generation, interval), state)
                records = self._journal.records()
            step("compacted")
            self._retain(state, keep, records, step)
        except (NotFound, CommitConflict) as error:
            # What is needed was read before this; so another run has tidied up meanwhile.
            log.info("the ledger was tidied up by another run: %s", error)

    def _compact(self, span: Span, state: State, *, whole: bool = False) -> None:
        for other in sorted(self._journal.records().compactions, reverse=True):
            # One that reaches further down holds what its plans, gone by now, do not.
            if span.first <= other < span.last:
                reach = self._span(other, state)
                if reach is not None and reach.first < span.first:
                    span = Span(reach.first, span.last)
        reader = Ledger(self._journal)
        # Paths of 0.1.0 are spelled as the newest plan's aliases say.
        reader.roots = self.roots
        void = state.void if span.last == state.mark else self._void_below(span.last, state)
        parts = reader._read(span, replace(state, mark=span.last, void=void))
        compaction = Compaction(
            span,
            pa.concat_tables(parts) if parts else none(RECORDS),
            reader.schema,
            reader.folders,
            reader.format,
            reader._void,
            state.ledger,
            reader.roots,
        )
        path, data = _compaction_path(span.last), compaction.to_bytes(state.generation)
        if whole:
            self._journal.storage.write(path, data)
        elif not self._journal.storage.write_new(path, data):
            # One that is there may hold more than ours, and what it holds may be nowhere else.
            return
        self._spans[span.last] = span

    def _void_below(self, number: int, state: State) -> int | None:
        voided = self._plan(number + 1, state).voided
        return None if voided is None else voided[0]

    def _retain(self, state: State, keep: int, records: Records, step: Step) -> None:
        records = self._forget_earlier(state, records)
        total = len(records.plans) + len(records.compactions)
        if total <= keep:
            return
        covered, top = self._covered(state, records)
        removable = sorted(covered)
        if total - len(removable) > keep and top is not None and top.first > state.generation:
            # The tiers alone are more than may stay: one file for all.
            self._compact(Span(state.generation, top.last), state, whole=True)
            records = self._journal.records()
            covered, _ = self._covered(state, records)
            removable = sorted(covered)
            total = len(records.plans) + len(records.compactions)
        for _number, _rank, path in removable[: total - keep]:
            step("retention")
            self._journal.storage.delete(path)

    def _forget_earlier(self, state: State, records: Records) -> Records:
        """Remove the records of earlier generations, and of earlier lives of the table: no run reads them."""
        plans = {number for number in records.plans if number < state.generation}
        compactions = {number for number in records.compactions if number < state.generation}
        if plans or compactions:
            log.debug("%d records of before generation %d are removed", len(plans | compactions), state.generation)
        for path in [*map(self._journal.path_of, sorted(plans)), *map(_compaction_path, sorted(compactions))]:
            self._journal.storage.delete(path)
        return Records(records.plans - plans, records.compactions - compactions)

    def _covered(self, state: State, records: Records) -> tuple[list[tuple[int, int, str]], Span | None]:
        """The record files that are not needed to read the ledger, and the newest compaction that is."""
        assert state.mark is not None
        needless: list[tuple[int, int, str]] = []
        number, newest = state.mark, None
        while number >= state.generation:
            if number not in records.compactions:
                number -= 1
                continue
            span = self._span(number, state)
            if span is None:
                needless.append((number, 1, _compaction_path(number)))
                number -= 1
                continue
            newest = newest or span
            # The plan of the mark itself stays: it says what the files were read as.
            needless += [
                (plan, 0, self._journal.path_of(plan))
                for plan in records.plans
                if span.first <= plan <= span.last and plan != state.mark
            ]
            needless += [
                (other, 1, _compaction_path(other)) for other in records.compactions if span.first <= other < span.last
            ]
            number = span.first - 1
        return needless, newest


def _records(table: pa.Table) -> pa.Table:
    """The records in a compaction; those of 0.1.0 do not tell where a file lies besides its name."""
    if "place" not in table.column_names:
        table = table.append_column("place", pa.nulls(table.num_rows, pa.string()))
    return table.select(RECORDS.names).cast(RECORDS)


def tier(last: int, generation: int, interval: int) -> Span:
    """The numbers that the compaction of a number covers: an interval, ten of them, a hundred, …

    >>> tier(19, 0, 10), tier(99, 0, 10)
    (Span(first=10, last=19), Span(first=0, last=99))
    """
    done = last - generation + 1
    size = interval
    while done % (size * _TIER) == 0:
        size *= _TIER
    return Span(last - size + 1, last)


def _compaction_path(number: int) -> str:
    return f"{FOLDER}/{number}.parquet"
