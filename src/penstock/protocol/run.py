"""The exactly-once protocol, from top to bottom: plan, write ahead, run, commit.

A plan is written, put-if-absent, before its data. The commit of the data carries the plan's number as a Delta
transaction mark. So the table's log says what is committed: a plan with a higher number is unfinished, and the next run
runs it as it stands. Nothing that matters happens after the commit.

After a commit conflict, a run waits and continues from the table's new state (`_Progress.wait`). A statement outside of
this protocol runs again (`spark/retry.py`).
"""

from __future__ import annotations

import random
import time
from typing import Generic

from penstock.errors import CommitConflict, PenstockError, StatementError
from penstock.protocol.job import Job
from penstock.protocol.journal import P
from penstock.protocol.plan import InvalidPlan, StartOver

_CONFLICTS_IN_A_ROW = 60
_CANCELLED_PLANS = 5
_STARTS_IN_A_ROW = 60


def run_job(job: Job[P], *, replace: bool = False) -> None:
    """Run a job until there is nothing left to do. With `replace` its first plan builds the table again."""
    progress = _Progress(job, replace)
    while True:
        plan = None
        try:
            plan = progress.unfinished() or progress.write_ahead()
            if plan is None:
                return
            progress.commit(plan)
        except CommitConflict as conflict:
            progress.wait(conflict)
        progress.read_state(plan)


class _Progress(Generic[P]):
    """How far a run has come."""

    def __init__(self, job: Job[P], replace: bool) -> None:
        self._job = job
        self._journal = job.journal
        self._refresh = replace
        """Whether the table is still to be replaced, as the user has asked."""
        self._state = self._journal.state(check=not replace)
        self._conflicts = 0
        """How many times in a row another writer was first."""
        self._cancelled = 0
        self._starts = 0
        """How many times in a row a plan had to start over, without a commit in between."""

    def unfinished(self) -> P | None:
        """The plan that an earlier run, or another one, has written and not committed. A refresh runs only its own."""
        if self._refresh:
            return None
        self._journal.check_claimable(self._state)
        return self._journal.unfinished(self._state, self._job)

    def write_ahead(self) -> P | None:
        """Makes the next plan and writes it to the journal; None if nothing is left to do.

        CommitConflict if another run wrote this number first.
        """
        plan = self._planned()
        if plan is None:
            return None
        self._job.check_commits()
        self._job.step("plan")
        if not self._journal.write_ahead(plan):
            raise CommitConflict(f"another run has planned {plan.number}")
        self._job.step("planned")
        return plan

    def _planned(self) -> P | None:
        while True:
            state, refresh = self._state, self._refresh
            self._job.catch_up(state, replace=refresh)
            plan = self._job.plan(self._journal.next_number(state, refresh=refresh), state, replace=refresh)
            if plan is None:
                return None
            prepared = self._job.prepare(plan, state)
            if not isinstance(prepared, StartOver):
                return prepared
            self._start_over(prepared)
            self._state = self._journal.state(check=not refresh)

    def _start_over(self, over: StartOver) -> None:
        """Count how often the run starts over; an error if it does not end."""
        self._starts += 1
        if self._starts >= _STARTS_IN_A_ROW:
            raise PenstockError(
                f"The next plan was made {self._starts} times and could not run, the last time because {over.reason}",
                where=self._journal.location,
                fix="Another run may change the table back: run one version of the model at a time.",
            )

    def commit(self, plan: P) -> None:
        """Write the data and commit it with the plan's number; or cancel a plan that can never run."""
        outcome = self._run(plan)
        if isinstance(outcome, InvalidPlan):
            self._cancel(plan, outcome)
        elif isinstance(outcome, StartOver):
            self._start_over(outcome)
        elif plan.replace:
            self._journal.write_again(plan)

    def _run(self, plan: P) -> InvalidPlan | StartOver | None:
        try:
            return self._job.run(plan, self._state)
        except PenstockError as error:
            conflict = isinstance(error, StatementError) and error.is_conflict
            # Delta has more ways to fail under another writer's commit than conflicts: the log decides.
            if not conflict and self._journal.state(check=False).mark == self._state.mark:
                raise
            raise CommitConflict(str(error)) from error

    def _cancel(self, plan: P, invalid: InvalidPlan) -> None:
        self._refresh = self._refresh or plan.replace
        self._cancelled += 1
        self._journal.cancel(plan, self._state, invalid)
        if self._cancelled >= _CANCELLED_PLANS:
            raise PenstockError(
                f"{self._cancelled} plans of this run could not run, the last because {invalid.reason}",
                where=self._journal.location,
                fix="Committed batches stay. Exclude the files that keep changing (`safety_buffer_seconds`, "
                "`source_exclude`), look for another deployment that writes this table, and run again.",
            )

    def read_state(self, plan: P | None) -> None:
        """Read what the log says now: where to continue, whatever has happened."""
        before, self._state = self._state, self._journal.state(check=not self._refresh)
        if self._state.mark != before.mark:
            self._conflicts = self._starts = 0
        if self._refresh and plan is not None and plan.replace and self._state.generation >= plan.number:
            # The refresh is committed: by this run, or by a refresh that was planned later.
            self._refresh, self._state = False, self._journal.state()

    def wait(self, conflict: CommitConflict) -> None:
        """Give the other writer time; an error after too many conflicts in a row."""
        self._conflicts += 1
        if self._conflicts > _CONFLICTS_IN_A_ROW:
            raise PenstockError(
                f"Other writers were first {self._conflicts} times in a row: {conflict}",
                where=self._journal.location,
                fix="Run again when the other writer has ended.",
            )
        time.sleep(min(0.05 * self._conflicts, 2.0) * random.uniform(0.5, 1.0))
