"""One table with its ledger, opened for reading: nothing is tidied, and no JVM starts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from penstock.changes.ledger import ChangeLedger
from penstock.changes.plan import KIND as CHANGES
from penstock.changes.plan import ChangePlan
from penstock.delta.table import Table
from penstock.errors import NotFound, PenstockError
from penstock.files.config import FileSource
from penstock.files.landing import Landing
from penstock.files.ledger import Ledger
from penstock.files.plan import KIND as FILES
from penstock.files.plan import FilePlan
from penstock.files.selection import Selection
from penstock.files.source import Listings
from penstock.lake.lookup import Lookup
from penstock.lake.relations import Relation
from penstock.protocol.journal import SUMMARY, Journal
from penstock.protocol.plan import read_header
from penstock.protocol.state import State
from penstock.storage import join
from penstock.windows.ledger import Known, WindowLedger
from penstock.windows.plan import KIND as WINDOWS
from penstock.windows.plan import WindowPlan


@dataclass(frozen=True)
class TableLedger:
    """A table, where it stands, and its ledger if it has one."""

    lake: Lookup
    relation: Relation
    journal: Journal[Any]
    state: State

    @classmethod
    def open(cls, lake: Lookup, name: str | Relation, *, check: bool = True) -> TableLedger:
        """The table of this name. With `check`, an error if other writers have removed rows that penstock committed."""
        relation = lake.get(name) if isinstance(name, str) else name
        if relation.kind != "table":
            raise PenstockError(f"{relation} is a {relation.kind}, so it has no ledger")
        journal: Journal[Any] = Journal(relation.location, lake.storage_options)
        return cls(lake, relation, journal, journal.state(check=check))

    @classmethod
    def of(cls, lake: Lookup, relation: Relation, table: Table) -> TableLedger:
        """The same of a table that is open already. Nothing is checked: see `lost_rows`."""
        journal: Journal[Any] = Journal(relation.location, lake.storage_options)
        return cls(lake, relation, journal, journal.state_of(table, check=False))

    @property
    def lost_rows(self) -> str | None:
        """Why rows that penstock committed are gone; None if other writers have left them."""
        table = self.state.table
        if table is None or self.state.mark is None:
            return None
        try:
            self.journal.state_of(table, check=True)
        except PenstockError as error:
            return str(error)
        return None

    @cached_property
    def header(self) -> Mapping[str, Any] | None:
        """The header of the newest committed plan; None if no commit of the table has a number of ours."""
        number = self.state.mark
        if number is None:
            return None
        where = join(self.journal.location, self.journal.path_of(number))
        try:
            return read_header(self.journal.storage.read(self.journal.path_of(number)), where)
        except NotFound as error:
            raise NotFound(
                f"The ledger lacks plan {number}, which is in the table",
                where=where,
                fix="Put the file back from a backup, or run with --full-refresh.",
            ) from error

    @property
    def kind(self) -> str:
        """`files`, `changes` or `windows`; `table` if the table has no ledger."""
        if self.header is not None:
            return str(self.header["kind"])
        # Windows that replace their rows have records, and may have no mark.
        return WINDOWS if self.state.table is not None and self.windows.ranges.windows else "table"

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """The summary that the last run wrote for people; empty if there is none that can be read."""
        try:
            found = json.loads(self.journal.storage.read(SUMMARY))
        except (NotFound, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def check_kind(self, kind: str, what: str) -> None:
        """PenstockError if the ledger is of another kind."""
        if self.kind != kind:
            raise PenstockError(f"{self.relation} {what}", where=self.relation.location)

    # Files

    @cached_property
    def files(self) -> Ledger:
        """The ledger of a table of files, read."""
        self.check_kind(FILES, "is not built from files, so no file is in its ledger")
        ledger = Ledger(self.journal)
        ledger.follow(self.state)
        return ledger

    @property
    def file_source(self) -> FileSource:
        """The files' source, by the keys of the run that planned the newest batch."""
        header = self.header or {}
        keys = {"source_roots": list(self.files.roots.roots), **(header.get("selection") or {})}
        return FileSource.from_mapping(keys, where=str(self.relation), storage_options=self.lake.storage_options)

    @property
    def knows_selection(self) -> bool:
        """Whether the newest plan says how files were selected. Plans of 0.1.0 do not: then every file counts."""
        return (self.header or {}).get("selection") is not None

    def landing(self, listings: Listings, warn: Callable[[str], None], source: FileSource | None = None) -> Selection:
        """The files that the next run finds new, compared as the run compares them."""
        return Landing(self.relation.name, source or self.file_source, listings, self.files, warn).look(
            self.state, replace=False
        )

    def file_plan(self, number: int) -> FilePlan | None:
        """A plan of files; None if its file is not there any more."""
        found: FilePlan | None = self._plan(number, FilePlan)
        return found

    # Changes and windows

    @cached_property
    def changes(self) -> ChangePlan:
        """The newest plan of a table that follows changes."""
        self.check_kind(CHANGES, "does not follow changes")
        return ChangeLedger(self.journal).last(self.state)

    def change_plan(self, number: int) -> ChangePlan | None:
        """A plan of changes; None if its file is not there any more."""
        found: ChangePlan | None = self._plan(number, ChangePlan)
        return found

    @cached_property
    def windows(self) -> Known:
        """The windows that are in the table."""
        return WindowLedger(self.journal).read(self.state)

    def window_plan(self, number: int) -> WindowPlan | None:
        """A plan of windows; None if its file is not there any more."""
        found: WindowPlan | None = self._plan(number, WindowPlan)
        return found

    @property
    def unfinished(self) -> int | None:
        """The number of the plan that is written and not committed; None if there is none."""
        if self.state.mark is None:
            return None
        number = self.state.mark + 1
        return number if self.journal.storage.exists(self.journal.path_of(number)) else None

    def _plan(self, number: int, kind: Any) -> Any:
        path = self.journal.path_of(number)
        try:
            data = self.journal.storage.read(path)
        except NotFound:
            return None
        plan = kind.from_bytes(number, data, join(self.journal.location, path))
        return plan if plan.ledger == self.state.ledger or plan.replace else None
