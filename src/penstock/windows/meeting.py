"""Where dbt's threads meet: which windows of a `dbt run` are run, by which thread, and in which pack."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.protocol.journal import Journal
from penstock.protocol.state import State
from penstock.protocol.target import replaces
from penstock.protocol.warnings import once
from penstock.secrets import logger
from penstock.steps import Step, no_step
from penstock.windows.backlog import over
from penstock.windows.job import Target, WindowJob
from penstock.windows.ledger import Known, WindowLedger
from penstock.windows.plan import WindowPlan
from penstock.windows.query import Select, command_line
from penstock.windows.report import Outcome
from penstock.windows.watermark import high_watermark
from penstock.windows.window import NONE, Window, packs, plain, span

log = logger("penstock.windows")


@dataclass
class Pack:
    """Neighbouring windows that are one job. The thread of the first to arrive runs it; the others share its result."""

    windows: tuple[Window, ...]
    error: BaseException | None = None
    select: Select | None = None
    _claimed: bool = False
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, select: Select) -> bool:
        """Take the pack; False if another thread has taken it."""
        with self._lock:
            mine = not self._claimed
            if mine:
                self._claimed, self.select = True, select
            return mine

    @property
    def claimed(self) -> bool:
        return self._claimed

    def close(self, error: BaseException | None) -> None:
        self.error = error
        self._over.set()

    def wait(self) -> None:
        """Wait for the thread that has claimed the pack. It closes the pack in every case, also when it is cancelled."""
        self._over.wait()


@dataclass(frozen=True)
class Request:
    """The windows that dbt was asked to run, and how."""

    windows: tuple[Window, ...]
    """In order of time."""
    named: bool = False
    """Whether the user named them, by `--event-time-start` and `--event-time-end`."""
    full_refresh: bool = False
    packed: bool = True
    """Whether the model's SQL can be used for other windows than the one that it was compiled for."""
    empty: bool = False
    """Whether no rows are wanted (`--empty`)."""


class WindowRun:
    """One run of one model. dbt's threads bring its windows one by one."""

    def __init__(self, target: Target, request: Request, *, warn: Callable[[str], None], step: Step = no_step) -> None:
        self._request = request
        self._settings = target.settings
        self._step = step
        self._warn = once(warn)
        self._lock = threading.Lock()
        self._empty = NONE
        """Windows that were found without rows, before the table was created."""
        self._whole = span(request.windows)
        journal: Journal[WindowPlan] = Journal(target.location, target.lake.storage_options)
        self._refresh = replaces(target.lake, target.name, full_refresh=request.full_refresh)
        """Whether the next window replaces the table."""
        ledger, state = WindowLedger(journal), journal.state(check=not self._refresh)
        known = Known() if self._refresh else ledger.read(state)
        self._known = known.ranges
        self._rejected = self._windows_in(known)
        self._skipped = set() if state.table is None else self._windows_below_watermark(target)
        left = [window for window in request.windows if window not in self._skipped and window not in self._rejected]
        most = self._settings.days_per_batch if request.packed else 1
        self._packs = [Pack(windows) for windows in packs(left, most)]
        if self._settings.days_per_batch > 1 and not request.packed:
            warn(f"{target.name} reads `model.batch`, so its windows are not packed: each window is one job")
        if not self._refresh and not request.empty:
            ledger.tidy(state)
            self._warn_of_holes(target, known, warn)

    @property
    def packed(self) -> bool:
        """Whether the model's SQL can be used for other windows than the one that it was compiled for."""
        return self._request.packed

    @property
    def _appends(self) -> bool:
        return not self._settings.delete_before_insert

    def needs_spark(self, window: Window) -> bool:
        """Whether a window that arrives now will be run, as far as it is known without a JVM."""
        pack = self._pack_of(window)
        return pack is not None and not pack.claimed and not (self._appends and self._known.holds(window))

    def run(self, window: Window, target: Target, select: Select) -> Outcome:
        """Bring a window in with its pack, or share the result of the thread that does.

        An error if the window is already in and would be added twice, or if its pack failed.
        """
        if window in self._rejected:
            raise PenstockError(
                f"The window {window} is in already, and would be added a second time",
                where=str(target.name),
                fix=f"To replace its rows, set `delete_before_insert: true` for one run with {command_line(window)}.",
            )
        if window in self._skipped:
            return Outcome("OK skipped: it ends at or before the high watermark")
        pack = self._pack_of(window)
        assert pack is not None
        if not pack.claim(select):
            return self._shared(pack, window, target, select)
        try:
            outcome = self._bring(pack.windows, target, select)
        except BaseException as error:
            pack.close(error)
            raise
        pack.close(None)
        return outcome

    def _shared(self, pack: Pack, window: Window, target: Target, select: Select) -> Outcome:
        pack.wait()
        if pack.error is not None:
            raise PenstockError(
                f"The window {window} failed because its pack {span(pack.windows)} failed: {pack.error}",
                where=str(target.name),
                fix="Correct the error of the pack, and run `dbt retry`.",
            )
        assert pack.select is not None
        if select.same_as(pack.select):
            return Outcome(f"OK with {span(pack.windows)}")
        # The SQL of this window differs from that of its pack: the pack brought in other rows than this window selects.
        if self._appends:
            raise PenstockError(
                f"The model's SQL for {window} differs from the SQL of the other windows of its pack",
                where=str(target.name),
                fix="Set `days_per_batch: 1`, and run once with --full-refresh.",
            )
        return self._bring((window,), target, select)

    def _bring(self, windows: tuple[Window, ...], target: Target, select: Select) -> Outcome:
        job = WindowJob(target, select, self._whole, self._step, no_rows=self._request.empty, warn=self._warn)
        state = job.journal.state(check=not self._refresh)
        with self._alone(state):
            if self._request.empty and not self._refresh and state.table is not None:
                return Outcome("OK left as it is")
            if self._appends and not self._request.empty:
                return self._append(windows, job)
            if self._refresh or state.table is None or self._is_empty_table_of_others(target, state):
                return self._create(windows, job)
            job.replace_windows(windows, state)
        return job.report.outcome(windows) if job.report.commits else Outcome("OK no files")

    def _alone(self, state: State) -> AbstractContextManager[object]:
        """A lock for windows that would conflict; windows that are partitions of the table commit side by side."""
        partitions = [] if state.table is None else [column.lower() for column in state.table.partition_columns]
        event_time = self._settings.event_time.lower()
        side_by_side = event_time in partitions and not self._refresh and not self._appends
        return nullcontext() if side_by_side else self._lock

    def _create(self, windows: tuple[Window, ...], job: WindowJob) -> Outcome:
        job.create(windows, self._empty, replace=self._refresh)
        if not job.report.committed and not self._created_by_another(job):
            self._empty = self._empty.with_(windows)
            return Outcome("OK no files")
        self._refresh = False
        left = tuple(window for window in windows if window not in job.report.windows)
        if left and not self._request.empty:
            # The plan that created the table was another run's.
            job.replace_windows(left, job.journal.state())
        return job.report.outcome(windows)

    def _created_by_another(self, job: WindowJob) -> bool:
        """Whether the table is there although this run has not created it."""
        return job.report.superseded or (not self._refresh and job.journal.state(check=False).mark is not None)

    def _append(self, windows: tuple[Window, ...], job: WindowJob) -> Outcome:
        ended = over(windows)
        if not ended:
            return Outcome(f"OK waits until {plain(windows[0].end)}, when it is over")
        job.append(ended, named=self._request.named, replace=self._refresh)
        self._refresh = self._refresh and not job.report.committed
        return job.report.outcome(windows) if job.report.windows else Outcome("OK nothing new")

    @staticmethod
    def _is_empty_table_of_others(target: Target, state: State) -> bool:
        if state.table is None or state.mark is not None:
            return False
        return Table.open(target.location, target.lake.storage_options).statistics().rows == 0

    def _pack_of(self, window: Window) -> Pack | None:
        return next((pack for pack in self._packs if window in pack.windows), None)

    def _windows_in(self, known: Known) -> set[Window]:
        if not self._appends or not self._request.named:
            return set()
        return {window for window in self._request.windows if known.ranges.touches(window)}

    def _windows_below_watermark(self, target: Target) -> set[Window]:
        if not self._settings.skip_to_high_watermark or self._request.named or self._refresh:
            return set()
        table = Table.open(target.location, target.lake.storage_options)
        reached = high_watermark(table, self._settings.event_time)
        if reached is None:
            log.info("%s: the Delta log has no statistics of the event time, so no window is skipped", table.location)
            return set()
        return {window for window in self._request.windows if window.end <= reached}

    def _warn_of_holes(self, target: Target, known: Known, warn: Callable[[str], None]) -> None:
        if self._appends:
            return  # missing windows are added first
        for hole in known.holes(self._request.windows).windows:
            warn(
                f"{target.name} was never built for {hole}, and `lookback` does not reach that far: "
                f"run `dbt run --select {target.name.identifier} {command_line(hole)}`"
            )


class WindowRuns:
    """The runs of one dbt invocation, by model. The first window of a model to arrive begins its run."""

    def __init__(self) -> None:
        self._runs: dict[str, WindowRun] = {}
        self._lock = threading.Lock()

    def of(self, model: str, begin: Callable[[], WindowRun]) -> WindowRun:
        with self._lock:
            if model not in self._runs:
                self._runs[model] = begin()
            return self._runs[model]
