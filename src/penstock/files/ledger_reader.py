"""Reads ranges of the ledger from its files: from compactions where there are some, else from plans."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import CommitConflict, NotFound
from penstock.files.compaction import Compaction, NumberRange, path_of_compaction
from penstock.files.plan import FilePlan
from penstock.files.roots import Roots
from penstock.protocol.journal import Journal, Records
from penstock.protocol.plan import check_ledger
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.spark.reading.file_schema import FileSchema
from penstock.storage import join

log = logger("penstock.files")

_ATTEMPTS = 5


@dataclass(frozen=True)
class Head:
    """How the newest plan of a range reads its files."""

    schema: FileSchema | None = None
    format: str | None = None
    roots: Roots = field(default_factory=Roots)


@dataclass(frozen=True)
class LedgerPart:
    """A range of the ledger."""

    records: list[pa.Table]
    """The newest first."""
    head: Head | None
    """None if the range has no number."""
    voided: int | None
    """The number before the range, if it was cancelled."""


class LedgerReader:
    """Reads the ledger of one table."""

    def __init__(self, journal: Journal[FilePlan]) -> None:
        self._journal = journal
        self.ranges: dict[int, NumberRange] = {}
        """The ranges of the compactions that were read or written, by their last numbers."""

    def read(self, numbers: NumberRange, state: State, roots: Roots, *, is_next: bool = False) -> LedgerPart:
        """The records of a range of committed numbers.

        `state` is that of the last number. `roots` are for compactions of 0.1.0, which have none. A range of one number
        that `is_next` was just committed: its plan is read without listing the folder. CommitConflict if another run
        has changed the ledger in the meantime.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                alone = is_next and numbers.last <= numbers.first and attempt == 1
                return self._read(numbers, state, roots, None if alone else self._journal.records())
            except NotFound as error:
                # Another run may have compacted and tidied up after our listing. If it has committed too, the records
                # that we look for may be only in a compaction of later numbers.
                if self._journal.state().mark != state.mark:
                    raise CommitConflict("another run has changed the ledger in the meantime") from error
                if attempt == _ATTEMPTS:
                    raise
        raise AssertionError("unreachable")

    def _read(self, numbers: NumberRange, state: State, roots: Roots, present: Records | None) -> LedgerPart:
        """Read from the newest number down: a compaction if there is one, else the plan of the number."""
        records: list[pa.Table] = []
        head: Head | None = None
        number, void = numbers.last, state.void if state.last_is_void else None
        while number >= numbers.first:
            found = None
            if present is not None and number in present.compactions:
                found = self.compaction(number, state)
            if found is not None:
                head = head or self._head_of(found, state, roots)
                named = found.records if found.roots is not None else head.roots.identify(found.records)
                if found.numbers.first < numbers.first:
                    named = named.filter(pc.greater_equal(named["batchId"], numbers.first - state.generation))
                records.append(named)
                number, void = found.numbers.first - 1, found.voided
            else:
                plan = self.plan(number, state)
                head = head or Head(plan.schema, plan.format, plan.roots)
                if number != void:
                    records.append(plan.named(head.roots).records())
                number, void = number - 1, None if plan.voided is None else plan.voided[0]
        return LedgerPart(records, head, void)

    def _head_of(self, found: Compaction, state: State, roots: Roots) -> Head:
        head = Head(found.schema, found.format)
        if found.roots is not None:
            return replace(head, roots=found.roots)
        # 0.1.0: the plan of the mark has the roots, and retention keeps that plan.
        return replace(head, roots=roots if roots.roots else self.plan(found.numbers.last, state).roots)

    def plan(self, number: int, state: State) -> FilePlan:
        """A committed plan; an error if its file is missing, damaged, or of another life of the table."""
        path = self._journal.path_of(number)
        where = join(self._journal.location, path)
        try:
            data = self._journal.storage.read(path)
        except NotFound as error:
            raise NotFound(
                f"The ledger lacks batch {number}, which is in the table: both its plan and its compaction are missing",
                where=where,
                fix="Put the file back from a backup, or run with --full-refresh.",
            ) from error
        plan = FilePlan.from_bytes(number, data, where, committed=True)
        check_ledger(plan, state, where)
        return plan

    def compaction(self, number: int, state: State) -> Compaction | None:
        """The compaction that ends at a number; None if it is of another life of the table."""
        path = path_of_compaction(number)
        found = Compaction.from_bytes(self._journal.storage.read(path), join(self._journal.location, path))
        if found.ledger != state.ledger:
            log.debug("%s is of another life of this table (%s) and is not read", path, found.ledger)
            return None
        self.ranges[number] = found.numbers
        return found

    def range_of(self, number: int, state: State) -> NumberRange | None:
        """The range of the compaction that ends at a number; None if it is of another life of the table."""
        if number in self.ranges:
            return self.ranges[number]
        found = self.compaction(number, state)
        return None if found is None else found.numbers
