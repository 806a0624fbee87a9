"""Plans the next version ranges, from the logs of the sources alone: no JVM starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from penstock.changes.config import ChangeSource
from penstock.changes.incremental.stale_columns import ColumnsRead
from penstock.changes.incremental.way import MergeWay, Whole
from penstock.changes.ledger import ChangeLedger
from penstock.changes.plan import ChangePlan
from penstock.changes.query import ChangeQuery
from penstock.changes.source import FollowedSources
from penstock.changes.source_log import SourceChanges
from penstock.changes.version_range import Gap
from penstock.delta.commits import edits
from penstock.delta.schema_changes import IGNORE
from penstock.lake.folder import LakeFolder
from penstock.protocol.plan import new_ledger
from penstock.protocol.state import State
from penstock.sql.names import Name


class Planner:
    """Plans the commits of one run."""

    def __init__(
        self,
        lake: LakeFolder,
        name: Name,
        source: ChangeSource,
        query: ChangeQuery,
        sources: FollowedSources,
        ledger: ChangeLedger,
        warn: Callable[[str], None],
    ) -> None:
        self._lake = lake
        self._name = name
        self._source = source
        self._query = query
        self._sources = sources
        self._ledger = ledger
        self._warn = warn
        self._columns_read = ColumnsRead(query, str(name))
        self._rebuild = False
        """Whether the next plan rebuilds the table, because changes can no longer be read."""
        self._to_the_end = False
        """Whether the next plans take all versions, because the model failed at an earlier version."""
        self._again: ChangePlan | None = None
        """The plan for whose columns the table was changed."""
        self._has_warned = False
        """Whether the table was checked for rows of other SQL or of other writers: once a run."""

    def plan(self, number: int, state: State, way: MergeWay, *, replace: bool) -> ChangePlan | None:
        """The next plan, or None if there is nothing to do; a Gap if changes can no longer be read."""
        again, self._again = self._again, None
        if replace or state.mark is None or self._rebuild:
            self._rebuild = False
            return self._whole_table(number)
        if again is not None and (again.number, again.ledger) == (number, state.ledger):
            return again
        try:
            return self._next(number, state, way)
        except Gap as gap:
            if not self.rebuild_after(gap):
                raise
            self._rebuild = False
            return self._whole_table(number)

    # What a failed or an unwritten plan changes

    def repeat(self, plan: ChangePlan) -> None:
        """Plan the same once more: the table was changed to have the plan's columns, and nothing else has happened.

        A new plan would take these columns for older ones, and compute the model as a whole.
        """
        self._again = plan

    def rebuild_after(self, gap: Gap) -> bool:
        """Rebuild the table with the next plan, if `on_cdf_gap` allows it, and warn; False if it does not."""
        if self._source.on_cdf_gap != "full_refresh":
            return False
        self._warn(f"{self._name} is rebuilt: {gap.what}")
        self._rebuild = True
        return True

    def skip_ahead(self, plan: ChangePlan) -> bool:
        """Take all versions with the next plan, if there are later ones than this plan's; once a run.

        A query that fails at one version may succeed at a later one, and a plan that fails must not block the table for ever.
        """
        if self._to_the_end or not self._sources.have_moved_on(plan.ranges):
            return False
        self._sources.forget()
        self._to_the_end = True
        return True

    # Plans

    def _whole_table(self, number: int) -> ChangePlan:
        self._sources.look_up({})
        model = self._query.digest
        return ChangePlan(
            number,
            number,
            self._sources.whole(),
            replace=True,
            model=model,
            built=model,
            key=self._source.unique_key,
            ledger=new_ledger(),
        )

    def _next(self, number: int, state: State, way: MergeWay) -> ChangePlan | None:
        last = self._ledger.last(state)
        self._refuse_other_key(last)
        self._warn_of_others(last, state)
        position = last.position(void=state.last_is_void)
        self._sources.look_up(position)
        ranges = self._sources.since(position, None if self._to_the_end else self._source.cdf_max_versions)
        changes = self._sources.changes(ranges)
        rows = any(changed.segments for changed in changes.values())
        whole = self._why_whole(changes, way, rows)
        columns = not rows and (bool(whole) or self._may_have_other_columns(changes, last, state))
        if all(versions.is_empty for versions in ranges) and not columns:
            return None
        return ChangePlan(
            number,
            state.generation,
            ranges,
            rows=rows,
            columns=columns,
            whole=whole,
            model=self._query.digest,
            built=last.made_by(void=state.last_is_void),
            key=self._source.unique_key,
            ledger=state.ledger,
        )

    def _refuse_other_key(self, last: ChangePlan) -> None:
        """A Gap if the table was built with another key: different rows would count as the same."""
        if last.key and {name.lower() for name in last.key} != {name.lower() for name in self._source.unique_key}:
            raise Gap(
                f"`unique_key` is ({', '.join(self._source.unique_key)}) now, and the table was built by "
                f"({', '.join(last.key)})",
                where=str(self._name),
            )

    def _warn_of_others(self, last: ChangePlan, state: State) -> None:
        """Warn, once a run, if other SQL or another writer produced rows of the table."""
        if self._has_warned:
            return
        self._has_warned = True
        if last.made_by(void=state.last_is_void) != self._query.digest:
            self._warn(
                f"The SQL of {self._name}, or of a view that it reads, has changed since the table was built: rows "
                "that do not change keep the values of the old SQL; run with --full-refresh"
            )
        if changed := edits(list(state.others), appends=True):
            self._warn(f"{self._name} was changed by others: {', '.join(changed)}; --full-refresh rebuilds it")

    def _why_whole(self, changes: Mapping[Name, SourceChanges], way: MergeWay, rows: bool) -> str:
        """Why the model is computed as a whole, which is always right; empty if its changes are enough."""
        if any(changed.has_other_columns for changed in changes.values()):
            ours = [column.name.lower() for column in self._lake.columns(self._name)]
            for name, changed in changes.items():
                if why := self._columns_read.why_stale(changed, ours):
                    return f"{name}: {why}"
        if not rows:
            return ""
        return way.why if isinstance(way, Whole) else self._sources.why_whole(way)

    def _may_have_other_columns(self, changes: Mapping[Name, SourceChanges], last: ChangePlan, state: State) -> bool:
        """Whether the model may have other columns than its table. This matters if no row changes."""
        if self._source.on_schema_change == IGNORE:
            return False
        return (
            last.model != self._query.digest
            or (last.columns and state.last_is_void)
            or (self._columns_read.star and any(changed.has_other_columns for changed in changes.values()))
        )
