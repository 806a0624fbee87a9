"""The exactly-once protocol: plans, marks, generations. Files, changes and windows all run on it.

A plan is written, put-if-absent, before its data; the data's commit carries the plan's number as a Delta transaction
mark. What a table's log says is committed, is; a plan above that is unfinished; nothing that matters comes after.

Plans and other records belong to one life of one table, its *ledger*: a uuid that the plan which makes the table draws,
and that stands in the table's properties by the same commit. A record of another ledger is neither run nor read.
"""

from __future__ import annotations

import json
import random
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from deltalake.exceptions import CommitFailedError, DeltaError

from penstock.delta.commit_metrics import Written
from penstock.delta.commits import Commit, edits, foreign_commits, note_of
from penstock.delta.layout import RETENTION
from penstock.delta.table import MARK, VOID, Table
from penstock.errors import NotFound, PenstockError, StatementError, UnreadableTable
from penstock.lake.relations import LEDGER_FOLDER
from penstock.secrets import logger, redact
from penstock.storage import Storage, join

log = logger("penstock.journal")

FORMAT = 2
READABLE = (1, 2)
"""The formats of plans and compactions that are read; 1, of 0.1.0, knows no ledger."""
GENERATION = "penstock.generation"
"""The table property that names the number of the plan which made, or last replaced, the table."""
LEDGER = "penstock.ledger"
"""The table property that names the table's life; tables of 0.1.0 have none until they are refreshed."""
FOLDER = f"{LEDGER_FOLDER}/sources"
SUMMARY = f"{LEDGER_FOLDER}/watermark.json"

_NAME = re.compile(r"(\d+)(\.parquet)?$")
_PATIENCE = 60
_CANCELLED_AT_MOST = 5
_LOOKS = 2
_WAYS_OUT = "Run with --full-refresh to load it anew, or name another table."
# What lost against another writer has committed nothing; the log says where to go on.
_LOST = (
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
)


Step = Callable[[str], None]
"""Called with the name of each step as it begins: how the fault tests find the moment to kill."""


def no_step(name: str) -> None:
    pass


class Lost(Exception):
    """Another writer was first: nothing was committed, and the log says where to go on."""


class Unrunnable(Exception):
    """A plan that can't run as it was written; the reason is for people."""


def lost_a_race(condition: str | None) -> bool:
    return (condition or "").startswith(_LOST)


def new_ledger() -> str:
    """The identity of a table's life, drawn by the plan that makes it."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class State:
    """Where a table stands, all of it read from one version of its log."""

    table: Table | None
    mark: int | None
    """The last number committed; None before the first."""
    void: int | None
    """The last number that was cancelled; the plan after it says so too, for good."""
    generation: int
    """The number at which the ledger begins."""
    ledger: str | None = None
    """The table's life; None for tables of 0.1.0, and where there is no table."""
    others: tuple[Commit, ...] = field(default=(), compare=False)
    """Commits of others since the version that our newest commit was built on, newest first."""

    @property
    def version(self) -> int:
        """The version that all of this was read at; -1 where there is no table."""
        return -1 if self.table is None else self.table.version

    @property
    def last_is_void(self) -> bool:
        return self.mark is not None and self.void == self.mark

    def note(self, what: object) -> str:
        """A note for one commit of ours that is built on this state."""
        return note_of(what, self.version)


class Plan(Protocol):
    """What the journal must know of a plan."""

    @property
    def number(self) -> int: ...
    @property
    def replace(self) -> bool: ...
    @property
    def ledger(self) -> str | None: ...
    def to_bytes(self) -> bytes: ...


P = TypeVar("P", bound=Plan)


@dataclass(frozen=True)
class Running(Generic[P]):
    """A plan that was run, and whose outcome the log will tell."""

    plan: P
    note: str = ""
    """What its commit carries; nothing where it writes no rows."""
    began: float = field(default_factory=time.monotonic)

    def outcome(self, state: State) -> Written | None:
        """What its commit did; None where it was not the one that brought the plan in."""
        return None if state.table is None or not self.note else Written.noted(state.table, self.note)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


def properties_of(plan: Plan) -> dict[str, str]:
    """The table properties that the commit of a replace plan sets."""
    return {GENERATION: str(plan.number)} | ({} if plan.ledger is None else {LEDGER: plan.ledger})


def check_header(header: Mapping[str, Any], number: int, kind: str, where: str) -> None:
    """Refuse a plan of another kind, of a later format, or under another's number."""
    check_format(header, where)
    if header["kind"] != kind:
        raise PenstockError(
            f"This table's ledger is one of {header['kind']}, not of {kind}",
            where=where,
            fix="Run once with --full-refresh, or name another table.",
        )
    if header["number"] != number:
        raise ValueError(f"it says that it is plan {header['number']}")


def check_format(header: Mapping[str, Any], where: str) -> None:
    if header["format_version"] not in READABLE:
        raise PenstockError(
            f"This record has format {header['format_version']}, and only {FORMAT} and below are known here",
            where=where,
            fix="Upgrade dbt-penstock.",
        )


def check_ledger(plan: Plan, state: State, where: str, fix: str = "Put the right file back from a backup") -> None:
    """Refuse a plan that belongs to another life of the table."""
    if plan.ledger != state.ledger:
        raise PenstockError(
            f"Plan {plan.number} is of another life of this table ({plan.ledger}, not {state.ledger})",
            where=where,
            fix=f"{fix}, or run with --full-refresh.",
        )


class Work(Protocol[P]):
    """What files, changes and windows bring: how to plan, how to run a plan, how to read one back."""

    @property
    def kind(self) -> str:
        """What the headers of its plans say."""

    def propose(self, number: int, state: State, *, replace: bool) -> P | None:
        """The next plan; None when there is nothing to do. Where the table has no mark it is a replace plan."""

    def run(self, plan: P, state: State) -> None:
        """Write the data with the plan's number as its mark; `Lost` and `Unrunnable` say why that did not happen."""

    def decode(self, number: int, data: bytes, where: str) -> P:
        """A plan that an earlier process, or another one, has written."""


@dataclass(frozen=True)
class Records:
    """The names in the journal's folder: plans, and compactions of them."""

    plans: frozenset[int]
    compactions: frozenset[int]

    @property
    def highest(self) -> int:
        """The highest number present; -1 where there is none."""
        return max([-1, *self.plans, *self.compactions])


class BySpark(Protocol):
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
        by_spark: BySpark | None = None,
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

    def drive(self, work: Work[P], *, replace: bool = False, step: Step = no_step) -> None:
        """Plan, write ahead, run, read the mark again; until there is nothing left to do."""
        refresh, conflicts, cancelled = replace, 0, 0
        state = self.state(check=not refresh)
        while True:
            plan: P | None = None
            if not refresh:
                self._check_claimable(state)
            try:
                plan = (None if refresh else self.unfinished(state, work)) or self._plan(work, state, refresh, step)
                if plan is None:
                    return
                self._run(work, plan, state)
                if plan.replace:
                    # A drop at the same time may have taken the plan away, and the table is made all the same.
                    self.storage.write_new(self.path_of(plan.number), plan.to_bytes())
            except Unrunnable as reason:
                assert plan is not None
                refresh = refresh or plan.replace
                cancelled += 1
                conflicts = self._cancel(plan, state, str(reason), cancelled, conflicts)
            except Lost as error:
                conflicts = self._patiently(conflicts + 1, error)
            before, state = state, self.state(check=not refresh)
            conflicts = 0 if state.mark != before.mark else conflicts
            if refresh and plan is not None and plan.replace and state.generation >= plan.number:
                # The refresh that was asked for is in: by us, or by one that was planned after it.
                refresh, state = False, self.state()

    def unfinished(self, state: State, work: Work[P]) -> P | None:
        """The plan that an earlier process, or another one, has written and not committed; None when there is none."""
        if state.mark is not None:
            return self.plan(state.mark + 1, state, work)
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
        if _header(data, where).get("kind") != work.kind:
            return None
        plan = work.decode(number, data, where)
        return plan if plan.replace else None

    def _plan(self, work: Work[P], state: State, refresh: bool, step: Step) -> P | None:
        """Propose the next plan, and write it down; None when there is nothing to do."""
        number = self._next_number(state, refresh)
        plan = work.propose(number, state, replace=refresh)
        if plan is None:
            return None
        step("plan")
        if not self.storage.write_new(self.path_of(number), plan.to_bytes()):
            raise Lost(f"another run has planned {number}")
        step("planned")
        return plan

    def _next_number(self, state: State, refresh: bool) -> int:
        if state.mark is not None and not refresh:
            return state.mark + 1
        free = self.first_free(state)
        # Above any number that a writer of an earlier life may still come with, so that Delta refuses it.
        return free if state.mark is not None else max(free, int(time.time() * 1000))

    def _run(self, work: Work[P], plan: P, state: State) -> None:
        try:
            work.run(plan, state)
        except PenstockError as error:
            conflict = isinstance(error, StatementError) and lost_a_race(error.condition)
            # Delta has more ways to fail under another's commit than conflicts: what the log says, counts.
            if not conflict and self.state(check=False).mark == state.mark:
                raise
            raise Lost(str(error)) from error

    def plan(self, number: int, state: State, work: Work[P]) -> P | None:
        """The plan of a number; None only when there is none. One of another life of the table is an error."""
        path = self.path_of(number)
        where = join(self.location, path)
        try:
            data = self.storage.read(path)
        except NotFound:
            return None
        plan = work.decode(number, data, where)
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

    def _cancel(self, plan: P, state: State, reason: str, times: int, conflicts: int) -> int:
        """Use a plan's number in an empty commit, so that nobody can run it any more; not without end."""
        reason = redact(reason)  # it stays in the table's history
        log.warning("plan %d of %s is cancelled: %s", plan.number, self.location, reason)
        if not plan.replace:
            # The number of a replace plan decides nothing while it is not committed: one above it takes its place.
            note = f"{state.note(plan.number)} void: {reason}"
            try:
                self._commit(plan.number, state, note, {MARK: plan.number, VOID: plan.number})
            except Lost as error:
                return self._patiently(conflicts + 1, error)
        if times >= _CANCELLED_AT_MOST:
            raise PenstockError(
                f"{times} plans in one run could not be run, the last because {reason}",
                where=self.location,
                fix="What was committed stays. Leave out what keeps changing (`safety_buffer_seconds`, "
                "`source_exclude`), look for another deployment that writes this table, and run again.",
            )
        return conflicts

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
            raise Lost("the table was dropped")
        try:
            state.table.commit_marks(marks, note, properties)
        except DeltaError as error:
            if "Unsupported" in str(error) and self._by_spark is not None:
                # A clustered table, row tracking, …: delta-rs knows it for reading only.
                self._by_spark(state.table, marks, note, properties)
            elif isinstance(error, CommitFailedError) and "Unsupported" not in str(error):
                raise Lost(str(error)) from error
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

    def _check_claimable(self, state: State) -> None:
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

    def _patiently(self, times: int, error: Lost) -> int:
        if times > _PATIENCE:
            raise PenstockError(f"Other writers were first {times} times in a row: {error}", where=self.location)
        time.sleep(min(0.05 * times, 2.0) * random.uniform(0.5, 1.0))
        return times


def _header(data: bytes, where: str) -> dict[str, Any]:
    """The header of a plan of any kind: the first value of its JSON."""
    try:
        header, _ = json.JSONDecoder().raw_decode(data.decode())
        return dict(header)
    except (ValueError, TypeError) as error:
        raise PenstockError(
            f"This plan can't be read: {error}",
            where=where,
            fix="Its batch is not in the table: move the file away, and the files are planned anew.",
        ) from error
