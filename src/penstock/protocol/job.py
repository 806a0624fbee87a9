"""The base class of the jobs for files, changes and windows: one run of one model. The protocol calls its methods."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic

from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.layout import Layout
from penstock.delta.table import MARK, Column
from penstock.lake.folder import LakeFolder
from penstock.protocol.journal import Journal, P
from penstock.protocol.plan import InvalidPlan, StartOver, properties_of
from penstock.protocol.report import Report
from penstock.protocol.state import State
from penstock.protocol.warnings import once
from penstock.spark.commit_settings import on_sql
from penstock.sql.names import Name
from penstock.steps import Step, no_step

if TYPE_CHECKING:
    from penstock.spark.backend import Backend

Contract = Callable[[str], None]
"""Given a query before its rows are written, raises where its columns are not those that were agreed on."""


@dataclass(frozen=True)
class Running(Generic[P]):
    """A plan that was run. The table's log tells its outcome."""

    plan: P
    note: str = ""
    """The note of the plan's commit; empty if it writes no rows."""
    began: float = field(default_factory=time.monotonic)

    def outcome(self, state: State) -> CommitMetrics | None:
        """The metrics of the commit; None if another run's commit brought the plan in."""
        return None if state.table is None or not self.note else CommitMetrics.noted(state.table, self.note)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began


class Job(ABC, Generic[P]):
    """One run of one model. `protocol.run` calls its methods: catch up, plan, prepare, run; and again."""

    kind: str
    """The `kind` in the headers of its plans."""

    def __init__(
        self,
        lake: LakeFolder,
        name: Name,
        spark: Backend,
        layout: Layout,
        report: Report,
        *,
        warn: Callable[[str], None],
        contract: Contract | None = None,
        step: Step = no_step,
    ) -> None:
        self.lake = lake
        self.name = name
        self.spark = spark
        self.layout = layout
        self.step = step
        self.location = lake.location_of(name)
        self.journal: Journal[P] = Journal(self.location, lake.storage_options, spark.commit_marks)
        self.report = report
        self.warn = once(self._warn_and_report)
        """Warns the user, once a run for the same text; from any thread."""
        self._warn = warn
        self._contract = contract
        self._agreed: list[Column] = []
        """The columns that the contract was asked about last."""

    @abstractmethod
    def decode(self, number: int, data: bytes, where: str) -> P:
        """Parses a plan file of this or another run."""

    @abstractmethod
    def catch_up(self, state: State, *, replace: bool) -> None:
        """Read the commits since the last time: into the ledger, which the next plan is compared with, and the report.

        The ledger is tidied here too. No run depends on the tidying or on the report.
        """

    @abstractmethod
    def plan(self, number: int, state: State, *, replace: bool) -> P | None:
        """The next plan, or None when there is nothing to do. Nothing is changed, and no JVM starts.

        With `replace`, and where the table has no mark, it is a replace plan.
        """

    def prepare(self, plan: P, state: State) -> P | StartOver:
        """Have Spark look at the query, before the plan is written: an error leaves nothing behind.

        The contract is checked, and the table is made to fit the query's columns. StartOver if the table was changed
        for that, or if another plan is needed: the protocol reads the state and plans again.
        """
        return plan

    @abstractmethod
    def run(self, plan: P, state: State) -> InvalidPlan | StartOver | None:
        """Write the data and the plan's number in one commit; or say why this plan can never run, or not on this state.

        CommitConflict where another writer was first.
        """

    def check_commits(self) -> None:
        """PenstockError if the table's store can't keep two writers apart. It is asked before anything is written."""
        self.spark.check_commits(self.location)

    def _warn_and_report(self, text: str) -> None:
        self._warn(text)
        self.report.warnings.append(text)

    def check_contract(self, query: str, columns: list[Column]) -> None:
        """Have dbt compare the query's columns with the model's contract, once for the same columns."""
        if self._contract is not None and columns != self._agreed:
            self._contract(query)
            self._agreed = columns

    def create_table(self, plan: P, query: str, note: str, *, layout: Layout | None = None) -> None:
        """Create or replace the table: its rows, its layout and the plan's number come in one commit."""
        layout = (layout or self.layout).with_properties(properties_of(plan))
        self.lake.create_schema(self.name.schema)
        self.spark.create_table(self.name, query, layout, on_sql(MARK, plan.number, note))
