"""Windows of event time into a table, added or replaced: the job of a microbatch model. `meeting` calls it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.layout import Layout
from penstock.delta.schema_changes import Fitted
from penstock.delta.table import MARK, Table
from penstock.errors import PenstockError
from penstock.lake.folder import LakeFolder
from penstock.protocol.job import Contract, Job, Running
from penstock.protocol.plan import InvalidPlan, StartOver, new_ledger
from penstock.protocol.run import run_job
from penstock.protocol.schema import fit
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.spark.backend import Backend
from penstock.spark.commit_settings import noted, on_sql
from penstock.sql.names import Name
from penstock.steps import Step, no_step
from penstock.windows.backlog import WindowBacklog
from penstock.windows.bounds import inside
from penstock.windows.config import WindowSettings
from penstock.windows.ledger import Known, WindowLedger
from penstock.windows.plan import APPEND, KIND, REPLACE, WindowPlan
from penstock.windows.query import Select
from penstock.windows.report import WindowReport
from penstock.windows.rows import WindowRows, event_column
from penstock.windows.watermark import may_hold
from penstock.windows.window import NONE, Ranges, Window, span

log = logger("penstock.windows")


@dataclass(frozen=True)
class Target:
    """The table that windows go to, and how."""

    lake: LakeFolder
    name: Name
    settings: WindowSettings
    layout: Layout
    spark: Backend
    contract: Contract | None = None
    """Called with the query of a window before its rows are written; raises if its columns break the contract."""

    @property
    def location(self) -> str:
        return self.lake.location_of(self.name)


class WindowJob(Job[WindowPlan]):
    """Brings windows into one table. A plan is a pack of windows; `replace_windows` needs no plan.

    There is one job for each pack that a thread of dbt runs. `whole` is the range of the run that the job is part of.
    Without rows (`no_rows`), the job only creates the table.
    """

    kind = KIND
    report: WindowReport

    def __init__(
        self,
        target: Target,
        select: Select,
        whole: Window,
        step: Step = no_step,
        *,
        no_rows: bool = False,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        super().__init__(
            target.lake,
            target.name,
            target.spark,
            target.layout,
            WindowReport(),
            warn=warn,
            contract=target.contract,
            step=step,
        )
        self.ledger = WindowLedger(self.journal)
        self._settings = target.settings
        self._select = select
        self._whole = whole
        self._no_rows = no_rows
        self._mode = REPLACE if target.settings.delete_before_insert else APPEND
        self._pack: tuple[Window, ...] = ()
        """The windows that the table is created from, where windows replace rows."""
        self._empty = NONE
        """Windows before these that have no rows."""
        self._backlog: WindowBacklog | None = None
        """The windows to add, where windows are added."""
        self._rows: WindowRows | None = None
        """The rows that `prepare` has read, until `run` has written them."""
        self._running: Running[WindowPlan] | None = None
        """The plan that was run last, until its outcome is reported."""

    # Two ways by the protocol

    def create(self, windows: tuple[Window, ...], empty: Ranges, *, replace: bool) -> None:
        """Create or replace the table from some windows; nothing is done if they have no files.

        If another process has created it meanwhile, nothing is done: `report.committed` tells. `empty` are windows
        before these that have no rows.
        """
        self._pack, self._empty = windows, empty
        self._drive(replace=replace)

    def append(self, windows: tuple[Window, ...], *, named: bool, replace: bool) -> None:
        """Add windows that are not in the table: if `named`, these; otherwise all up to the last of these.

        With `replace`, the first of them replaces the table.
        """
        known = Known() if replace else self.ledger.read(self.journal.state(check=False))
        self._check_mode(known, APPEND)
        self._backlog = WindowBacklog(self._settings, self._whole.start, windows[-1].end, windows if named else None)
        self._drive(replace=replace)

    def _drive(self, *, replace: bool) -> None:
        self.lake.check_writable()
        try:
            run_job(self, replace=replace)
        finally:
            self._drop_rows()

    # The protocol: catch up, plan, prepare, run

    def decode(self, number: int, data: bytes, where: str) -> WindowPlan:
        return WindowPlan.from_bytes(number, data, where)

    def catch_up(self, state: State, *, replace: bool) -> None:
        self.report.version = None if state.table is None else state.table.version
        running, self._running = self._running, None
        if running is None or state.mark is None or state.mark < running.plan.number:
            return
        if state.generation > running.plan.number:
            self.report.superseded = True
            return
        self.report.committed = True
        self.report.add(running.plan.windows, running.outcome(state))
        self._summarize(state)

    def plan(self, number: int, state: State, *, replace: bool) -> WindowPlan | None:
        created = replace or state.mark is None
        known = Known() if created else self.ledger.read(state)
        before = self._empty if created else known.ranges
        for windows in self._next(known, created=created):
            if not created or not self._select.is_empty(span(windows)):
                break
            before = before.with_(windows)
        else:
            return None
        last = known.plan
        return WindowPlan(
            number=number,
            generation=number if created else state.generation,
            windows=() if self._no_rows else windows,
            mode=self._mode,
            replace=created,
            before=before,
            whole=self._whole if last is None else last.whole,
            schema=None if last is None else last.schema,
            ledger=new_ledger() if created else state.ledger,
        )

    def prepare(self, plan: WindowPlan, state: State) -> WindowPlan | StartOver:
        window = self._window_of(plan)
        plan = replace(plan, schema=self._select.schema(window, plan.schema))
        if self._select.is_empty(window):
            return plan
        rows = self._read(window, plan.schema)
        if plan.replace:
            return plan
        assert state.table is not None
        self._fit(rows, state)
        if self.lake.columns(self.name) != state.table.columns:
            return StartOver("the table's columns were changed to fit the model")
        return plan

    def run(self, plan: WindowPlan, state: State) -> InvalidPlan | None:
        window, note = self._window_of(plan), state.note(plan.number)
        self._running = Running(plan, note)
        self.step("write")
        try:
            self._write(plan, window, note, state)
        finally:
            self._drop_rows()
        self.step("committed")
        return None

    # The way without a mark: to replace a window twice does no harm

    def replace_windows(self, windows: tuple[Window, ...], state: State) -> None:
        """Replace the rows of some windows in one commit, and record that they are in."""
        window = span(windows)
        assert state.table is not None
        known = self.ledger.read(state)
        if not known.ranges.holds(window):
            self._check_mode(known, REPLACE)
        if self._select.is_empty(window) and not self._select.is_settled(window):
            return  # its files are still being written
        column = event_column(state.table.columns, self._settings.event_time, str(self.name))
        where, note = inside(column.name, column.type, window), state.note("window")
        self.step("write")
        if not self._select.is_empty(window):
            rows = self._read(window, self._select.schema(window, None if known.plan is None else known.plan.schema))
            try:
                self.spark.replace_where(rows.into(self._fit(rows, state)), self.lake.get(self.name), where, note)
            finally:
                self._drop_rows()
        elif may_hold(Table.open(self.location, self.lake.storage_options), column.name, window):
            self.spark.run(f"delete from {self.name.sql} where {where}", noted(note))
        self.step("committed")
        after = self.journal.state(check=False)
        self.report.add(windows, None if after.table is None else CommitMetrics.noted(after.table, note))
        self.ledger.record(window, state.generation, {"rows": self.report.rows})
        self.step("recorded")
        self._summarize(after)

    # Planning

    def _next(self, known: Known, *, created: bool) -> Sequence[tuple[Window, ...]]:
        """The packs that can come in now; each is one commit."""
        if self._backlog is not None:
            return self._backlog.packs(known, self._select, replace=created)
        return [self._pack] if created and not self.report.committed else []

    def _window_of(self, plan: WindowPlan) -> Window:
        """The range that a plan's query reads. A plan without windows creates the table without rows."""
        return span(plan.windows or self._pack or (self._whole,))

    def _check_mode(self, known: Known, mode: str) -> None:
        """Reject a table whose windows came in by the other mode: nothing says which of them are in once."""
        if known.plan is None or known.plan.mode == mode:
            return
        was, now = ("replaced", "added") if mode == APPEND else ("added", "replaced")
        raise PenstockError(
            f"Windows of this table were {was} until now, and the config says that windows are {now}",
            where=str(self.name),
            fix=f"Run once with --full-refresh to change to `delete_before_insert: {str(mode == REPLACE).lower()}`.",
        )

    # Reading and writing

    def _read(self, window: Window, schema: dict[str, Any] | None) -> WindowRows:
        """The model over a window; its contract is checked before its rows are written."""
        if self._rows is not None and (self._rows.window, self._rows.schema) == (window, schema):
            return self._rows
        self._drop_rows()
        rendered = self._select.over(window, schema)
        try:
            columns = self.spark.columns_of(rendered.text)
            self.check_contract(rendered.text, columns)
            time = event_column(columns, self._settings.event_time, str(self.name))
        except BaseException:
            rendered.drop()
            raise
        self._rows = WindowRows(window, schema, rendered, columns, time)
        return self._rows

    def _write(self, plan: WindowPlan, window: Window, note: str, state: State) -> None:
        if plan.replace:
            query = self._read(window, plan.schema).new()
            self.create_table(plan, query if plan.windows else f"select * from (\n{query}\n) where false", note)
        elif self._select.is_empty(window):
            self.journal.commit_empty(plan.number, state, note=note)
        else:
            rows = self._read(window, plan.schema)
            query = rows.into(self._fit(rows, state))
            self.spark.run(f"insert into {self.name.sql} by name\n{query}", on_sql(MARK, plan.number, note))

    def _drop_rows(self) -> None:
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.rendered.drop()

    def _fit(self, rows: WindowRows, state: State) -> list[Fitted]:
        """The columns that the model fills, after `on_schema_change` was applied to the table."""
        policy, note = self._settings.on_schema_change, state.note("columns")
        return fit(self.lake, self.name, rows.columns, policy, self.spark, note, self.warn, rows.rendered.kept)

    def _summarize(self, state: State) -> None:
        self.step("summary")
        self.journal.summarize(state, {"windows": self.ledger.read(state).ranges.texts()})
