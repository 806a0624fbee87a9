"""What a run of one model would do now: the same planning as the run's, without writing, tidying or starting a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from penstock.changes.incremental.classify import classify
from penstock.changes.incremental.way import name_of
from penstock.changes.ledger import ChangeLedger
from penstock.changes.plan import KIND as CHANGES
from penstock.changes.plan import ChangePlan
from penstock.changes.planning import Planner
from penstock.changes.query import ChangeQuery
from penstock.changes.source import FollowedSources
from penstock.changes.version_range import VersionRange
from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.table import Table
from penstock.errors import NotFound, PenstockError
from penstock.files.landing import Landing
from penstock.files.ledger import Ledger
from penstock.files.plan import KIND as FILES
from penstock.files.plan import FilePlan
from penstock.lake.folder import LakeFolder
from penstock.protocol.journal import Journal
from penstock.protocol.state import State
from penstock.protocol.target import replaces
from penstock.windows.backlog import WindowBacklog, over
from penstock.windows.ledger import Known, WindowLedger
from penstock.windows.plan import KIND as WINDOWS
from penstock.windows.plan import WindowPlan
from penstock.windows.watermark import high_watermark
from penstock.windows.window import Window, packs

if TYPE_CHECKING:
    from penstock.changes.config import ChangeSource
    from penstock.files.config import FileSource
    from penstock.files.source import Listings
    from penstock.windows.config import WindowSettings
    from penstock.windows.query import Select

AT_RUN = "decided at run"
"""The way of changes that only Spark can tell."""


@dataclass(frozen=True)
class PlannedFiles:
    """The files that a run would ingest."""

    creates: bool
    """Whether the run creates the table, or builds it anew."""
    unfinished: int | None
    """The plan that an earlier run left; this one does it first, as it stands."""
    files: int
    batches: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None
    skipped: int
    """Files that are only recorded: empty ones, and those before `starting_timestamp`."""
    young: int
    """Files that wait for a later run, because they are younger than the safety buffer."""
    warnings: tuple[str, ...] = ()

    @property
    def has_work(self) -> bool:
        return self.unfinished is not None or bool(self.files) or (bool(self.skipped) and not self.creates)


@dataclass(frozen=True)
class PlannedRange:
    """The versions of one source that would come in."""

    source: str
    first: int | None
    """None if the table is built from version `last`."""
    last: int
    rows: int | None
    """Rows that the commits inserted, updated or deleted, by their metrics; None if the log does not tell."""


@dataclass(frozen=True)
class PlannedChanges:
    """The changes that a run would merge."""

    creates: bool
    unfinished: int | None
    ranges: tuple[PlannedRange, ...]
    """Empty if nothing has changed."""
    more: bool
    """Whether more versions come after these, in further commits (`cdf_max_versions`)."""
    way: str
    """`rows`, `keys` or `whole`; AT_RUN if no plan of this SQL has recorded it yet."""
    why: str
    """Why the model is computed as a whole."""
    warnings: tuple[str, ...] = ()

    @property
    def has_work(self) -> bool:
        return self.unfinished is not None or bool(self.ranges)


@dataclass(frozen=True)
class PlannedWindows:
    """The windows that a run would build."""

    creates: bool
    unfinished: int | None
    windows: tuple[str, ...]
    jobs: int
    """Windows are packed into jobs; each is one commit."""
    skipped: int
    """Windows that end at or before the high watermark."""
    waiting: int
    """Windows that are not over, or whose files are still being written."""
    holes: tuple[str, ...]
    """Windows that were never built, and that this run does not reach."""

    @property
    def has_work(self) -> bool:
        return self.unfinished is not None or bool(self.windows)


Planned = PlannedFiles | PlannedChanges | PlannedWindows


@dataclass(frozen=True)
class _Target:
    """The table of a model as it is now. The table may not exist."""

    journal: Journal[Any]
    replace: bool
    state: State

    @classmethod
    def of(cls, lake: LakeFolder, name: Any, *, refresh: bool) -> _Target:
        replace = replaces(lake, name, full_refresh=refresh)
        relation = lake.find(name)
        link = lake.link_of(name)
        location = relation.location if relation is not None else (link.location if link else lake.folder_of(name))
        journal: Journal[Any] = Journal(location, lake.storage_options)
        return cls(journal, replace, journal.state(check=not replace))

    @property
    def creates(self) -> bool:
        return self.replace or self.state.mark is None

    def unfinished(self, decoder: Any) -> int | None:
        """The number of the plan that the run would find; a refresh runs no other run's plan."""
        if self.replace:
            return None
        self.journal.check_claimable(self.state)
        plan = self.journal.unfinished(self.state, decoder)
        return None if plan is None else int(plan.number)


@dataclass(frozen=True)
class _Decoder:
    """Reads the plans of one kind."""

    kind: str
    plan: Any

    def decode(self, number: int, data: bytes, where: str) -> Any:
        found = self.plan.from_bytes(number, data, where)
        return found.named(found.roots) if isinstance(found, FilePlan) else found


def planned_files(
    lake: LakeFolder, name: Any, source: FileSource, listings: Listings, *, refresh: bool = False
) -> PlannedFiles:
    """The files that a run would ingest; a PenstockError if the run would fail before its first batch."""
    target = _Target.of(lake, name, refresh=refresh)
    unfinished = target.unfinished(_Decoder(FILES, FilePlan))
    ledger = Ledger(target.journal)
    if not target.creates:
        ledger.follow(target.state)
    warnings: list[str] = []
    selection = Landing(name, source, listings, ledger, warnings.append).look(target.state, replace=target.replace)
    files = selection.backlog.files
    times = pc.min_max(files["modificationTime"]).as_py()
    return PlannedFiles(
        creates=target.creates,
        unfinished=unfinished,
        files=files.num_rows,
        batches=selection.backlog.batches,
        bytes=sum(files["size"].to_pylist()),
        oldest=_moment(times["min"]),
        newest=_moment(times["max"]),
        skipped=selection.aside.num_rows,
        young=selection.waiting,
        warnings=tuple(warnings),
    )


def planned_changes(
    lake: LakeFolder, name: Any, source: ChangeSource, select: str, *, refresh: bool = False
) -> PlannedChanges:
    """The changes that a run would merge; a PenstockError if the run would fail before it asks Spark."""
    query = ChangeQuery.read(lake, select, name)
    way = classify(query, source.unique_key, str(name))
    target = _Target.of(lake, name, refresh=refresh)
    unfinished = target.unfinished(_Decoder(CHANGES, ChangePlan))
    sources = FollowedSources(lake, source, query, str(name))
    ledger = ChangeLedger(target.journal)
    warnings: list[str] = []
    planner = Planner(lake, name, source, query, sources, ledger, warnings.append)
    number = 0 if target.creates else target.journal.next_number(target.state, refresh=False)
    plan = planner.plan(number, target.state, way, replace=target.replace)
    if plan is None:
        return PlannedChanges(False, unfinished, (), False, AT_RUN, "", tuple(warnings))
    last = None if target.creates else ledger.last(target.state)
    recorded = last is not None and last.model == query.digest and not last.replace and not target.state.last_is_void
    return PlannedChanges(
        creates=plan.replace,
        unfinished=unfinished,
        ranges=tuple(_range(lake, versions) for versions in plan.ranges if not versions.is_empty),
        more=sources.have_moved_on(plan.ranges),
        way=_way(plan, last if recorded else None, name_of(way)),
        why=plan.whole or (last.whole if recorded and last is not None else ""),
        warnings=tuple(warnings),
    )


def _way(plan: ChangePlan, last: ChangePlan | None, by_text: str) -> str:
    if plan.replace or plan.whole:
        return "whole"
    if last is None or not last.rows:
        return AT_RUN
    return "whole" if last.whole else by_text


def _range(lake: LakeFolder, versions: VersionRange) -> PlannedRange:
    if versions.start is None:
        return PlannedRange(versions.name, None, versions.end, None)
    rows: int | None = 0
    left = versions.end - versions.start
    for commit in Table.open(versions.location, lake.storage_options, files=False).commits():
        if versions.start < int(commit["version"]) <= versions.end:
            left -= 1
            rows = rows + CommitMetrics.from_commit(commit).rows if rows is not None else None
        if left == 0:
            break
    return PlannedRange(versions.name, versions.start + 1, versions.end, rows if left == 0 else None)


def planned_windows(
    lake: LakeFolder,
    name: Any,
    settings: WindowSettings,
    windows: Sequence[Window],
    select: Select | None,
    *,
    refresh: bool = False,
    named: bool = False,
    packed: bool = True,
) -> PlannedWindows:
    """The windows that a run would build, of those that dbt asks for.

    `select` is needed for windows that are added from files: it knows which files are still being written.
    """
    target = _Target.of(lake, name, refresh=refresh)
    known = Known() if target.replace else WindowLedger(target.journal).read(target.state)
    wanted = tuple(windows)
    most = settings.days_per_batch if packed else 1
    if settings.delete_before_insert:
        below = () if target.creates or named else _below_watermark(lake, target, settings, wanted)
        left = [window for window in wanted if window not in below]
        holes = () if target.replace else known.holes(wanted).windows
        return PlannedWindows(
            target.creates, None, _texts(left), len(packs(left, most)), len(below), 0, tuple(map(str, holes))
        )
    unfinished = target.unfinished(_Decoder(WINDOWS, WindowPlan))
    if named and (twice := [window for window in wanted if known.ranges.touches(window)]):
        raise PenstockError(
            f"The window {twice[0]} is in already, and would be added a second time",
            where=str(name),
            fix="To replace its rows, set `delete_before_insert: true` for one run.",
        )
    ended = over(wanted)
    if not ended:
        return PlannedWindows(target.creates, unfinished, (), 0, 0, len(wanted), ())
    backlog = WindowBacklog(settings, wanted[0].start, ended[-1].end, wanted if named else None)
    ready = backlog.packs(known, select or _Settled(), replace=target.creates)
    found = [window for pack in ready for window in pack]
    missing = [window for window in wanted if window not in found and not known.ranges.holds(window)]
    return PlannedWindows(target.creates, unfinished, _texts(found), len(packs(found, most)), 0, len(missing), ())


class _Settled:
    """The SELECT of a model over tables: nothing of a window is still being written."""

    def is_settled(self, window: Window) -> bool:
        return True

    def is_empty(self, window: Window) -> bool:
        return False

    def schema(self, window: Window, known: dict[str, Any] | None) -> dict[str, Any] | None:
        return None

    def over(self, window: Window, schema: dict[str, Any] | None) -> Any:
        raise AssertionError("nothing is run")

    def same_as(self, other: Any) -> bool:
        return True


def _below_watermark(
    lake: LakeFolder, target: _Target, settings: WindowSettings, windows: Sequence[Window]
) -> tuple[Window, ...]:
    if not settings.skip_to_high_watermark:
        return ()
    try:
        table = Table.open(target.journal.location, lake.storage_options)
    except NotFound:
        return ()
    reached = high_watermark(table, settings.event_time)
    return () if reached is None else tuple(window for window in windows if window.end <= reached)


def _texts(windows: Sequence[Window]) -> tuple[str, ...]:
    return tuple(map(str, windows))


def _moment(millis: int | None) -> datetime | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, tz=timezone.utc)
