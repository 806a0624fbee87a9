"""Keeps the ledger's folder small: compacts plans, and removes files that compactions cover."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa

from penstock.errors import CommitConflict, NotFound
from penstock.files.compaction import Compaction, NumberRange, path_of_compaction, tier
from penstock.files.ledger import Ledger
from penstock.files.ledger_reader import Head
from penstock.files.plan import FilePlan
from penstock.files.records import RECORDS
from penstock.files.source import none
from penstock.protocol.journal import Journal, Records
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.steps import Step

log = logger("penstock.files")

_LARGE = 100_000
"""Lines. A plan with more takes seconds to read, so it gets a compaction of its own."""


class Tidier:
    """Tidies up the ledger of one table. No run depends on it: a ledger that is not tidied up reads the same."""

    def __init__(self, journal: Journal[FilePlan], ledger: Ledger, interval: int, keep: int, step: Step) -> None:
        """Compacts after each `interval` of numbers, and keeps about `keep` files."""
        self._journal = journal
        self._ledger = ledger
        self._interval = interval
        self._keep = keep
        self._step = step
        self._reader = ledger.reader

    def tidy(self, state: State) -> None:
        """Compact if that is due, then remove the oldest files that a compaction covers."""
        if state.mark is None or state.mark < state.generation:
            return
        if self._ledger.last_read > _LARGE:
            self._compact(NumberRange(state.mark, state.mark), state)
        done = state.mark - state.generation + 1
        due = state.generation + done // self._interval * self._interval - 1
        if due < state.generation:
            return
        if done % self._interval and self._journal.storage.exists(path_of_compaction(due)):
            return
        self._step("compaction")
        try:
            records = self._journal.records()
            if due not in records.compactions:
                self._compact(tier(due, state.generation, self._interval), state)
                records = self._journal.records()
            self._step("compacted")
            self._retain(state, records)
        except (NotFound, CommitConflict) as error:
            # The records that a run needs were read before. So another run has tidied up meanwhile.
            log.info("another run has tidied up the ledger: %s", error)

    # Compacting

    def _compact(self, numbers: NumberRange, state: State, *, whole: bool = False) -> None:
        """Write the compaction of a range; with `whole`, replace the one that is there."""
        numbers = self._widened(numbers, state)
        void = state.void if numbers.last == state.mark else self._void_below(numbers.last, state)
        # Paths of 0.1.0 get the names that the aliases of the newest plan give.
        part = self._reader.read(numbers, replace(state, mark=numbers.last, void=void), self._ledger.roots)
        head = part.head or Head()
        compaction = Compaction(
            numbers,
            pa.concat_tables(part.records) if part.records else none(RECORDS),
            head.schema,
            head.format,
            part.voided,
            state.ledger,
            head.roots,
        )
        path, data = path_of_compaction(numbers.last), compaction.to_bytes(state.generation)
        if whole:
            self._journal.storage.write(path, data)
        elif not self._journal.storage.write_new(path, data):
            # The one that is there may have more records than ours, and they may be nowhere else.
            return
        self._reader.ranges[numbers.last] = numbers

    def _widened(self, numbers: NumberRange, state: State) -> NumberRange:
        """The range, down to the first number of every compaction that ends in it: their plans may be gone."""
        for other in sorted(self._journal.records().compactions, reverse=True):
            if numbers.first <= other < numbers.last:
                # Read again: another run may have replaced it by one of all numbers.
                found = self._reader.compaction(other, state)
                if found is not None and found.numbers.first < numbers.first:
                    numbers = NumberRange(found.numbers.first, numbers.last)
        return numbers

    def _void_below(self, number: int, state: State) -> int | None:
        voided = self._reader.plan(number + 1, state).voided
        return None if voided is None else voided[0]

    # Removing

    def _retain(self, state: State, records: Records) -> None:
        records = self._forget_earlier(state, records)
        if _count(records) <= self._keep:
            return
        removable, newest = self._covered(state, records)
        if _count(records) - len(removable) > self._keep and newest is not None and newest.first > state.generation:
            # The compactions alone are too many: one file for all numbers.
            self._compact(NumberRange(state.generation, newest.last), state, whole=True)
            records = self._journal.records()
            removable, _ = self._covered(state, records)
        for _number, _rank, path in sorted(removable)[: max(0, _count(records) - self._keep)]:
            self._step("retention")
            self._journal.storage.delete(path)

    def _forget_earlier(self, state: State, records: Records) -> Records:
        """Remove the records of earlier generations and of earlier lives of the table: no run reads them."""
        plans = {number for number in records.plans if number < state.generation}
        compactions = {number for number in records.compactions if number < state.generation}
        if plans or compactions:
            log.debug("%d records of before generation %d are removed", len(plans | compactions), state.generation)
        for path in self._paths(plans, compactions):
            self._journal.storage.delete(path)
        return Records(records.plans - plans, records.compactions - compactions)

    def _paths(self, plans: Iterable[int], compactions: Iterable[int]) -> list[str]:
        return [*map(self._journal.path_of, sorted(plans)), *map(path_of_compaction, sorted(compactions))]

    def _covered(self, state: State, records: Records) -> tuple[list[tuple[int, int, str]], NumberRange | None]:
        """The files that no reader of the ledger needs, and the range of the newest compaction that it needs.

        A file is (number, rank, path). They are removed in this order: oldest first, a plan before its compaction.
        """
        assert state.mark is not None
        needless: list[tuple[int, int, str]] = []
        number, newest = state.mark, None
        while number >= state.generation:
            if number not in records.compactions:
                number -= 1
                continue
            found = self._reader.range_of(number, state)
            if found is None:
                needless.append((number, 1, path_of_compaction(number)))
                number -= 1
                continue
            newest = newest or found
            # The plan of the mark stays: it tells how the files were read.
            plans = [plan for plan in records.plans if found.first <= plan <= found.last and plan != state.mark]
            others = [other for other in records.compactions if found.first <= other < found.last]
            needless += [(plan, 0, self._journal.path_of(plan)) for plan in plans]
            needless += [(other, 1, path_of_compaction(other)) for other in others]
            number = found.first - 1
        return needless, newest


def _count(records: Records) -> int:
    return len(records.plans) + len(records.compactions)
