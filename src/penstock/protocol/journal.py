"""The journal of one table: its plans, in `_checkpoint/sources/`, and the commits that carry no data."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from deltalake.exceptions import CommitFailedError, DeltaError

from penstock.delta.commits import Commit, edits, foreign_commits
from penstock.delta.layout import RETENTION
from penstock.delta.table import MARK, VOID, Table
from penstock.errors import CommitConflict, NotFound, PenstockError, UnreadableTable
from penstock.lake.relations import LEDGER_FOLDER
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
        """What the headers of the plans say."""

    def decode(self, number: int, data: bytes, where: str) -> P_co:
        """The plan that these bytes hold; an error that names `where` if they hold none."""


@dataclass(frozen=True)
class Records:
    """The names in the journal's folder: plans, and compactions of them."""

    plans: frozenset[int]
    compactions: frozenset[int]

    @property
    def highest(self) -> int:
        """The highest number present; -1 where there is none."""
        return max([-1, *self.plans, *self.compactions])


class CommitBySpark(Protocol):
    """Commits without data, on tables that delta-rs can only read."""

    def __call__(
        self, known: Table, marks: Mapping[str, int], note: str, properties: Mapping[str, str] | None = None
    ) -> None: ...


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
        self._told = -1
        """The version up to which edits by others were logged."""
        self.storage = Storage(location, storage_options)

    def state(self, *, check: bool = True) -> State:
        """What the table's log says, without a JVM; no table is a first run, an unreadable one an error.

        Checked, it is an error also where others have taken rows of ours out of the table.
        """
        for _ in range(_LOOKS):
            try:
                return self._state(check)
            except UnreadableTable as error:
                # A table that is dropped while it is read looks broken, and then is not there.
                log.debug("%s is looked at again: %s", self.location, error)
        return self._state(check)

    def _state(self, check: bool) -> State:
        try:
            table = Table.open(self.location, self._options, files=False)
        except NotFound:
            return State(None, None, None, 0)
        properties, mark = table.properties, table.mark
        others: list[Commit] = []
        if check and mark is not None:
            others = foreign_commits(table)
            self._check_properties(properties)
            self._tell_edits(others)
        return State(table, mark, table.void, int(properties.get(GENERATION, 0)), properties.get(LEDGER), tuple(others))

    def unfinished(self, state: State, decoder: Decoder[P]) -> P | None:
        """The plan that an earlier process, or another one, has written and not committed; None when there is none."""
        if state.mark is not None:
            return self.plan(state.mark + 1, state, decoder)
        if state.table is not None:
            return None  # others made it, and a plan to make it is not to replace it
        # Where there is no table, what lies here is of an earlier life, unless it is a plan to begin this one.
        records = self.records()
        number = records.highest
        if number not in records.plans or number in records.compactions:
            return None
        where = join(self.location, self.path_of(number))
        try:
            data = self.storage.read(self.path_of(number))
        except NotFound:
            return None  # a drop has gone on meanwhile
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
        """The number of the next plan; of a refresh, one above every plan and every commit."""
        if state.mark is not None and not refresh:
            return state.mark + 1
        free = self.first_free(state)
        # Above any number that a writer of an earlier life may still come with, so that Delta refuses it.
        return free if state.mark is not None else max(free, int(time.time() * 1000))

    def plan(self, number: int, state: State, decoder: Decoder[P]) -> P | None:
        """The plan of a number; None only when there is none. One of another life of the table is an error."""
        path = self.path_of(number)
        where = join(self.location, path)
        try:
            data = self.storage.read(path)
        except NotFound:
            return None
        plan = decoder.decode(number, data, where)
        if not plan.replace:
            check_ledger(plan, state, where, "It was copied or put back here: move the file away")
        return plan

    def records(self) -> Records:
        plans: set[int] = set()
        compactions: set[int] = set()
        for entry in self.storage.list(FOLDER):
            # What is not named so is another's, or the leftover of a write that was cut short.
            if found := _NAME.fullmatch(entry.path.rsplit("/", 1)[-1]):
                (compactions if found.group(2) else plans).add(int(found.group(1)))
        return Records(frozenset(plans), frozenset(compactions))

    def first_free(self, state: State) -> int:
        """The first number above every plan present and every number committed."""
        return max(-1 if state.mark is None else state.mark, self.records().highest) + 1

    def claim(self, plan: P, state: State) -> None:
        """Make an empty table that others made ours: its properties and the mark, in one commit without data."""
        self._commit(plan.number, state, state.note(plan.number), {MARK: plan.number}, properties_of(plan))

    def commit_empty(self, number: int, state: State, *, note: str | None = None) -> None:
        """Use a number without data, on the version that the state was read from."""
        self._commit(number, state, note or state.note(number), {MARK: number})

    def cancel(self, plan: P, state: State, invalid: InvalidPlan) -> None:
        """Use up a plan's number by an empty commit, so that nobody can run the plan any more.

        CommitConflict if another writer was first. The number of a replace plan needs no commit: a replace plan decides
        nothing until it is committed, and one with a higher number takes its place.
        """
        reason = redact(invalid.reason)  # it stays in the table's history
        log.warning("plan %d of %s is cancelled: %s", plan.number, self.location, reason)
        if not plan.replace:
            note = f"{state.note(plan.number)} void: {reason}"
            self._commit(plan.number, state, note, {MARK: plan.number, VOID: plan.number})

    def _commit(
        self,
        number: int,
        state: State,
        note: str,
        marks: Mapping[str, int],
        properties: Mapping[str, str] | None = None,
    ) -> None:
        assert state.table is not None
        if not state.table.is_there:
            # A commit of delta-rs would make the folder of a log that was dropped anew.
            raise CommitConflict("the table was dropped")
        try:
            state.table.commit_marks(marks, note, properties)
        except DeltaError as error:
            if "Unsupported" in str(error) and self._by_spark is not None:
                # A clustered table, row tracking, …: delta-rs knows it for reading only.
                self._by_spark(state.table, marks, note, properties)
            elif isinstance(error, CommitFailedError) and "Unsupported" not in str(error):
                raise CommitConflict(str(error)) from error
            else:
                raise PenstockError(
                    f"Number {number} can't be committed to this table without data: {error}",
                    where=self.location,
                    fix="Put the file back as it was and run again, or run with --full-refresh.",
                ) from error

    def summarize(self, state: State, facts: Mapping[str, Any]) -> None:
        """Write down where the table stands, for people: no run reads it, and the next one writes it anew."""
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
        """Refuse a table whose log does not tell what is in it."""
        if RETENTION in properties:
            raise PenstockError(
                f"This table has `{RETENTION}`: an expired mark would let a batch in twice",
                where=self.location,
                fix=f"ALTER TABLE … UNSET TBLPROPERTIES ('{RETENTION}').",
            )
        if not properties.get(GENERATION, "").isdigit():
            raise PenstockError(
                "This table was replaced by something else since the last batch came in",
                where=self.location,
                fix=_WAYS_OUT,
            )

    def check_claimable(self, state: State) -> None:
        """A table that others made becomes ours only while it has no rows."""
        if state.table is None or state.mark is not None:
            return
        if Table.open(self.location, self._options).statistics().rows != 0:
            raise PenstockError(
                "This table has data that penstock did not bring in, so what is in it already can't be told",
                where=self.location,
                fix=_WAYS_OUT,
            )
        if RETENTION in state.table.properties:
            self._check_properties(state.table.properties)

    def _tell_edits(self, others: list[Commit]) -> None:
        new = [commit for commit in others if int(commit["version"]) > self._told]
        for edit in edits(new):
            log.info("%s was changed by another since the last batch: %s", self.location, edit)
        self._told = max([self._told, *(int(commit["version"]) for commit in new)])
