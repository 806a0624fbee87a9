"""Compares a table's ledger with its log, and repairs what follows from the two. It never invents a plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import pyarrow as pa

from penstock.changes.plan import KIND as CHANGES
from penstock.errors import NotFound, PenstockError
from penstock.files.compaction import Compaction, NumberRange, path_of_compaction
from penstock.files.ledger import Ledger
from penstock.files.plan import KIND as FILES
from penstock.files.plan import FilePlan
from penstock.files.records import RECORDS, summary_of
from penstock.files.source import none
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup
from penstock.lake.relations import Relation
from penstock.protocol.journal import SUMMARY, Records
from penstock.protocol.plan import read_header
from penstock.storage import join
from penstock.windows.ledger import WindowLedger
from penstock.windows.plan import KIND as WINDOWS

Severity = Literal["repairable", "broken", "note"]


@dataclass(frozen=True)
class Finding:
    """One difference between the ledger and the log."""

    severity: Severity
    """`repairable`: `--yes` repairs it. `broken`: only the fix does. `note`: it is right, and worth to know."""
    what: str
    where: str
    fix: str | None = None
    repaired: bool = False


@dataclass(frozen=True)
class _Repair:
    """A finding, and what repairs it."""

    finding: Finding
    run: Callable[[], None]


def repair(lake: Lookup, relation: Relation, *, yes: bool) -> list[Finding]:
    """All differences between the ledger of a table and its log; with `yes`, repaired as far as that is possible.

    With `yes` it writes the summary and compactions anew and removes records of other lives. Other runs may go on.
    """
    if yes:
        lake.check_writable()
    found: list[Finding] = []
    for item in _Examination(lake, relation, repairs=yes).findings():
        if isinstance(item, Finding):
            found.append(item)
        elif yes:
            item.run()
            found.append(replace(item.finding, repaired=True))
        else:
            found.append(item.finding)
    return found


class _Examination:
    """Examines one table."""

    def __init__(self, lake: Lookup, relation: Relation, *, repairs: bool) -> None:
        self._where, self._repairs = relation.location, repairs
        journal = TableLedger.open(lake, relation, check=False).journal
        # The records are listed before the state is read. A plan of the next life is written after the commit that
        # begins this life. So a plan of another life in the list is of an earlier life.
        self._records: Records = journal.records()
        self._windows = WindowLedger(journal).all_records()
        self._ledger = TableLedger.open(lake, relation, check=False)
        self._journal, self._state = self._ledger.journal, self._ledger.state
        self._lake, self._relation = lake, relation

    def findings(self) -> Iterator[Finding | _Repair]:
        if self._state.mark is not None:
            try:
                TableLedger.open(self._lake, self._relation)
            except PenstockError as error:
                yield self._broken(error)
        yield from self._other_lives()
        if self._state.mark is None:
            return
        try:
            kind = self._ledger.kind
            facts: dict[str, Any] = {}
            if kind == CHANGES:
                facts = {"sources": {versions.name: versions.end for versions in self._ledger.changes.ranges}}
            elif kind == WINDOWS:
                facts = {"windows": self._ledger.windows.ranges.texts()}
        except PenstockError as error:
            yield self._broken(error)
            return
        if kind == FILES:
            yield from self._files()
        else:
            yield from self._summary(facts)

    def _broken(self, error: PenstockError) -> Finding:
        return Finding("broken", error.what, error.where or self._where, error.fix)

    # Records of other lives

    def _other_lives(self) -> Iterator[Finding | _Repair]:
        generation, mark = self._state.generation, self._state.mark
        for number in sorted(self._records.plans):
            path = self._journal.path_of(number)
            header = self._header(path)
            if header is None:
                if mark is None or number < generation or number > mark:
                    yield Finding("note", "this record can't be read, and no run reads it", join(self._where, path))
                continue
            if number > (-1 if mark is None else mark) and header.get("replace"):
                yield Finding(
                    "note", f"plan {number} builds the table anew, and is not committed", join(self._where, path)
                )
            elif mark is not None and (number < generation or header.get("ledger") != self._state.ledger):
                yield self._removal(path, f"plan {number} is of another life of the table")
            elif mark is not None and number == mark + 1:
                yield Finding("note", f"plan {number} is unfinished: the next run does it", join(self._where, path))
        if mark is None:
            return
        for number in sorted(self._records.compactions):
            path = path_of_compaction(number)
            if number < generation:
                yield self._removal(path, f"the compaction up to {number} is of another life of the table")
        old = [path for path, of in self._windows if of != generation]
        if old:
            what = f"{len(old)} records of windows are of another life of the table"
            yield _Repair(Finding("repairable", what, self._where), lambda: self._delete(old))

    def _header(self, path: str) -> dict[str, Any] | None:
        try:
            return read_header(self._journal.storage.read(path), path)
        except PenstockError:
            return None

    def _delete(self, paths: list[str]) -> None:
        for path in paths:
            self._journal.storage.delete(path)

    def _removal(self, path: str, what: str) -> _Repair:
        return _Repair(Finding("repairable", what, join(self._where, path)), lambda: self._delete([path]))

    # Files

    def _files(self) -> Iterator[Finding | _Repair]:
        broken = list(self._compactions())
        yield from broken
        missing = self._missing()
        if missing:
            numbers = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
            yield Finding(
                "broken",
                f"the table has batches whose plan and compaction are missing: {numbers}",
                self._where,
                "Put the files back from a backup, or run with --full-refresh.",
            )
            return
        if any(isinstance(item, Finding) for item in broken) or (broken and not self._repairs):
            return  # the rest of the ledger can't be told from damaged compactions
        ledger = Ledger(self._journal)
        try:
            ledger.follow(self._state)
        except PenstockError as error:
            yield self._broken(error)
            return
        yield from self._summary(summary_of(ledger.records))

    def _compactions(self) -> Iterator[Finding | _Repair]:
        """Compactions that can't be read, or that say something else than the plans that are still there."""
        for number in sorted(self._records.compactions):
            if number < self._state.generation or number > (self._state.mark or 0):
                continue
            path = path_of_compaction(number)
            where = join(self._where, path)
            try:
                found = Compaction.from_bytes(self._journal.storage.read(path), where)
            except NotFound:
                continue  # another run has tidied up
            except PenstockError as error:
                numbers = self._plans_up_to(number)
                if numbers is None:
                    yield self._broken(error)
                else:
                    yield self._rewritten(numbers, f"the compaction up to {number} can't be read; its plans are there")
                continue
            if found.ledger != self._state.ledger:
                yield self._removal(path, f"the compaction up to {number} is of another life of the table")
                continue
            if any(plan not in self._records.plans for plan in range(found.numbers.first, number + 1)):
                continue
            if _content(self._of_plans(found.numbers).records) != _content(found.records):
                yield self._rewritten(found.numbers, f"the compaction up to {number} has other files than its plans")

    def _plans_up_to(self, number: int) -> NumberRange | None:
        """The range of a compaction that can't be read: the plans below its end that no other file has; None if some
        are missing."""
        if number not in self._records.plans:
            return None
        first = number
        while first > self._state.generation and first - 1 in self._records.plans:
            first -= 1
        below = {other for other in self._records.compactions if other < first}
        return NumberRange(first, number) if first == self._state.generation or first - 1 in below else None

    def _rewritten(self, numbers: NumberRange, what: str) -> _Repair:
        path = path_of_compaction(numbers.last)

        def run() -> None:
            self._journal.storage.write(path, self._of_plans(numbers).to_bytes(self._state.generation))

        return _Repair(Finding("repairable", what, join(self._where, path)), run)

    def _of_plans(self, numbers: NumberRange) -> Compaction:
        """The compaction of a range whose plans are all there."""
        plans = [self._plan(number) for number in range(numbers.first, numbers.last + 1)]
        voided = {plan.voided[0] for plan in plans if plan.voided is not None}
        after = self._plan(numbers.last + 1) if numbers.last + 1 <= (self._state.mark or 0) else None
        if after is not None and after.voided is not None:
            voided.add(after.voided[0])
        if self._state.last_is_void:
            voided.add(self._state.mark or -1)
        head = plans[-1]
        records = [plan.named(head.roots).records() for plan in reversed(plans) if plan.number not in voided]
        first = plans[0].voided
        return Compaction(
            numbers,
            pa.concat_tables(records) if records else none(RECORDS),
            head.schema,
            head.format,
            None if first is None else first[0],
            self._state.ledger,
            head.roots,
        )

    def _plan(self, number: int) -> FilePlan:
        path = self._journal.path_of(number)
        where = join(self._where, path)
        return FilePlan.from_bytes(number, self._journal.storage.read(path), where, committed=True)

    def _missing(self) -> list[int]:
        """The numbers that neither a plan nor a compaction has."""
        have = set(self._records.plans)
        for number in self._records.compactions:
            if number < self._state.generation:
                continue
            try:
                data = self._journal.storage.read(path_of_compaction(number))
                found = Compaction.from_bytes(data, path_of_compaction(number))
            except PenstockError:
                continue
            if found.ledger == self._state.ledger:
                have |= set(range(found.numbers.first, found.numbers.last + 1))
        return [number for number in range(self._state.generation, (self._state.mark or 0) + 1) if number not in have]

    # The summary

    def _summary(self, facts: dict[str, Any]) -> Iterator[_Repair]:
        if self._state.table is None or self._state.mark is None:
            return
        where = join(self._where, SUMMARY)
        summary = self._ledger.summary
        wanted: dict[str, Any] = {
            "ledger": self._state.ledger,
            "number": self._state.mark,
            "generation": self._state.generation,
            **facts,
        }
        differs = [key for key, value in wanted.items() if summary.get(key) != value]
        if differs:
            what = "there is no summary" if not summary else f"the summary has another {', '.join(differs)}"
            yield _Repair(Finding("repairable", what, where), lambda: self._journal.summarize(self._state, facts))


def _content(records: pa.Table) -> str:
    """The records in one order, as text that can be compared."""
    order = [(name, "ascending") for name in ("batchId", "path", "modificationTime", "size", "status")]
    rows = records.select([name for name, _ in order]).sort_by(order)
    return json.dumps(rows.to_pylist())
