"""Prepares a plan: what only Spark can tell before any row is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from penstock.changes.config import ChangeSource
from penstock.changes.incremental.classify import classify_seen
from penstock.changes.incremental.model_change import ModelChange
from penstock.changes.incremental.way import MergeWay, Whole
from penstock.changes.plan import ChangePlan
from penstock.changes.query import ChangeQuery
from penstock.changes.source import FollowedSources
from penstock.delta.schema_changes import Difference, Fitted
from penstock.delta.table import Column, Table
from penstock.errors import PenstockError, StatementError
from penstock.protocol.job import Job
from penstock.protocol.schema import fit
from penstock.protocol.state import State
from penstock.spark.facts import Call, facts
from penstock.spark.query_columns import of_frame
from penstock.spark.views import TemporaryViews
from penstock.sql.names import Name

_INCOMPARABLE = re.compile(r"\b(map<|variant\b)")


@dataclass(frozen=True)
class PreparedPlan:
    """A plan that is ready to run, with the views that it reads. Close it after its use."""

    plan: ChangePlan
    state: State
    """The state that the plan was prepared on."""
    views: TemporaryViews
    change: ModelChange
    """The SQL of the model's change, by the way that this plan takes."""
    way: MergeWay
    """The way to keep the model's table, as Spark sees the model."""
    by_order: tuple[Call, ...]
    """Aggregates whose result depends on the order of rows."""
    columns: Sequence[Fitted] = ()
    """The table's columns that the model fills; none for a plan that replaces the table."""
    misfits: Sequence[str] = ()
    """The columns whose types differ between the model and the table."""

    def is_of(self, plan: ChangePlan, state: State) -> bool:
        return self.plan == plan and self.state is state

    def close(self) -> None:
        self.views.close()


class Preparation:
    """Prepares the plans of one run."""

    def __init__(
        self, job: Job[ChangePlan], source: ChangeSource, query: ChangeQuery, sources: FollowedSources
    ) -> None:
        self._job = job
        self._source = source
        self._query = query
        self._sources = sources

    def prepare(self, plan: ChangePlan, state: State) -> PreparedPlan | None:
        """Have Spark parse the model, check the contract and the key, and make the table fit the model's columns.

        None if the table was changed for that. Nothing but the table's columns is written.
        """
        with ExitStack() as stack:
            views = stack.enter_context(TemporaryViews(self._job.spark))
            prepared, made = self._parsed(plan, state, views)
            if not plan.replace:
                columns = self._fit(made, state)
                if columns is None:
                    return None
                misfits = [str(item) for found in Difference(made, columns).changes.values() for item in found]
                prepared = replace(prepared, columns=columns, misfits=misfits)
            stack.pop_all()  # the views stay for the run
            return prepared

    def _parsed(self, plan: ChangePlan, state: State, views: TemporaryViews) -> tuple[PreparedPlan, list[Column]]:
        """The plan as Spark sees the model, and the model's columns.

        The plan in the log was made from the text alone, perhaps by another version, so Spark decides each time.
        """
        change = self._change(plan, views)
        query = change.new()
        frame = self._job.spark.query(query)
        seen = facts(frame)
        way = classify_seen(self._query, self._source.unique_key, str(self._job.name), seen)
        made = of_frame(frame)
        self._job.check_contract(query, made)
        self._check_key(made)
        if not plan.whole:
            why = "" if isinstance(way, Whole) else self._sources.why_whole(way)
            change = replace(change, way=Whole(why) if why else way)
        return PreparedPlan(plan, state, views, change, way, seen.by_order), made

    def _change(self, plan: ChangePlan, views: TemporaryViews) -> ModelChange:
        """The SQL of the model's change over the plan's version ranges; a whole until Spark has seen the model."""
        ranges = {Name.parse(versions.name): versions for versions in plan.ranges}
        self._sources.check(ranges, self._job.location)
        pinned = {
            read.name: Table.open(read.location, self._job.lake.storage_options, files=False).version
            for read in self._query.reads
            if read.name not in ranges
        }
        segments = {name: changed.segments for name, changed in self._sources.changes(plan.ranges).items()}
        return ModelChange(self._query, Whole(plan.whole), ranges, segments, pinned, self._source.unique_key, views)

    def _check_key(self, columns: Sequence[Column]) -> None:
        types = {column.name.lower(): column.type for column in columns}
        unknown = [key for key in self._source.unique_key if key.lower() not in types]
        if unknown:
            raise PenstockError(
                f"`unique_key` names {', '.join(unknown)}, and the model's result has no such column",
                where=str(self._job.name),
                fix=f"It has {', '.join(column.name for column in columns)}.",
            )
        for key in self._source.unique_key:
            if _INCOMPARABLE.search(types[key.lower()]):
                raise PenstockError(
                    f"`unique_key` has {key}, a {types[key.lower()]}: Spark cannot join by maps and variants",
                    where=str(self._job.name),
                    fix=f"Use other key columns, or convert it: to_json({key}) as {key}.",
                )

    def _fit(self, made: Sequence[Column], state: State) -> list[Fitted] | None:
        """The columns that the model fills, as `on_schema_change` says; None if the table was changed for that."""
        job = self._job
        try:
            columns = fit(
                job.lake,
                job.name,
                made,
                self._source.on_schema_change,
                job.spark,
                state.note("columns"),
                job.warn,
            )
        except StatementError:
            if not self._has_other_columns(state):
                raise
            return None  # another run has changed the same columns first
        return None if self._has_other_columns(state) else columns

    def _has_other_columns(self, state: State) -> bool:
        """Whether the table's columns were changed since the state was read."""
        assert state.table is not None
        return self._job.lake.columns(self._job.name) != state.table.columns
