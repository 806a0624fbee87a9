"""The journal of one table: its plans, in `_checkpoint/sources/`, and the commits that carry no data."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from penstock.delta.commits import Commit, edits, foreign_commits
from penstock.delta.layout import RETENTION
from penstock.delta.table import MARK, VOID, Table
from penstock.errors import CommitConflict, NotFound, PenstockError, UnreadableTable
from penstock.lake.relations import LEDGER_FOLDER
from penstock.protocol.empty_commit import CommitBySpark, commit_marks
from penstock.protocol.plan import FORMAT, InvalidPlan, Plan, check_ledger, properties_of, read_header
from penstock.protocol.state import GENERATION, LEDGER, State
from penstock.secrets import logger, redact
from penstock.storage import Storage, join

log = logger("penstock.journal")

FOLDER = f"{LEDGER_FOLDER}/sources"
SUMMARY = f"{LEDGER_FOLDER}/watermark.json"

_NAME = re.compile(r"(\d+)(\.parquet)?$")
_LOOKS = 2
_WAYS_OUT = "Run with --full-refresh to load it again, or name another table."

P = TypeVar("P", bound=Plan)
P_co = TypeVar("P_co", bound=Plan, covariant=True)


class Decoder(Protocol[P_co]):
    """Reads the plans of one kind."""

    @property
    def kind(self) -> str:
        """The `kind` in the headers of the plans."""

    def decode(self, number: int, data: bytes, where: str) -> P_co:
        """The plan that these bytes hold; an error that names `where` if they hold none."""


@dataclass(frozen=True)
class Records:
    """The numbers of the plans, and of the compactions of plans, in the journal's folder."""

    plans: frozenset[int]
    compactions: frozenset[int]

    @property
    def highest(self) -> int:
        """The highest number present; -1 if there is none."""
        return max([-1, *self.plans, *self.compactions])


class Journal(Generic[P]):
    """The plans of one table, in `_checkpoint/sources/` beside its `_delta_log/`."""

    def __init__(
        self,
        location: str,
        storage_options: dict[str, str] | None = None,
        by_spark: CommitBySpark | None = None,
    ) -> None:
        self.location = location
        self._by_spark = by_spark
        self._options = storage_options
        self._logged = -1
        """The version up to which edits by others were logged."""
        self.storage = Storage(location, storage_options)

    def state(self, *, check: bool = True) -> State:
        """Where the table stands, from its log; no JVM starts. An unreadable log is an error, never "no table".

        With `check`, PenstockError if other writers have removed rows that we committed.
        """
        for _ in range(_LOOKS):
            try:
                return self._state(check)
            except UnreadableTable as error:
                # A table that is dropped during the read looks broken first, and then is not there.
                log.debug("the log of %s is read again: %s", self.location, error)
        return self._state(check)

    def _state(self, check: bool) -> State:
        try:
            table = Table.open(self.location, self._options, files=False)
        except NotFound:
            return State(None, None, None, 0)
        return self.state_of(table, check=check)

    def state_of(self, table: Table, *, check: bool) -> State:
        """Where a table stands at the version that it was opened at; see `state`."""
        properties, mark = table.properties, table.mark
        others: list[Commit] = []
        if check and mark is not None:
            others = foreign_commits(table)
            self._check_properties(properties)
            self._log_edits(others)
        return State(table, mark, table.void, int(properties.get(GENERATION, 0)), properties.get(LEDGER), tuple(others))

    def unfinished(self, state: State, decoder: Decoder[P]) -> P | None:
        """The plan that was written and not committed, by an earlier run or by another one; None if there is none."""
        if state.mark is not None:
            return self.plan(state.mark + 1, state, decoder)
        if state.table is not None:
            return None  # others made the table, and a plan to create a table must not replace it
        # Without a table, a record belongs to an earlier life of the table, unless it is a plan to begin the next life.
        records = self.records()
        number = records.highest
        if number not in records.plans or number in records.compactions:
            return None
        where = join(self.location, self.path_of(number))
        try:
            data = self.storage.read(self.path_of(number))
        except NotFound:
            return None  # a drop has removed it meanwhile
        if read_header(data, where).get("kind") != decoder.kind:
            return None
        plan = decoder.decode(number, data, where)
        return plan if plan.replace else None

    def write_ahead(self, plan: P) -> bool:
        """Write a plan that has not run yet; False if another run has written one under this number."""
        return self.storage.write_new(self.path_of(plan.number), plan.to_bytes())

    def write_again(self, plan: P) -> None:
        """After the commit of a replace plan: a drop at the same time may have taken the plan's file away."""
        self.storage.write_new(self.path_of(plan.number), plan.to_bytes())

    def next_number(self, state: State, *, refresh: bool) -> int:
        """The number of the next plan. The number of a refresh is above every plan and every commit."""
        if state.mark is not None and not refresh:
            return state.mark + 1
        free = self.first_free(state)
        # Delta refuses a lower number. So a writer of an earlier life of the table, which wakes up now, cannot commit.
        return free if state.mark is not None else max(free, int(time.time() * 1000))

    def plan(self, number: int, state: State, decoder: Decoder[P]) -> P | None:
        """The plan with this number; None only if there is none. A plan of another life of the table is an error."""
        path = self.path_of(number)
        where = join(self.location, path)
        try:
            data = self.storage.read(path)
        except NotFound:
            return None
        plan = decoder.decode(number, data, where)
        if not plan.replace:
            check_ledger(plan, state, where, "It was copied or restored to here: move the file away")
        return plan

    def records(self) -> Records:
        """The plans and compactions that the folder holds now."""
        plans: set[int] = set()
        compactions: set[int] = set()
        for entry in self.storage.list(FOLDER):
            # Other names belong to others, or to writes that were killed.
            if found := _NAME.fullmatch(entry.path.rsplit("/", 1)[-1]):
                (compactions if found.group(2) else plans).add(int(found.group(1)))
        return Records(frozenset(plans), frozenset(compactions))

    def first_free(self, state: State) -> int:
        """The first number above every plan present and every number committed."""
        return max(-1 if state.mark is None else state.mark, self.records().highest) + 1

    def claim(self, plan: P, state: State) -> None:
        """Take over an empty table that others made: one commit without data sets our properties and the mark."""
        self._commit(state, state.note(plan.number), {MARK: plan.number}, properties_of(plan))

    def commit_empty(self, number: int, state: State, *, note: str | None = None) -> None:
        """Commit a number without data; CommitConflict if the table has moved on since the state was read."""
        self._commit(state, note or state.note(number), {MARK: number})

    def cancel(self, plan: P, state: State, invalid: InvalidPlan) -> None:
        """Use up a plan's number by an empty commit, so that nobody can run the plan any more.

        CommitConflict if another writer was first. The number of a replace plan needs no commit: a replace plan decides
        nothing until it is committed, and one with a higher number takes its place.
        """
        reason = redact(invalid.reason)  # it stays in the table's history
        log.warning("plan %d of %s is cancelled: %s", plan.number, self.location, reason)
        if not plan.replace:
            note = f"{state.note(plan.number)} void: {reason}"
            self._commit(state, note, {MARK: plan.number, VOID: plan.number})

    def _commit(
        self, state: State, note: str, marks: Mapping[str, int], properties: Mapping[str, str] | None = None
    ) -> None:
        assert state.table is not None
        if not state.table.is_there:
            # delta-rs would create the folder of a dropped log again.
            raise CommitConflict("the table was dropped")
        commit_marks(state.table, marks, note, self._by_spark, properties)

    def summarize(self, state: State, facts: Mapping[str, Any]) -> None:
        """Write where the table stands into `watermark.json`. It is for people: no run reads it."""
        if state.table is None or state.mark is None:
            return
        summary = {
            "format_version": FORMAT,
            "version": state.table.version,
            "ledger": state.ledger,
            "batchId": state.mark - state.generation,
            "number": state.mark,
            "generation": state.generation,
            **facts,
            "updated": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        self.storage.write(SUMMARY, json.dumps(summary, indent=2).encode())

    def path_of(self, number: int) -> str:
        return f"{FOLDER}/{number}"

    def _check_properties(self, properties: Mapping[str, str]) -> None:
        """Refuse a table whose log cannot tell which plans are in it."""
        if RETENTION in properties:
            raise PenstockError(
                f"This table has the property `{RETENTION}`: when a mark expires, its batch could come in twice",
                where=self.location,
                fix=f"ALTER TABLE … UNSET TBLPROPERTIES ('{RETENTION}').",
            )
        if not properties.get(GENERATION, "").isdigit():
            raise PenstockError(
                "Another tool replaced this table after penstock's last commit",
                where=self.location,
                fix=_WAYS_OUT,
            )

    def check_claimable(self, state: State) -> None:
        """PenstockError if others made the table and it has rows: only an empty table can become ours."""
        if state.table is None or state.mark is not None:
            return
        if Table.open(self.location, self._options).statistics().rows != 0:
            raise PenstockError(
                "This table has rows that penstock did not write, so nobody knows which files they came from",
                where=self.location,
                fix=_WAYS_OUT,
            )
        if RETENTION in state.table.properties:
            self._check_properties(state.table.properties)

    def _log_edits(self, others: list[Commit]) -> None:
        new = [commit for commit in others if int(commit["version"]) > self._logged]
        for edit in edits(new):
            log.info("another writer has changed %s since our last commit: %s", self.location, edit)
        self._logged = max([self._logged, *(int(commit["version"]) for commit in new)])
