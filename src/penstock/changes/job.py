"""Row changes of tables into a table: the job of a `cdf_merge` model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from penstock.changes.config import ChangeSource
from penstock.changes.incremental import merge
from penstock.changes.incremental.classify import Keys, Whole, shape_as_seen, shape_of
from penstock.changes.incremental.stale_columns import Reads
from penstock.changes.incremental.weights import Views
from penstock.changes.plan import KIND, ChangePlan
from penstock.changes.query import ChangeModel
from penstock.changes.report import Merged, MergeReport
from penstock.changes.source import Followed
from penstock.changes.version_range import Between, Gap
from penstock.delta.commits import edits
from penstock.delta.layout import Layout
from penstock.delta.schema_changes import IGNORE, Difference, Fitted
from penstock.delta.table import MARK, Column, Table
from penstock.errors import PenstockError, StatementError
from penstock.lake.folder import LakeFolder
from penstock.protocol.job import Contract, Job, Running
from penstock.protocol.plan import InvalidPlan, new_ledger
from penstock.protocol.run import run_job
from penstock.protocol.schema import fit
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.spark.backend import Backend
from penstock.spark.commit_settings import on_sql
from penstock.spark.facts import Call, facts
from penstock.spark.merge import BY_ROW, Exchange, can_exchange
from penstock.spark.schema import of_frame
from penstock.sql.names import Name
from penstock.steps import Step, no_step

log = logger("penstock.changes")

_KEPT_PLANS = 100
# A merge writes anew the files that hold changed rows: none of them is to be the whole table.
_ROWS_PER_FILE = "spark.sql.files.maxRecordsPerFile"
_MANY = "1000000"
_INCOMPARABLE = re.compile(r"\b(map<|variant\b)")
# So many keys are given to every task instead of shuffling the table: 50 MB where they are texts.
_FEW_KEYS = 500_000
_FILE_GONE = re.compile(r"FILE_NOT_EXIST|FileNotFound|DELTA_CHANGE_DATA_FILE_NOT_FOUND|DELTA_FILE_NOT_FOUND")
_NOT_OF_VALUES = ("DELTA_", "FAILED_READ_FILE", "INTERNAL_ERROR", "UNABLE_TO_ACQUIRE_MEMORY", "USER_RAISED_EXCEPTION")
_FEED_GONE = ("DELTA_MISSING_CHANGE_DATA", "DELTA_LOG_FILE_NOT_FOUND", "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
              "DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_CANNOT_TIME_TRAVEL", "DELTA_VERSION_NOT_FOUND")  # fmt: skip


def _is_of_values(error: StatementError) -> bool:
    """Whether Spark refuses a value or a name in a query; not a table, a file, or a commit."""
    condition = error.condition or ""
    return bool(condition) and not condition.startswith(_NOT_OF_VALUES) and not error.is_cancelled


def merge_changes(
    lake: LakeFolder,
    name: Name,
    source: ChangeSource,
    select: str,
    *,
    runner: Backend,
    full_refresh: bool = False,
    table: Layout | None = None,
    on_window: Callable[[Merged], None] | None = None,
    warn: Callable[[str], None] = log.warning,
    contract: Contract | None = None,
    step: Step = no_step,
) -> MergeReport:
    """Bring a table to what its model returns at the sources' current versions; no Spark where no row has changed.

    `contract` is called with the model's query before its rows are written.
    """
    lake.check_writable()
    found = lake.find(name)
    if found is not None and found.kind == "files":
        raise PenstockError(f"{name} stands for files elsewhere, and can't be a table", where=found.location)
    job = ChangeJob(
        lake,
        name,
        source,
        select,
        runner,
        table or Layout(),
        on_window=on_window,
        warn=warn,
        contract=contract,
        step=step,
    )
    run_job(job, replace=full_refresh or (found is not None and found.kind == "view"))
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
        on_window: Callable[[Merged], None] | None = None,
        warn: Callable[[str], None] = log.warning,
        contract: Contract | None = None,
        step: Step = no_step,
    ) -> None:
        self.model = ChangeModel.read(lake, select, name)
        self.shape = shape_of(self.model, source.unique_key, str(name))
        report = MergeReport(shape=type(self.shape).__name__.lower())
        super().__init__(lake, name, spark, layout, report, warn=warn, contract=contract, step=step)
        self.source = source
        self._on_window = on_window or (lambda window: log.info("%s: %s", name, window))
        self._reads = Reads(self.model, str(name))
        self._followed = Followed(lake, source, self.model, str(name))
        self._refresh = False
        self._to_the_end = False
        """Whether a window failed that ended earlier: the next one takes all there is."""
        self._looked = False
        self._happened: Mapping[Name, Between] = {}
        self._why = ""
        """Why the window that runs is computed as a whole; empty where it is not."""
        self._by_order: tuple[Call, ...] = ()
        self._misfits: list[str] = []
        """The columns of another type than the model's, where `on_schema_change` leaves them so."""
        self._running: Running[ChangePlan] | None = None

    # The protocol: catch up, plan, prepare, run

    def decode(self, number: int, data: bytes, where: str) -> ChangePlan:
        return ChangePlan.from_bytes(number, data, where)

    def catch_up(self, state: State, *, replace: bool) -> None:
        self.report.version = None if state.table is None else state.table.version
        running, self._running = self._running, None
        metrics = None if running is None else running.outcome(state)
        if running is None or metrics is None or state.last_is_void:
            return
        rows = (metrics.rows_inserted, metrics.rows_updated, metrics.rows_deleted)
        if running.plan.rows or any(rows):
            window = Merged(str(running.plan), *rows, running.seconds, metrics.version, self._why)
            self.report.windows.append(window)
            self._on_window(window)
        self.step("summary")
        self.journal.summarize(state, {"sources": {span.name: span.end for span in running.plan.spans}})
        self._forget_old_plans(state)

    def plan(self, number: int, state: State, *, replace: bool) -> ChangePlan | None:
        if replace or state.mark is None or self._refresh:
            self._refresh = False
            self._followed.look({})
            return self._anew(number)
        try:
            return self._next(number, state)
        except Gap as gap:
            if self.source.on_cdf_gap != "full_refresh":
                raise
            self.warn(f"{self.name} is built anew: {gap.what}")
            return self._anew(number)

    def run(self, plan: ChangePlan, state: State) -> InvalidPlan | None:
        if (plan.replace or plan.whole) and plan.model != self.model.digest:
            # It was left by a run that failed; what it would say of the table's SQL is not so any more.
            self._followed.look_again()
            return InvalidPlan("the model's SQL is another since it was planned")
        note = state.note(plan.number)
        self._running = Running(plan, note)
        self._happened, self._misfits, self._why = {}, [], ""
        if not plan.rows and not plan.columns:
            self.journal.commit_empty(plan.number, state, note=note)
            return None
        try:
            change = self._change(plan)
            with Views(self.spark) as views, self.spark.tagged(note):
                change, made = self._as_seen(change, views)
                if plan.replace:
                    self._replace(plan, change, views, note)
                elif plan.rows or plan.whole:
                    self._why = change.shape.why if isinstance(change.shape, Whole) else ""
                    self._merge_safely(plan, change, made, views, note, state)
                else:
                    self._fit(made, state)
                    self.journal.commit_empty(plan.number, state, note=note)
        except PenstockError as error:
            if isinstance(error, StatementError) and (error.is_conflict or error.is_cancelled):
                raise
            return self._after_failure(error, plan)
        self.step("committed")
        return None

    def _after_failure(self, error: PenstockError, plan: ChangePlan) -> InvalidPlan:
        """The plan is given up if another one may succeed; else the error is raised, explained."""
        problem = self._explained(error, plan)
        if isinstance(problem, Gap):
            return self._without_feed(plan, problem)
        if self._has_moved_on(plan):
            # What is wrong at that version may be right at a later one: a plan that fails must not block for ever.
            self._followed.look_again()
            self._to_the_end = True
            return InvalidPlan(str(problem))
        raise problem from error

    # Planning

    def _anew(self, number: int) -> ChangePlan:
        model = self.model.digest
        key = self.source.unique_key
        spans, ledger = self._followed.anew(), new_ledger()
        return ChangePlan(number, number, spans, replace=True, model=model, built=model, key=key, ledger=ledger)

    def _next(self, number: int, state: State) -> ChangePlan | None:
        assert state.mark is not None
        last = self.journal.plan(state.mark, state, self)
        if last is None:
            raise PenstockError(
                f"The table has the mark {state.mark}, and its plan is not there",
                where=f"{self.location}/{self.journal.path_of(state.mark)}",
                fix="Put the file back from a backup, or run with --full-refresh.",
            )
        self._refuse_other_key(last)
        self._look_around(last, state)
        position = last.position(void=state.last_is_void)
        self._followed.look(position)
        spans = self._followed.since(position, None if self._to_the_end else self.source.cdf_max_versions)
        happened = self._followed.between(spans)
        rows = any(between.segments for between in happened.values())
        whole = self._why_whole(happened, rows)
        columns = not rows and (bool(whole) or self._columns_matter(happened, last, state))
        if all(span.is_empty for span in spans) and not columns:
            return None
        return ChangePlan(
            number,
            state.generation,
            spans,
            rows=rows,
            columns=columns,
            whole=whole,
            model=self.model.digest,
            built=last.made_by(void=state.last_is_void),
            key=self.source.unique_key,
            ledger=state.ledger,
        )

    def _refuse_other_key(self, last: ChangePlan) -> None:
        """By another key, rows of the table would be taken for each other."""
        if last.key and {name.lower() for name in last.key} != {name.lower() for name in self.source.unique_key}:
            raise Gap(
                f"`unique_key` is ({', '.join(self.source.unique_key)}) now, and the table was built by "
                f"({', '.join(last.key)})",
                where=str(self.name),
            )

    def _why_whole(self, happened: Mapping[Name, Between], rows: bool) -> str:
        """Why the model is computed as a whole, which is always right: rows that stayed may read otherwise now."""
        if any(between.has_other_columns for between in happened.values()):
            ours = [column.name.lower() for column in self.lake.columns(self.name)]
            for name, between in happened.items():
                if why := self._reads.stale(between, ours):
                    return f"{name}: {why}"
        if not rows:
            return ""
        return self.shape.why if isinstance(self.shape, Whole) else self._followed.why_whole(self.shape)

    def _columns_matter(self, happened: Mapping[Name, Between], last: ChangePlan, state: State) -> bool:
        """Whether the model may have other columns than its table; asked where no row has changed."""
        if self.source.on_schema_change == IGNORE:
            return False
        return (
            last.model != self.model.digest
            or (last.columns and state.last_is_void)
            or (self._reads.star and any(between.has_other_columns for between in happened.values()))
        )

    def _look_around(self, last: ChangePlan, state: State) -> None:
        """Once a run: what else has changed since the last one."""
        if self._looked:
            return
        self._looked = True
        if last.made_by(void=state.last_is_void) != self.model.digest:
            self.warn(
                f"The SQL of {self.name}, or of a view that it reads, has changed since the table was built: rows that "
                "do not change keep what the old SQL made; run with --full-refresh"
            )
        if changed := edits(list(state.others), appends=True):
            self.warn(f"{self.name} was changed by others: {', '.join(changed)}; --full-refresh builds it anew")

    # Running

    def _change(self, plan: ChangePlan) -> merge.Change:
        spans = {Name.parse(span.name): span for span in plan.spans}
        self._followed.check(spans, self.location)
        pinned = {
            place.name: Table.open(place.location, self.lake.storage_options, files=False).version
            for place in self.model.places
            if place.name not in spans
        }
        self._happened = self._followed.between(plan.spans)
        segments = {name: between.segments for name, between in self._happened.items()}
        # By the text; `_as_seen` has the last word.
        shape = Whole(plan.whole) if plan.whole else self.shape
        return merge.Change(self.model, shape, spans, segments, pinned, self.source.unique_key)

    def _replace(self, plan: ChangePlan, change: merge.Change, views: Views, note: str) -> None:
        query = change.new(views)
        self._tell_of_order()
        if not (isinstance(self.shape, Keys) and self.shape.core.one_row_a_key):
            example = views.first(merge.twice(query, self.source.unique_key))
            if example is not None:
                raise merge.not_unique(self.source.unique_key, example[0], str(self.name))
        # A row's change is not to write its whole file anew, where the user does not say otherwise.
        layout = self.layout.with_properties({BY_ROW: "true"} | self.layout.properties)
        text = merge.checked(query, self.source.unique_key)
        self.step("write")
        with self.spark.configured(self._file_size()):
            self.create_table(plan, text, note, layout=layout)

    def _merge_safely(
        self,
        plan: ChangePlan,
        change: merge.Change,
        made: Sequence[Column],
        views: Views,
        note: str,
        state: State,
    ) -> None:
        """A mix of old and new rows may fail where neither does: then the model is computed as a whole, as it stands."""
        try:
            self._merge(plan, change, made, views, note, state)
        except StatementError as error:
            if isinstance(change.shape, Whole) or not _is_of_values(error) or self._is_explained(error, plan):
                raise
            log.debug("%s is computed as a whole, after: %s", self.name, error)
            self._why = "its changes alone fail"
            self._merge(plan, replace(change, shape=Whole(self._why)), made, views, note, state)

    def _tell_of_order(self) -> None:
        """Once, when the table is built: where Spark does not define a result, two full refreshes may differ as well."""
        if self._by_order:
            calls = ", ".join(dict.fromkeys(map(str, self._by_order)))
            self.warn(
                f"{self.name} has {calls}: where rows of a group differ or tie, Spark takes them in any order, so a "
                "full refresh may give another value than the table has; put the values in order, as in "
                "sort_array(collect_list(x)) or `listagg(x) within group (order by x)`"
            )

    def _is_explained(self, error: StatementError, plan: ChangePlan) -> bool:
        return self._explained(error, plan) is not error

    def _merge(
        self,
        plan: ChangePlan,
        change: merge.Change,
        made: Sequence[Column],
        views: Views,
        note: str,
        state: State,
    ) -> None:
        columns = self._fit(made, state)
        key, query = self.source.unique_key, change.source(views, columns)
        if isinstance(change.shape, Whole):
            self.step("write")
            text = merge.statement(self.name.sql, views.of(query), key, columns, whole=True)
            self.spark.run(text, self._conf(plan, note))
            return
        source = views.kept(query)
        assert state.table is not None
        if can_exchange(state.table):
            self._exchange(plan, change, views, source, columns, note, state)
            return
        _, within = self._extent(views, source, columns)
        self.step("write")
        text = merge.statement(self.name.sql, source, key, columns, within=within)
        self.spark.run(text, self._conf(plan, note))

    def _fit(self, made: Sequence[Column], state: State) -> list[Fitted]:
        """The columns that the model fills, after the table was made to have them as `on_schema_change` says."""
        note = state.note("columns")
        columns = fit(self.lake, self.name, made, self.source.on_schema_change, self.spark, note, self._warn)
        self._misfits = [str(item) for found in Difference(made, columns).changes.values() for item in found]
        return columns

    def _extent(self, views: Views, source: str, columns: Sequence[Column]) -> tuple[int, list[str]]:
        """How many keys may change, and what all of them meet."""
        found = views.first(merge.extent(source, self.source.unique_key))
        assert found is not None
        return found[0], merge.within(found[1:], self.source.unique_key, columns)

    def _exchange(
        self,
        plan: ChangePlan,
        change: merge.Change,
        views: Views,
        source: str,
        columns: Sequence[Fitted],
        note: str,
        state: State,
    ) -> None:
        assert state.table is not None
        transaction = self.spark.transaction(self.location, state.table)
        with self.spark.beside(transaction.files) as files:
            number, within = self._extent(views, source, columns)
            files.result()
        self.step("write")
        compare, few = isinstance(change.shape, Keys), number <= _FEW_KEYS
        rows = transaction.rows(within)
        exchange = Exchange(views, state.table, rows, source, self.source.unique_key, columns, compare, few)
        counts = exchange.counts()
        if not counts:
            self.journal.commit_empty(plan.number, state, note=note)
            return
        marks = {MARK: plan.number}
        leaving, coming = exchange.leaving(), exchange.coming(counts.files)
        transaction.exchange(leaving, coming, marks, note, counts.metrics(), step=self.step)

    def _conf(self, plan: ChangePlan, note: str) -> dict[str, str]:
        return on_sql(MARK, plan.number, note) | self._file_size()

    def _file_size(self) -> dict[str, str]:
        unset = self.spark.setting(_ROWS_PER_FILE) in (None, "0")
        return {_ROWS_PER_FILE: _MANY} if unset else {}

    def _as_seen(self, change: merge.Change, views: Views) -> tuple[merge.Change, list[Column]]:
        """The change, kept the way that Spark's plan of the model says, and the model's columns; nothing is written yet.

        The plan in the log was made from the text alone, perhaps by another version, so this decides each time.
        """
        query = change.new(views)
        frame = self.spark.query(query)
        seen = facts(frame)
        self.shape = shape_as_seen(self.model, self.source.unique_key, str(self.name), seen)
        self.report.shape = type(self.shape).__name__.lower()
        columns = of_frame(frame)
        self.check_contract(query, columns)
        self._check_columns(columns)
        self._by_order = seen.by_order
        if isinstance(change.shape, Whole):
            return change, columns
        why = "" if isinstance(self.shape, Whole) else self._followed.why_whole(self.shape)
        return replace(change, shape=Whole(why) if why else self.shape), columns

    def _check_columns(self, columns: list[Column]) -> list[Column]:
        types = {column.name.lower(): column.type for column in columns}
        unknown = [key for key in self.source.unique_key if key.lower() not in types]
        if unknown:
            raise PenstockError(
                f"`unique_key` names {', '.join(unknown)}, and the model's result has no such column",
                where=str(self.name),
                fix=f"It has {', '.join(column.name for column in columns)}.",
            )
        for key in self.source.unique_key:
            if _INCOMPARABLE.search(types[key.lower()]):
                raise PenstockError(
                    f"`unique_key` has {key}, a {types[key.lower()]}: Spark can't join by maps and variants, so no row "
                    "is found by it",
                    where=str(self.name),
                    fix=f"Take other columns, or make a text of it: to_json({key}) as {key}.",
                )
        return columns

    # What went wrong

    def _explained(self, error: PenstockError, plan: ChangePlan) -> PenstockError:
        if not isinstance(error, StatementError):
            return error
        if (error.condition or "").startswith(_FEED_GONE) or _FILE_GONE.search(str(error)):
            return Gap(
                f"Changes of {plan} are gone from disk, cleaned up by VACUUM or by hand: "
                f"{str(error).splitlines()[0][:300]}",
                where=", ".join(span.location for span in plan.spans),
            )
        return merge.explained(error, self.source.unique_key, str(self.name)) or self._of_columns(error, plan) or error

    def _of_columns(self, error: StatementError, plan: ChangePlan) -> PenstockError | None:
        """What Spark says of a value or a name, where it is a source's other columns that have brought it about."""
        condition, said = error.condition or "", error.what.splitlines()[0]
        if condition.startswith(("CAST_", "DATATYPE_MISMATCH")) and self._misfits:
            return PenstockError(
                f"A value of {plan} does not fit: {said} The table and the model differ: {'; '.join(self._misfits)}",
                where=str(self.name),
                fix="No row was changed. Set `on_schema_change: sync_all_columns`, or run with --full-refresh.",
            )
        dropped = [
            f"{', '.join(sorted(between.dropped))} of {name}"
            for name, between in self._happened.items()
            if between.dropped
        ]
        if condition.startswith("UNRESOLVED_COLUMN") and dropped:
            return PenstockError(
                f"The model can't be computed any more: {plan} has dropped {'; '.join(dropped)}. {said}",
                where=str(self.name),
                fix="No row was changed. Take the column out of the SQL, or add it upstream again.",
            )
        return None

    def _has_moved_on(self, plan: ChangePlan) -> bool:
        """Whether there are later versions to try instead; once a run."""
        return not self._to_the_end and self._followed.have_moved_on(plan.spans)

    def _without_feed(self, plan: ChangePlan, gap: Gap) -> InvalidPlan:
        """Changes that the plan needs are gone: it is given up where the table is built again, else that is the error."""
        if plan.replace:
            # The version that an interrupted run has pinned is gone; another takes its place.
            self._followed.look_again()
            return InvalidPlan(gap.what)
        if self.source.on_cdf_gap != "full_refresh":
            raise gap
        self.warn(f"{self.name} is built anew: {gap.what}")
        self._refresh = True
        return InvalidPlan(gap.what)

    def _forget_old_plans(self, state: State) -> None:
        """Only the newest committed plan is ever read; some more of this generation are kept for people."""
        assert state.mark is not None
        kept = max(state.generation, state.mark - _KEPT_PLANS + 1)
        for number in sorted(self.journal.records().plans):
            if number < kept:
                self.journal.storage.delete(self.journal.path_of(number))
