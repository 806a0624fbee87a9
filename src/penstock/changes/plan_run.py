"""Runs one plan: builds the table, or merges the changes into it, in one commit."""

from __future__ import annotations

from dataclasses import replace

from penstock.changes.error_messages import Explainer, is_of_values
from penstock.changes.incremental.model_change import ModelChange
from penstock.changes.incremental.way import Keys, Whole
from penstock.changes.plan import ChangePlan
from penstock.changes.preparation import PreparedPlan
from penstock.changes.report import Merged
from penstock.delta.commit_metrics import CommitMetrics
from penstock.errors import StatementError
from penstock.protocol.job import Job, Running
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.spark import key_checks
from penstock.spark.keyed_rows import KeyedRows
from penstock.spark.merge import (
    DELETION_VECTORS,
    DeletionVectorMerge,
    file_size,
    measure,
    merge_by_statement,
    takes_deletion_vectors,
)

log = logger("penstock.changes")

_LENGTH_OF_CAUSE = 300


class PlanRun:
    """One plan while it runs, and afterwards until its outcome is reported."""

    def __init__(self, job: Job[ChangePlan], explainer: Explainer, plan: ChangePlan, state: State) -> None:
        self._job = job
        self._explainer = explainer
        self._state = state
        self.plan = plan
        self.note = state.note(plan.number)
        self._running = Running(plan, self.note)
        self._why_whole = ""

    def outcome(self, state: State) -> CommitMetrics | None:
        """The metrics of the commit, from the table's log; None if this run has not committed the plan."""
        return None if state.last_is_void else self._running.outcome(state)

    def merged(self, metrics: CommitMetrics) -> Merged | None:
        """The entry of the report; None if no row of a source or of the table has changed."""
        rows = (metrics.rows_inserted, metrics.rows_updated, metrics.rows_deleted)
        if not self.plan.rows and not any(rows):
            return None
        return Merged(str(self.plan), *rows, self._running.seconds, metrics.version, self._why_whole)

    def commit_empty(self) -> None:
        """Commit the plan's number without data."""
        self._job.journal.commit_empty(self.plan.number, self._state, note=self.note)

    def write(self, prepared: PreparedPlan) -> None:
        """Write the data and commit it with the plan's number. CommitConflict if another writer was first."""
        if self.plan.replace:
            self._build(prepared)
        elif self.plan.rows or self.plan.whole:
            self._merge_or_compare(prepared)
        else:
            self.commit_empty()

    def _build(self, prepared: PreparedPlan) -> None:
        job, key, query = self._job, prepared.change.unique_key, prepared.change.new()
        self._warn_of_order(prepared)
        if not (isinstance(prepared.way, Keys) and prepared.way.affected.one_row_a_key):
            example = prepared.views.first(key_checks.repeated(query, key))
            if example is not None:
                raise key_checks.not_unique(key, example[0], str(job.name))
        # By default a change of a row does not rewrite its file.
        layout = job.layout.with_properties({DELETION_VECTORS: "true"} | job.layout.properties)
        text = key_checks.without_nulls(query, key)
        job.step("write")
        with job.spark.configured(file_size(job.spark)):
            job.create_table(self.plan, text, self.note, layout=layout)

    def _warn_of_order(self, prepared: PreparedPlan) -> None:
        """Warn, when the table is built, of results that Spark does not define: two full refreshes may differ too."""
        if prepared.by_order:
            calls = ", ".join(dict.fromkeys(map(str, prepared.by_order)))
            self._job.warn(
                f"The result of {calls} in {self._job.name} depends on the order of rows, and Spark takes rows in any "
                "order. So a full refresh may give other values than the table has. Sort the values, as in "
                "sort_array(collect_list(x)) or `listagg(x) within group (order by x)`"
            )

    def _merge_or_compare(self, prepared: PreparedPlan) -> None:
        """Merges the changes. If their SQL fails on a value, computes the whole model instead.

        The changes join new rows of one table with old rows of another, so they can meet values that the model never
        sees.
        """
        change = prepared.change
        if isinstance(change.way, Whole):
            return self._merge(prepared, change)
        try:
            self._merge(prepared, change)
        except StatementError as error:
            explained = self._explainer.explained(error, self.plan, prepared.misfits)
            if not is_of_values(error) or explained is not error:
                raise
            log.debug("%s is computed as a whole, after: %s", self._job.name, error)
            cause = error.what.splitlines()[0][:_LENGTH_OF_CAUSE]
            self._merge(prepared, replace(change, way=Whole(f"its changes alone fail: {cause}")))

    def _merge(self, prepared: PreparedPlan, change: ModelChange) -> None:
        job, views, query = self._job, prepared.views, change.keyed_rows(prepared.columns)
        if isinstance(change.way, Whole):
            self._why_whole = change.way.why
            rows = KeyedRows(views.of(query), change.unique_key, prepared.columns)
            job.step("write")
            merge_by_statement(job.spark, job.name, rows, self.plan.number, self.note, whole=True)
            return
        rows = KeyedRows(views.cached(query), change.unique_key, prepared.columns)
        table = self._state.table
        assert table is not None
        if takes_deletion_vectors(table):
            merge = DeletionVectorMerge(views, table, rows, compare=isinstance(change.way, Keys))
            if not merge.run(self.plan.number, self.note, job.step):
                self.commit_empty()
            return
        _, within = measure(views, rows)
        job.step("write")
        merge_by_statement(job.spark, job.name, rows, self.plan.number, self.note, within=within)
