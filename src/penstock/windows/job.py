"""Windows of event time into a table, added or replaced: the job of a microbatch model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.layout import Layout
from penstock.delta.table import MARK, Column, Table
from penstock.errors import CommitConflict, PenstockError
from penstock.lake.folder import LakeFolder
from penstock.protocol.job import Contract, Job
from penstock.protocol.plan import InvalidPlan, new_ledger
from penstock.protocol.report import Report
from penstock.protocol.run import run_job
from penstock.protocol.schema import fit
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.spark.backend import Backend
from penstock.spark.commit_settings import noted, on_sql
from penstock.sql.names import Name
from penstock.sql.quoting import literal, quote
from penstock.steps import Step, no_step
from penstock.windows import bounds
from penstock.windows.config import WindowSettings
from penstock.windows.plan import APPEND, KIND, REPLACE, Known, WindowLedger, WindowPlan
from penstock.windows.query import Bound, Select
from penstock.windows.window import NONE, Ranges, Window, floor, packs, span

log = logger("penstock.windows")


def now() -> datetime:
    return datetime.now(timezone.utc)


@dataclass(frozen=True)
class Target:
    """The table that windows go to, and how."""

    lake: LakeFolder
    name: Name
    settings: WindowSettings
    layout: Layout
    runner: Backend
    contract: Contract | None = None
    """Given a SELECT over a window before it is written, raises where its columns are not those that were agreed on."""

    @property
    def location(self) -> str:
        return self.lake.location_of(self.name)


class WindowJob(Job[WindowPlan]):
    """Brings windows into one table; one job for each window that arrives. A plan is a pack of windows."""

    kind = KIND

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
        """`whole` is what the run that it is part of is to bring in; without rows, it only makes the table."""
        super().__init__(
            target.lake,
            target.name,
            target.runner,
            target.layout,
            Report(),
            warn=warn,
            contract=target.contract,
            step=step,
        )
        self._settings = target.settings
        self._select = select
        self._whole = whole
        self.ledger = WindowLedger(self.journal)
        self.written: list[CommitMetrics] = []
        self.done: list[Window] = []
        """The windows that came in by this work."""
        self.committed = False
        """Whether a plan was run."""
        self.superseded = False
        """Whether another run has made the table anew, planned after this one's."""
        self._no_rows = no_rows
        self._wanted: tuple[Window, ...] | None = None
        self._limit = whole.end
        self._empty = NONE
        self._mode = REPLACE if target.settings.delete_before_insert else APPEND

    # The three ways in

    def make(self, windows: tuple[Window, ...], empty: Ranges, *, replace: bool) -> None:
        """Make the table, or make it anew, out of some windows; not where they hold nothing to make it from.

        Where another process has made it meanwhile, nothing is done: `committed` tells. `empty` are windows before these that were found to hold nothing.
        """
        self._wanted, self._empty = windows, empty
        self._drive(replace=replace)

    def append(self, windows: tuple[Window, ...], *, named: bool, replace: bool) -> None:
        """Add windows that are over and not in yet: those that are named, else all up to the last of these.

        With `replace` the first of them makes the table anew.
        """
        self._limit = windows[-1].end
        self._wanted = windows if named else None
        known = Known() if replace else self.ledger.read(self.journal.state(check=False))
        if known.plan is not None and known.plan.mode != APPEND:
            raise PenstockError(
                "This table's windows were replaced, not added, so that one that is in might be added again",
                where=str(self.name),
                fix="Run once with --full-refresh to change to `delete_before_insert: false`.",
            )
        self._drive(replace=replace)

    def replace(self, windows: tuple[Window, ...], state: State) -> None:
        """Replace the rows of some windows, in one commit, and note that they are in."""
        window = span(windows)
        assert state.table is not None
        known = self.ledger.read(state)
        if known.plan is not None and known.plan.mode != REPLACE and not known.ranges.holds(window):
            raise PenstockError(
                f"This table's windows were added, not replaced, and {window} is not in yet",
                where=str(self.name),
                fix="Run once with --full-refresh to change to `delete_before_insert: true`.",
            )
        if self._select.is_empty(window) and not self._select.is_settled(window):
            return  # what its rows are made of is being written just now
        column = self._event_column(state.table.columns)
        where = bounds.inside(column.name, column.type, window)
        note = state.note("window")
        self.step("write")
        if self._select.is_empty(window):
            if may_hold(Table.open(self.location, self.lake.storage_options), column.name, window):
                self.spark.run(f"delete from {self.name.sql} where {where}", noted(note))
        else:
            shape = self._select.shape(window, None if known.plan is None else known.plan.shape)
            with self._query(window, shape, state) as query:
                self.spark.replace_where(query, self.lake.get(self.name), where, note)
        self.step("committed")
        after = self._tell(note)
        self.done += windows
        self.ledger.record(window, state.generation, {"rows": sum(item.rows_inserted for item in self.written)})
        self.step("recorded")
        self._summarize(after)

    def is_unclaimed(self, state: State) -> bool:
        """Whether there is a table that others made, and that has no rows."""
        if state.table is None or state.mark is not None:
            return False
        return Table.open(self.location, self.lake.storage_options).statistics().rows == 0

    def _drive(self, *, replace: bool) -> None:
        self.lake.check_writable()
        run_job(self, replace=replace)

    # The protocol: catch up, plan, prepare, run

    def decode(self, number: int, data: bytes, where: str) -> WindowPlan:
        return WindowPlan.from_bytes(number, data, where)

    def catch_up(self, state: State, *, replace: bool) -> None:
        pass  # the outcome of each window is reported right after its commit, to the thread that waits for it

    def plan(self, number: int, state: State, *, replace: bool) -> WindowPlan | None:
        made = replace or state.mark is None
        if (self._mode == REPLACE or self._no_rows) and not made:
            return None  # windows that replace carry no mark, but for the one that makes the table
        known = Known() if made else self.ledger.read(state)
        before = self._empty if made else known.ranges
        for windows in self._next(known, made=made):
            if not made or not self._select.is_empty(span(windows)):
                break
            before = before.with_(windows)
        else:
            return None
        last = known.plan
        return WindowPlan(
            number=number,
            generation=number if made else state.generation,
            windows=() if self._no_rows else windows,
            mode=self._mode,
            replace=made,
            before=before,
            whole=self._whole if made or last is None else last.whole,
            shape=None if last is None else last.shape,
            ledger=new_ledger() if made else state.ledger,
        )

    def prepare(self, plan: WindowPlan, state: State) -> WindowPlan:
        window = self._window_of(plan)
        plan = replace(plan, shape=self._select.shape(window, plan.shape))
        if self._contract is not None and not self._select.is_empty(window):
            with self._bound(window, plan.shape) as bound:
                self._check_contract(bound.text)
        return plan

    def run(self, plan: WindowPlan, state: State) -> InvalidPlan | None:
        note = state.note(plan.number)
        window = self._window_of(plan)
        self.step("write")
        if not plan.replace and self._select.is_empty(window):
            self.journal.commit_empty(plan.number, state)
        else:
            self._write(plan, window, state, note)
        self.step("committed")
        after = self._tell(note)
        if plan.replace and after.generation > plan.number:
            self.superseded = True
            raise CommitConflict("the table was made anew by another run, planned after this one")
        self.committed = True
        self.done += plan.windows
        self._summarize(after)
        return None

    def _window_of(self, plan: WindowPlan) -> Window:
        """What a plan's query reads. A plan without windows makes the table without rows."""
        return span(plan.windows or self._wanted or (self._whole,))

    def _next(self, known: Known, *, made: bool) -> Iterator[tuple[Window, ...]]:
        """The packs that are still to come in, one commit each."""
        if self._mode == REPLACE or self._no_rows:
            assert self._wanted is not None
            if not self.committed:
                yield self._wanted
            return
        if self._wanted is not None:
            missing: Iterable[Window] = [window for window in self._wanted if not known.ranges.holds(window)]
        else:
            begin = self._whole.start if made else known.begin or floor(self._settings.begin, self._settings.batch_size)
            gaps = known.ranges.gaps(Window(begin, max(begin, self._limit)))
            missing = [window for gap in gaps.windows for window in gap.steps(self._settings.batch_size)]
        ready = []
        for window in missing:
            if window.end > now() or not self._select.is_settled(window):
                break
            ready.append(window)
        yield from packs(ready, self._settings.days_per_batch)

    # Writing

    def _write(self, plan: WindowPlan, window: Window, state: State, note: str) -> None:
        if plan.replace:
            with self._query(window, plan.shape) as query:
                query = query if plan.windows else f"select * from (\n{query}\n) where false"
                self.create_table(plan, query, note)
            return
        with self._query(window, plan.shape, state) as query:
            marks = on_sql(MARK, plan.number, note)
            self.spark.run(f"insert into {self.name.sql} by name\n{query}", marks)

    @contextmanager
    def _query(self, window: Window, shape: dict[str, object] | None, state: State | None = None) -> Iterator[str]:
        """The model over a window, each row's time checked, its columns as the table has them."""
        with self._bound(window, shape) as bound:
            self._check_contract(bound.text)
            yield self._checked(bound, window, state)

    @contextmanager
    def _bound(self, window: Window, shape: dict[str, object] | None) -> Iterator[Bound]:
        bound = self._select.over(window, shape)
        try:
            yield bound
        finally:
            bound.drop()

    def _check_contract(self, text: str) -> None:
        if self._contract is not None:
            self.check_contract(text, self.spark.columns_of(text))

    def _checked(self, bound: Bound, window: Window, state: State | None) -> str:
        text, filtered = bound.text, bound.filtered
        columns = self.spark.columns_of(text)
        time = self._event_column(columns)
        here = bounds.inside(time.name, time.type, window)
        made = {column.name.lower(): quote(column.name) for column in columns}
        if filtered:
            # In the list of columns, not in a WHERE: Spark may move a condition below a join that would drop the row.
            says = literal(f"The model makes a row whose {time.name} lies outside of its window {window}: ")
            wrong = f"raise_error(concat({says}, coalesce(cast({made[time.name.lower()]} as string), 'null')))"
            made[time.name.lower()] = f"if({here}, {quote(time.name)}, {wrong})"
        items = self._fitted(columns, made, state, bound.kept)
        return f"select {', '.join(items)} from (\n{text}\n)" + ("" if filtered else f" where {here}")

    def _fitted(
        self, columns: list[Column], made: Mapping[str, str], state: State | None, kept: str | None
    ) -> list[str]:
        """Each column's expression, with the table's name and type; without a state the table is a new one."""
        if state is None:
            return [f"{made[column.name.lower()]} as {quote(column.name)}" for column in columns]
        policy, note = self._settings.on_schema_change, state.note("columns")
        fitting = fit(self.lake, self.name, columns, policy, self.spark, note, self.warn, kept)
        return [f"{column.value(made[column.name.lower()])} as {quote(column.name)}" for column in fitting]

    def _event_column(self, columns: Iterable[Column]) -> Column:
        wanted = self._settings.event_time.lower()
        found = next((column for column in columns if column.name.lower() == wanted), None)
        if found is None:
            raise PenstockError(
                f"`event_time` names {self._settings.event_time}, which the model does not select: it selects "
                + ", ".join(column.name for column in columns),
                where=str(self.name),
                fix="Select that column, or name another.",
            )
        return found

    def _tell(self, note: str) -> State:
        """What the commit did, as the log tells it, and where the table stands after it."""
        state = self.journal.state(check=False)
        if state.table is not None and (written := CommitMetrics.noted(state.table, note)) is not None:
            self.written.append(written)
        return state

    def _summarize(self, state: State) -> None:
        self.step("summary")
        self.journal.summarize(state, {"windows": self.ledger.read(state).ranges.texts()})


def high_watermark(table: Table, column: str) -> datetime | None:
    """MAX(column), out of the log; None where it does not tell."""
    extremes = table.extremes(column)
    moments = [bounds.moment_of(most) for _, most in extremes or ()]
    known = [moment for moment in moments if moment is not None]
    return max(known) if known and len(known) == len(moments) else None


def may_hold(table: Table, column: str, window: Window) -> bool:
    """Whether a table may have rows of a window, by its log."""
    extremes = table.extremes(column)
    if extremes is None:
        return True
    for least, most in extremes:
        low, high = bounds.moment_of(least), bounds.moment_of(most)
        if low is None or high is None or (low < window.end and high >= window.start):
            return True
    return False
