"""The exactly-once protocol: plans, marks, generations. Files, changes and windows all run on it.

A plan is written, put-if-absent, before its data; the data's commit carries the plan's number as a Delta transaction
mark. What a table's log says is committed, is; a plan above that is unfinished; nothing that matters comes after.
"""

from __future__ import annotations

import json
import logging
import random
import re
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from deltalake.exceptions import CommitFailedError, DeltaError

from penstock.errors import NotFound, PenstockError, StatementError
from penstock.layout import RETENTION
from penstock.relations import LEDGER_FOLDER
from penstock.storage import Storage, join
from penstock.table import MARK, VOID, Table
from penstock.written import Written

log = logging.getLogger("penstock.journal")

FORMAT = 1
GENERATION = "penstock.generation"
"""The table property that names the number of the plan which made, or last replaced, the table."""
FOLDER = f"{LEDGER_FOLDER}/sources"
SUMMARY = f"{LEDGER_FOLDER}/watermark.json"
OURS = "penstock "
"""How the note in our commits begins: what stands above the newest of them in the log, others did."""

_NAME = re.compile(r"(\d+)(\.parquet)?$")
_PATIENCE = 60
_WAYS_OUT = "Run with --full-refresh to load it anew, or name another table."
_EDITS = {"DELETE", "UPDATE", "MERGE", "TRUNCATE"}
_WRITES = {"WRITE", "STREAMING UPDATE", "COPY INTO"}
# What lost against another writer has committed nothing; the log says where to go on.
_LOST = (
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "DELTA_PROTOCOL_CHANGED",
)
_LOOK_BACK = 50


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


@dataclass(frozen=True)
class State:
    """Where a table stands, all of it read from one version of its log."""

    table: Table | None
    mark: int | None
    """The last number committed; None before the first."""
    void: int | None
    """The last number that was given up; the plan after it says so too, for good."""
    generation: int
    """The number at which the ledger begins."""

    @property
    def next(self) -> int:
        return 0 if self.mark is None else self.mark + 1

    @property
    def last_is_void(self) -> bool:
        return self.mark is not None and self.void == self.mark


class Plan(Protocol):
    """What the journal must know of a plan."""

    @property
    def number(self) -> int: ...
    @property
    def replace(self) -> bool: ...
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


def note_of(plan: Plan | str) -> str:
    """A note for a commit of ours, such as no other carries."""
    return f"{OURS}{plan if isinstance(plan, str) else plan.number} {uuid.uuid4()}"


def check_header(header: Mapping[str, Any], number: int, kind: str, where: str) -> None:
    """Refuse a plan of another kind, of a later format, or under another's number."""
    if header["format_version"] != FORMAT:
        raise PenstockError(
            f"This plan has format {header['format_version']}, and only {FORMAT} is known here",
            where=where,
            fix="Upgrade dbt-penstock.",
        )
    if header["kind"] != kind:
        raise PenstockError(
            f"This table's ledger is one of {header['kind']}, not of {kind}",
            where=where,
            fix="Run once with --full-refresh, or name another table.",
        )
    if header["number"] != number:
        raise ValueError(f"it says that it is plan {header['number']}")


class Work(Protocol[P]):
    """What files, changes and windows bring: how to plan, how to run a plan, how to read one back."""

    def propose(self, number: int, state: State, *, replace: bool) -> P | None:
        """The next plan; None when there is nothing to do."""

    def run(self, plan: P, state: State) -> None:
        """Write the data with the plan's number as its mark; `Lost` and `Unrunnable` say why that did not happen."""

    def decode(self, number: int, data: bytes, where: str) -> P:
        """A plan that an earlier process, or another one, has written."""


@dataclass(frozen=True)
class Records:
    """The names in the journal's folder: plans, and compactions of them."""

    plans: frozenset[int]
    compactions: frozenset[int]


class Journal(Generic[P]):
    """The plans of one table, in `_checkpoint/sources/` beside its `_delta_log/`."""

    def __init__(
        self,
        location: str,
        storage_options: dict[str, str] | None = None,
        by_spark: Callable[[Table, Mapping[str, int]], None] | None = None,
    ) -> None:
        """`by_spark` commits marks where delta-rs can't."""
        self.location = location
        self._by_spark = by_spark
        self._options = storage_options
        self.storage = Storage(location, storage_options)

    def state(self) -> State:
        """What the table's log says, without a JVM; no table is a first run, an unreadable one an error."""
        try:
            table = Table.open(self.location, self._options, files=False)
        except NotFound:
            return State(None, None, None, 0)
        return State(table, table.mark, table.void, int(table.properties.get(GENERATION, 0)))

    def drive(self, work: Work[P], *, replace: bool = False, step: Step = no_step) -> None:
        """Plan, write ahead, run, read the mark again; until there is nothing left to do."""
        state = self.state()
        if not replace:
            self.check(state)
        floor = self.first_free(state) if replace else 0
        lost = 0
        while True:
            number = max(state.next, floor)
            try:
                plan = self.plan(number, work)
                if plan is None:
                    plan = work.propose(number, state, replace=replace and number == floor)
                    if plan is None:
                        return
                    step("plan")
                    if not self.storage.write_new(self.path_of(number), plan.to_bytes()):
                        floor = self.first_free(state) if replace and number == floor else floor
                        raise Lost(f"another run has planned {number}")
                    step("planned")
                try:
                    self._run(work, plan, state)
                except Unrunnable as reason:
                    log.warning("plan %d of %s is given up: %s", plan.number, self.location, reason)
                    if plan.replace:
                        # Its number decides nothing while it is not committed: a plan above it takes its place.
                        replace, floor = True, self.first_free(state)
                    else:
                        self.void(plan, state, str(reason))
            except Lost as error:
                lost = self._patiently(lost + 1, error)
            before, state = state, self.state()
            lost = 0 if state.mark != before.mark else lost

    def _run(self, work: Work[P], plan: P, state: State) -> None:
        try:
            work.run(plan, state)
        except PenstockError as error:
            conflict = isinstance(error, StatementError) and lost_a_race(error.condition)
            # Delta has more ways to fail under another's commit than conflicts: what the log says, counts.
            if not conflict and self.state().mark == state.mark:
                raise
            raise Lost(str(error)) from error

    def plan(self, number: int, work: Work[P]) -> P | None:
        """The plan of a number; None only when there is none."""
        path = self.path_of(number)
        try:
            data = self.storage.read(path)
        except NotFound:
            return None
        return work.decode(number, data, join(self.location, path))

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
        records = self.records()
        return max([state.next - 1, *records.plans, *records.compactions]) + 1

    def void(self, plan: P, state: State, reason: str) -> None:
        """Give a plan up: its number is used by a commit without data, so that nobody can run it any more."""
        self.commit_empty(plan.number, state, void=True, note=f"{OURS}{plan.number} void: {reason}")

    def commit_empty(self, number: int, state: State, *, void: bool = False, note: str | None = None) -> None:
        """Use a number without data, on the handle that the state was read from."""
        assert state.table is not None
        try:
            state.table.commit_mark(number, void=void, note=note or f"{OURS}{number}")
        except DeltaError as error:
            if "Unsupported" in str(error) and self._by_spark is not None:
                # A clustered table, row tracking, …: delta-rs knows it for reading only.
                self._by_spark(state.table, {MARK: number, VOID: number} if void else {MARK: number})
            elif isinstance(error, CommitFailedError) and "Unsupported" not in str(error):
                raise Lost(str(error)) from error
            else:
                raise PenstockError(
                    f"Plan {number} can't be given up on this table: {error}",
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
            "batchId": state.mark - state.generation,
            "number": state.mark,
            "generation": state.generation,
            **facts,
            "updated": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        self.storage.write(SUMMARY, json.dumps(summary, indent=2).encode())

    def path_of(self, number: int) -> str:
        return f"{FOLDER}/{number}"

    def check(self, state: State) -> None:
        """Refuse a table whose log does not tell what is in it."""
        table = state.table
        if table is None:
            return
        if RETENTION in table.properties:
            raise PenstockError(
                f"This table has `{RETENTION}`: an expired mark would let a batch in twice",
                where=self.location,
                fix=f"ALTER TABLE … UNSET TBLPROPERTIES ('{RETENTION}').",
            )
        if state.mark is None:
            if Table.open(self.location, self._options).statistics().files:
                raise PenstockError(
                    "This table has data that penstock did not bring in, so what is in it already can't be told",
                    where=self.location,
                    fix=_WAYS_OUT,
                )
            return
        if GENERATION not in table.properties:
            raise PenstockError(
                "This table was replaced by something else since the last batch came in",
                where=self.location,
                fix=_WAYS_OUT,
            )
        self._check_others(table)

    def _check_others(self, table: Table) -> None:
        """What others did since our newest commit: a RESTORE that took rows of ours is an error."""
        ours, others = _split(table.history(_LOOK_BACK))
        if ours is None:
            ours, others = _split(table.history())
        restored = next((commit for commit in others if commit.get("operation") == "RESTORE"), None)
        if restored is not None:
            version = (restored.get("operationParameters") or {}).get("version")
            if ours is None or version is None or int(version) < int(ours["version"]):
                raise PenstockError(
                    f"This table was restored to an older version (by its commit {restored['version']}) after our "
                    "last batch, so rows of batches that count as done are gone",
                    where=self.location,
                    fix=f"RESTORE it to version {int(restored['version']) - 1} to undo that, or run with --full-refresh.",
                )
        for edit in _edits(others, _EDITS):
            log.info("%s was changed by another since the last batch: %s", self.location, edit)

    def edits_by_others(self, table: Table) -> list[str]:
        """How others changed or added rows since our newest commit, oldest first."""
        return _edits(_split(table.history(_LOOK_BACK))[1], _EDITS | _WRITES)

    def _patiently(self, times: int, error: Lost) -> int:
        if times > _PATIENCE:
            raise PenstockError(f"Other writers were first {times} times in a row: {error}", where=self.location)
        time.sleep(min(0.05 * times, 2.0) * random.uniform(0.5, 1.0))
        return times


def _edits(others: list[dict[str, Any]], operations: set[str]) -> list[str]:
    return [
        f"{commit['operation']} (version {commit['version']})"
        for commit in reversed(others)
        if commit.get("operation") in operations
    ]


def _split(history: list[dict[str, Any]]) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Our newest commit, and the commits above it."""
    for index, commit in enumerate(history):
        if str(commit.get("userMetadata") or "").startswith(OURS):
            return commit, history[:index]
    return None, history
