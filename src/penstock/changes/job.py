"""Row changes of tables into a table: the job of a `cdf_merge` model."""

from __future__ import annotations

from collections.abc import Callable

from penstock.changes.config import ChangeSource
from penstock.changes.error_messages import Explainer
from penstock.changes.incremental.classify import classify
from penstock.changes.incremental.way import name_of
from penstock.changes.ledger import ChangeLedger
from penstock.changes.plan import KIND, ChangePlan
from penstock.changes.plan_run import PlanRun
from penstock.changes.planning import Planner
from penstock.changes.preparation import Preparation, PreparedPlan
from penstock.changes.query import ChangeQuery
from penstock.changes.report import Merged, MergeReport
from penstock.changes.source import FollowedSources
from penstock.changes.version_range import Gap
from penstock.delta.layout import Layout
from penstock.errors import CommitConflict, PenstockError, StatementError
from penstock.lake.folder import LakeFolder
from penstock.protocol.job import Contract, Job
from penstock.protocol.plan import InvalidPlan, StartOver
from penstock.protocol.run import run_job
from penstock.protocol.state import State
from penstock.protocol.target import replaces
from penstock.secrets import logger
from penstock.spark.backend import Backend
from penstock.sql.names import Name
from penstock.steps import Step, no_step

log = logger("penstock.changes")

_COLUMNS_CHANGED = StartOver("the table's columns were changed to fit the model")


def merge_changes(
    lake: LakeFolder,
    name: Name,
    source: ChangeSource,
    select: str,
    *,
    runner: Backend,
    full_refresh: bool = False,
    table: Layout | None = None,
    on_range: Callable[[Merged], None] | None = None,
    warn: Callable[[str], None] = log.warning,
    contract: Contract | None = None,
    step: Step = no_step,
) -> MergeReport:
    """Bring a table to its model's result at the sources' current versions. No Spark starts if no row has changed.

    Each version range is one atomic commit. `on_range` is called after each, `contract` with the model's query before
    its rows are written.
    """
    anew = replaces(lake, name, full_refresh=full_refresh)
    layout = table or Layout()
    job = ChangeJob(
        lake, name, source, select, runner, layout, on_range=on_range, warn=warn, contract=contract, step=step
    )
    try:
        run_job(job, replace=anew)
    finally:
        job.close()
    return job.report


class ChangeJob(Job[ChangePlan]):
    """Brings the row changes of its sources into one table: a plan is a range of versions of each source."""

    kind = KIND
    report: MergeReport

    def __init__(
        self,
        lake: LakeFolder,
        name: Name,
        source: ChangeSource,
        select: str,
        spark: Backend,
        layout: Layout,
        *,
        on_range: Callable[[Merged], None] | None = None,
        warn: Callable[[str], None] = log.warning,
        contract: Contract | None = None,
        step: Step = no_step,
    ) -> None:
        self.query = ChangeQuery.read(lake, select, name)
        self._way = classify(self.query, source.unique_key, str(name))
        report = MergeReport(way=name_of(self._way))
        super().__init__(lake, name, spark, layout, report, warn=warn, contract=contract, step=step)
        self._on_range = on_range or (lambda merged: log.info("%s: %s", name, merged))
        self._sources = FollowedSources(lake, source, self.query, str(name))
        self._ledger = ChangeLedger(self.journal)
        self._planner = Planner(lake, name, source, self.query, self._sources, self._ledger, self.warn)
        self._preparation = Preparation(self, source, self.query, self._sources)
        self._explainer = Explainer(name, source.unique_key, self._sources)
        self._prepared: PreparedPlan | None = None
        """The plan that was prepared last, until it has run."""
        self._last_run: PlanRun | None = None
        """The plan that ran last, until its outcome is reported."""

    # The protocol: catch up, plan, prepare, run

    def decode(self, number: int, data: bytes, where: str) -> ChangePlan:
        return ChangePlan.from_bytes(number, data, where)

    def catch_up(self, state: State, *, replace: bool) -> None:
        self.report.version = None if state.table is None else state.table.version
        last, self._last_run = self._last_run, None
        metrics = None if last is None else last.outcome(state)
        if last is None or metrics is None:
            return
        if (merged := last.merged(metrics)) is not None:
            self.report.ranges.append(merged)
            self._on_range(merged)
        self.step("summary")
        self.journal.summarize(state, {"sources": {versions.name: versions.end for versions in last.plan.ranges}})
        self._ledger.forget_old_plans(state)

    def plan(self, number: int, state: State, *, replace: bool) -> ChangePlan | None:
        return self._planner.plan(number, state, self._way, replace=replace)

    def prepare(self, plan: ChangePlan, state: State) -> ChangePlan | StartOver:
        if plan.is_empty:
            return plan
        try:
            return plan if self._prepare(plan, state) else _COLUMNS_CHANGED
        except PenstockError as error:
            if plan.replace:
                raise self._explained(error, plan) from error
            reason = self._why_invalid(error, plan)
            log.info("%s is planned again: %s", self.name, reason)
            return StartOver(reason)

    def run(self, plan: ChangePlan, state: State) -> InvalidPlan | StartOver | None:
        if (plan.replace or plan.whole) and plan.model != self.query.digest:
            # An earlier run left it. It would record the table as built by the new SQL.
            self._sources.forget()
            return InvalidPlan("the model's SQL has changed since it was planned")
        self._last_run = run = PlanRun(self, self._explainer, plan, state)
        if plan.is_empty:
            run.commit_empty()
            return None
        try:
            with self.spark.tagged(run.note):
                prepared = self._prepare(plan, state)
                if prepared is None:
                    return _COLUMNS_CHANGED
                run.write(prepared)
        except PenstockError as error:
            return InvalidPlan(self._why_invalid(error, plan))
        finally:
            self.close()
        self.step("committed")
        return None

    def close(self) -> None:
        """Drop the views of the plan that was prepared last."""
        if self._prepared is not None:
            self._prepared.close()
            self._prepared = None

    # Prepared plans

    def _prepare(self, plan: ChangePlan, state: State) -> PreparedPlan | None:
        """The plan, ready to run: as prepared before it was written, or prepared now if an earlier run has left it.

        None if the table was changed to fit the model's columns.
        """
        if self._prepared is not None and self._prepared.is_of(plan, state):
            return self._prepared
        self.close()
        with self.spark.tagged(state.note(plan.number)):
            self._prepared = self._preparation.prepare(plan, state)
        if self._prepared is None:
            self._planner.repeat(plan)
        else:
            self._way = self._prepared.way
            self.report.way = name_of(self._way)
        return self._prepared

    # Failures

    def _why_invalid(self, error: PenstockError, plan: ChangePlan) -> str:
        """The reason to cancel the plan, if another plan may succeed. If none can, raises the error, explained."""
        if isinstance(error, StatementError) and error.is_conflict:
            raise CommitConflict(str(error)) from error
        if isinstance(error, StatementError) and error.is_cancelled:
            raise error
        problem = self._explained(error, plan)
        if isinstance(problem, Gap) and plan.replace:
            # A version that an interrupted run has pinned is gone: the next plan takes the newest version.
            self._sources.forget()
            return problem.what
        if isinstance(problem, Gap):
            if not self._planner.rebuild_after(problem):
                raise problem
            return problem.what
        if not self._planner.skip_ahead(plan):
            raise problem from error
        return str(problem)

    def _explained(self, error: PenstockError, plan: ChangePlan) -> PenstockError:
        return self._explainer.explained(error, plan, self._prepared.misfits if self._prepared is not None else ())
