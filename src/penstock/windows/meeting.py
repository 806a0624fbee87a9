"""The windows of one `dbt run` of one model: which are to be done, together with which, and which are not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.protocol.journal import Journal
from penstock.protocol.state import State
from penstock.protocol.warnings import once
from penstock.secrets import logger
from penstock.steps import Step, no_step
from penstock.windows import job as work
from penstock.windows.job import Target, WindowJob, high_watermark
from penstock.windows.plan import Known, WindowLedger, WindowPlan
from penstock.windows.query import Select, command_line
from penstock.windows.window import NONE, Window, packs, plain, span

log = logger("penstock.windows")


@dataclass(frozen=True)
class Outcome:
    """What became of a window."""

    message: str
    rows: int = 0
    files: int = 0
    bytes: int = 0
    version: int | None = None


@dataclass
class Pack:
    """Neighbouring windows that are one job: the first to arrive runs it, the others share its result."""

    windows: tuple[Window, ...]
    error: BaseException | None = None
    select: Select | None = None
    _claimed: bool = False
    _over: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def claim(self, select: Select) -> bool:
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
        """Until the thread that has claimed it is done: it closes the pack however it ends, cancelled too."""
        self._over.wait()


@dataclass(frozen=True)
class Request:
    """What dbt was asked to run."""

    windows: tuple[Window, ...]
    """In order, from the first to the last."""
    named: bool = False
    """Whether the user named them, by `--event-time-start` and `--event-time-end`."""
    full_refresh: bool = False
    packed: bool = True
    """Whether the model's SQL can be had for more than the window that it was compiled for."""
    empty: bool = False
    """Whether no rows are wanted (`--empty`)."""


class WindowRun:
    """One run of one model. Its windows arrive one by one, in dbt's threads."""

    def __init__(self, target: Target, request: Request, *, warn: Callable[[str], None], step: Step = no_step) -> None:
        self._request = request
        self._settings = target.settings
        self._step = step
        self._warn = once(warn)
        self._lock = threading.Lock()
        self._empty = NONE
        self._whole = span(request.windows)
        journal: Journal[WindowPlan] = Journal(target.location, target.lake.storage_options)
        found = target.lake.find(target.name)
        self._anew = request.full_refresh or (found is not None and found.kind == "view")
        """Whether the next window to come in replaces the table."""
        ledger, state = WindowLedger(journal), journal.state(check=not self._anew)
        known = Known() if self._anew else ledger.read(state)
        self._known = known.ranges
        self._refused = self._windows_in(known)
        self._skipped = set() if state.table is None else self._windows_below_watermark(target)
        left = [window for window in request.windows if window not in self._skipped and window not in self._refused]
        most = self._settings.days_per_batch if request.packed else 1
        self._packs = [Pack(windows) for windows in packs(left, most)]
        if self._settings.days_per_batch > 1 and not request.packed:
            warn(f"{target.name} reads `model.batch`, so its windows are not packed: each is a job of its own")
        if not self._anew and not request.empty:
            ledger.tidy(state)
            self._warn_of_holes(target, known, warn)

    @property
    def packed(self) -> bool:
        """Whether the model's SQL can be had for more than the window that it was compiled for."""
        return self._request.packed

    @property
    def _appends(self) -> bool:
        return not self._settings.delete_before_insert

    def needs_spark(self, window: Window) -> bool:
        """Whether a window that arrives now would be run, as far as that can be told."""
        pack = self._pack_of(window)
        return pack is not None and not pack.claimed and not (self._appends and self._known.holds(window))

    def run(self, window: Window, target: Target, select: Select) -> Outcome:
        """Bring a window in, or tell why not."""
        if window in self._refused:
            raise PenstockError(
                f"The window {window} is in already, and would be in twice",
                where=str(target.name),
                fix=f"To replace it, set `delete_before_insert: true` for one run with {command_line(window)}.",
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
            raise PenstockError(f"It was to come in with {span(pack.windows)}, which failed: {pack.error}")
        assert pack.select is not None
        if select.same_as(pack.select):
            return Outcome(f"OK with {span(pack.windows)}")
        # Its SQL is its own in a way that was not foreseen: what its pack has brought in is not what it selects.
        if self._appends:
            raise PenstockError(
                f"The model's SQL for {window} is not that of the other windows of its pack",
                where=str(target.name),
                fix="Set `days_per_batch: 1`, and run once with --full-refresh.",
            )
        return self._bring((window,), target, select)

    def _bring(self, windows: tuple[Window, ...], target: Target, select: Select) -> Outcome:
        job = WindowJob(target, select, self._whole, self._step, no_rows=self._request.empty, warn=self._warn)
        state = job.journal.state(check=not self._anew)
        with self._alone(state):
            if self._request.empty and not self._anew and state.table is not None:
                return Outcome("OK left as it is")
            if self._appends and not self._request.empty:
                return self._append(windows, job)
            if self._anew or state.table is None or job.is_unclaimed(state):
                return self._make(windows, job)
            job.replace(windows, state)
        return _outcome(job, windows) if job.written else Outcome("OK no files")

    def _alone(self, state: State) -> AbstractContextManager[object]:
        """Windows that are partitions commit side by side; others would only lose against each other."""
        partitions = [] if state.table is None else [column.lower() for column in state.table.partition_columns]
        event_time = self._settings.event_time.lower()
        side_by_side = event_time in partitions and not self._anew and not self._appends
        return nullcontext() if side_by_side else self._lock

    def _make(self, windows: tuple[Window, ...], job: WindowJob) -> Outcome:
        job.make(windows, self._empty, replace=self._anew)
        if not job.committed and not self._made_by_another(job):
            self._empty = self._empty.with_(windows)
            return Outcome("OK no files")
        self._anew = False
        left = tuple(window for window in windows if window not in job.done)
        if left and not self._request.empty:
            # What was made was the plan of another run, or of one that was killed.
            job.replace(left, job.journal.state())
        return _outcome(job, windows)

    def _made_by_another(self, job: WindowJob) -> bool:
        """Whether the table is there although this run has not made it."""
        return job.superseded or (not self._anew and job.journal.state(check=False).mark is not None)

    def _append(self, windows: tuple[Window, ...], job: WindowJob) -> Outcome:
        over = [window for window in windows if window.end <= work.now()]
        if not over:
            return Outcome(f"OK waits until {plain(windows[0].end)}, when it is over")
        job.append(tuple(over), named=self._request.named, replace=self._anew)
        self._anew = self._anew and not job.committed
        return _outcome(job, windows) if job.done else Outcome("OK nothing new")

    def _pack_of(self, window: Window) -> Pack | None:
        return next((pack for pack in self._packs if window in pack.windows), None)

    def _windows_in(self, known: Known) -> set[Window]:
        if not self._appends or not self._request.named:
            return set()
        return {window for window in self._request.windows if known.ranges.touches(window)}

    def _windows_below_watermark(self, target: Target) -> set[Window]:
        if not self._settings.skip_to_high_watermark or self._request.named or self._anew:
            return set()
        table = Table.open(target.location, target.lake.storage_options)
        reached = high_watermark(table, self._settings.event_time)
        if reached is None:
            log.info("%s: its log does not tell its high watermark, so no window is skipped", table.location)
            return set()
        return {window for window in self._request.windows if window.end <= reached}

    def _warn_of_holes(self, target: Target, known: Known, warn: Callable[[str], None]) -> None:
        if self._appends:
            return  # what is missing is brought in first
        for hole in known.holes(self._request.windows).windows:
            warn(
                f"{target.name} was never built for {hole}, and `lookback` does not reach that far: "
                f"fill it by `dbt run --select {target.name.identifier} {command_line(hole)}`"
            )


class WindowRuns:
    """The runs of one dbt invocation, by model: the first window of a model to arrive begins its run."""

    def __init__(self) -> None:
        self._runs: dict[str, WindowRun] = {}
        self._lock = threading.Lock()

    def of(self, model: str, begin: Callable[[], WindowRun]) -> WindowRun:
        with self._lock:
            if model not in self._runs:
                self._runs[model] = begin()
            return self._runs[model]


def _outcome(job: WindowJob, windows: Sequence[Window]) -> Outcome:
    rows = sum(written.rows_inserted for written in job.written)
    with_others = f" of {span(job.done)}" if len(job.done) > 1 or tuple(job.done) != tuple(windows) else ""
    return Outcome(
        f"OK {rows:,} rows{with_others}",
        rows,
        sum(written.files for written in job.written),
        sum(written.bytes for written in job.written),
        max((written.version for written in job.written), default=None),
    )
