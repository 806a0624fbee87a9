"""The protocol from top to bottom, with a job that writes one row a plan through delta-rs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from penstock import PenstockError, connect
from penstock.delta.layout import Layout
from penstock.delta.table import MARK
from penstock.errors import CommitConflict, StatementError
from penstock.protocol import run as protocol
from penstock.protocol.job import Job
from penstock.protocol.plan import FORMAT, InvalidPlan, StartOver, new_ledger, properties_of
from penstock.protocol.report import Report
from penstock.protocol.run import run_job
from penstock.protocol.state import State
from penstock.sql.names import Name


@dataclass(frozen=True)
class RowPlan:
    number: int
    generation: int
    replace: bool
    ledger: str | None
    value: str

    def to_bytes(self) -> bytes:
        return json.dumps({"format_version": FORMAT, "kind": "rows", **vars(self)}).encode()


class RowJob(Job[RowPlan]):
    """Writes the given values, a plan and a row each."""

    kind = "rows"

    def __init__(self, root: Path, values: list[str]) -> None:
        spark: Any = SimpleNamespace(commit_marks=None, check_commits=lambda location: None)
        super().__init__(connect(str(root)), Name("s", "t"), spark, Layout(), Report(), warn=lambda text: None)
        self.values = values
        self.calls: list[str] = []
        self.before_run: Callable[[RowPlan], InvalidPlan | StartOver | None] = lambda plan: None
        self.prepared: Callable[[RowPlan], RowPlan | StartOver] = lambda plan: plan

    @property
    def rows(self) -> list[str]:
        return sorted(DeltaTable(self.location).to_pyarrow_table()["value"].to_pylist())

    def decode(self, number: int, data: bytes, where: str) -> RowPlan:
        read = json.loads(data)
        return RowPlan(**{key: read[key] for key in ("number", "generation", "replace", "ledger", "value")})

    def catch_up(self, state: State, *, replace: bool) -> None:
        self.calls.append("catch up")

    def plan(self, number: int, state: State, *, replace: bool) -> RowPlan | None:
        self.calls.append("plan")
        done = len(self.rows) if state.table is not None and not replace else 0
        if done >= len(self.values):
            return None
        made = replace or state.mark is None
        generation, ledger = (number, new_ledger()) if made else (state.generation, state.ledger)
        return RowPlan(number, generation, made, ledger, self.values[done])

    def prepare(self, plan: RowPlan, state: State) -> RowPlan | StartOver:
        self.calls.append("prepare")
        return self.prepared(plan)

    def run(self, plan: RowPlan, state: State) -> InvalidPlan | StartOver | None:
        self.calls.append("run")
        invalid = self.before_run(plan)
        if invalid is not None:
            return invalid
        row = pa.table({"value": [plan.value]})
        note = state.note(plan.number)
        if plan.replace:
            # Spark makes the table and fills it in one commit, which delta-rs can't.
            DeltaTable.create(
                self.location,
                schema=row.schema,
                mode="overwrite",
                configuration=properties_of(plan),
                commit_properties=CommitProperties(custom_metadata={"userMetadata": note}),
                raise_if_key_not_exists=False,
            )
        marks = CommitProperties(
            app_transactions=[Transaction(MARK, plan.number)], custom_metadata={"userMetadata": note}
        )
        write_deltalake(self.location, row, mode="append", commit_properties=marks)
        return None


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RowJob:
    monkeypatch.setattr(protocol.time, "sleep", lambda seconds: None)
    return RowJob(tmp_path, ["a", "b"])


def once(action: Callable[[RowPlan], Any]) -> Callable[[RowPlan], Any]:
    """The action at the first call, nothing afterwards."""
    called = []

    def call(plan: RowPlan) -> Any:
        if called:
            return None
        called.append(plan)
        return action(plan)

    return call


def fail(error: BaseException) -> Any:
    raise error


def test_every_plan_is_prepared_written_and_run_in_this_order(job: RowJob) -> None:
    run_job(job)
    assert job.rows == ["a", "b"]
    assert job.calls == ["catch up", "plan", "prepare", "run"] * 2 + ["catch up", "plan"]


def test_an_unfinished_plan_is_run_as_it_was_written(job: RowJob) -> None:
    job.before_run = once(lambda plan: fail(KeyboardInterrupt()) if plan.value == "a" else None)
    with pytest.raises(KeyboardInterrupt):
        run_job(job)
    job.calls.clear()
    job.values = ["x", "b"]  # another config does not change what is written
    run_job(job)
    assert job.rows == ["a", "b"]
    assert job.calls[:2] == ["run", "catch up"]


def test_an_error_while_a_plan_is_prepared_leaves_no_plan(job: RowJob) -> None:
    job.prepared = lambda plan: fail(PenstockError("the contract is broken"))
    with pytest.raises(PenstockError, match="contract"):
        run_job(job)
    assert job.journal.records().plans == frozenset()


def test_a_table_that_was_fitted_is_planned_again(job: RowJob) -> None:
    fitted = iter([StartOver("its columns were changed")] * 2)
    job.prepared = lambda plan: next(fitted, plan)
    run_job(job)
    assert job.rows == ["a", "b"]
    assert job.calls[:7] == ["catch up", "plan", "prepare"] * 2 + ["catch up"]


def test_a_table_that_never_fits_is_an_error(job: RowJob) -> None:
    job.prepared = lambda plan: StartOver("its columns were changed")
    with pytest.raises(PenstockError, match=r"60 times .* because its columns were changed"):
        run_job(job)


def test_a_written_plan_that_starts_over_runs_on_the_new_state(job: RowJob) -> None:
    job.before_run = once(lambda plan: StartOver("its columns were changed"))
    run_job(job)
    assert job.rows == ["a", "b"]
    assert job.calls[:6] == ["catch up", "plan", "prepare", "run", "run", "catch up"]


def test_a_written_plan_that_starts_over_for_ever_is_an_error(job: RowJob) -> None:
    job.before_run = lambda plan: StartOver("its columns were changed")
    with pytest.raises(PenstockError, match=r"60 times .* because its columns were changed"):
        run_job(job)


def test_after_a_conflict_the_same_plan_runs_again(job: RowJob) -> None:
    job.before_run = once(lambda plan: fail(CommitConflict("another writer")))
    run_job(job)
    assert job.rows == ["a", "b"]
    assert job.calls.count("run") == 3
    assert job.calls.count("prepare") == 2


def test_a_failure_of_delta_under_the_commit_of_another_is_a_conflict(job: RowJob) -> None:
    """Delta has more ways to fail then than conflicts: the mark in the log decides."""
    run_job(job)
    job.values = ["a", "b", "c"]

    def other(plan: RowPlan) -> None:
        rival = RowJob(Path(job.lake.root), job.values)
        rival.run(plan, rival.journal.state())
        raise StatementError("[DELTA_ODD] …", condition="DELTA_ODD")

    job.before_run = once(other)
    run_job(job)
    assert job.rows == ["a", "b", "c"]


def test_a_failure_without_another_commit_is_raised(job: RowJob) -> None:
    job.before_run = lambda plan: fail(StatementError("[DELTA_ODD] …", condition="DELTA_ODD"))
    with pytest.raises(StatementError, match="DELTA_ODD"):
        run_job(job)


def test_an_invalid_plan_is_cancelled_for_good(job: RowJob) -> None:
    job.before_run = once(lambda plan: None)
    run_job(job)
    job.values = ["a", "b", "c"]
    job.before_run = once(lambda plan: InvalidPlan("a file is gone"))
    run_job(job)
    assert job.rows == ["a", "b", "c"]
    (void,) = [commit for commit in DeltaTable(job.location).history() if "void" in commit.get("userMetadata", "")]
    assert void["userMetadata"].endswith("void: a file is gone")


def test_five_invalid_plans_end_the_run(job: RowJob) -> None:
    run_job(job)
    job.values = ["a", "b", "c"]
    job.before_run = lambda plan: InvalidPlan("a file keeps growing")
    with pytest.raises(PenstockError, match="5 plans of this run could not run, the last because a file keeps growing"):
        run_job(job)


def test_other_writers_may_be_first_sixty_times(job: RowJob) -> None:
    job.before_run = lambda plan: fail(CommitConflict("another writer"))
    with pytest.raises(
        PenstockError, match=r"Other writers were first 61 times in a row.*Run again when the other writer has ended"
    ):
        run_job(job)


def test_a_refresh_begins_a_new_ledger_and_runs_no_plan_of_others(job: RowJob) -> None:
    run_job(job)
    before = job.journal.state()
    job.journal.write_ahead(RowPlan(before.mark + 1, before.generation, False, before.ledger, "left over"))
    job.values = ["x"]
    run_job(job, replace=True)
    assert job.rows == ["x"]
    assert job.journal.state().mark > before.mark + 1


def test_a_table_of_others_with_rows_is_refused(job: RowJob) -> None:
    write_deltalake(job.location, pa.table({"value": ["of another"]}))
    with pytest.raises(PenstockError, match="rows that penstock did not write"):
        run_job(job)
    assert job.rows == ["of another"]
