"""The ledger: which windows are in a table."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from penstock.errors import NotFound
from penstock.lake.relations import LEDGER_FOLDER
from penstock.protocol.journal import Journal
from penstock.protocol.plan import FORMAT, check_ledger
from penstock.protocol.state import GENERATION, State
from penstock.storage import join
from penstock.windows.plan import WindowPlan
from penstock.windows.window import NONE, Ranges, Window

_FOLDER = f"{LEDGER_FOLDER}/windows"
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"(\d{8}T\d{6}Z)_(\d{8}T\d{6}Z)")
_OF_A_GENERATION = re.compile(rf"{_FOLDER}/\d+/{_NAME.pattern}")
_MOST = 100
"""If there are more records than this, they are merged. This many plans are kept."""


@dataclass(frozen=True)
class Known:
    """The windows that are in a table."""

    ranges: Ranges = NONE
    plan: WindowPlan | None = None
    """The last committed plan; None where the table has no mark of ours."""

    @property
    def begin(self) -> datetime | None:
        """The start of the table's first window."""
        starts = [self.plan.whole.start] if self.plan is not None and self.plan.whole is not None else []
        starts += [window.start for window in self.ranges.windows[:1]]
        return min(starts, default=None)

    def holes(self, soon: Iterable[Window]) -> Ranges:
        """The windows that should be in the table, are not, and are not among those that come in `soon`."""
        known = self.ranges.with_(soon)
        ends = [window.end for window in known.windows[-1:]]
        if self.plan is not None and self.plan.whole is not None:
            ends.append(self.plan.whole.end)
        if self.begin is None or not ends:
            return NONE
        return known.gaps(Window(self.begin, max(ends)))


class WindowLedger:
    """Reads and writes the ledger of one table: the last committed plan, and a record for each replaced window.

    A window that replaces rows has no mark in the log, because to run it again does no harm; so such windows commit
    side by side. Its record is written after its commit. If a kill comes between the two, the window is reported as a
    hole although its rows are in.
    """

    def __init__(self, journal: Journal[WindowPlan]) -> None:
        self._journal = journal

    def read(self, state: State) -> Known:
        """The windows that are in the table; an error if the plan of its mark is missing. No JVM starts."""
        if state.table is None:
            return Known()
        recorded = [window for window, _ in self._records(state)]
        if state.mark is None or GENERATION not in state.table.properties:
            return Known(Ranges.of(recorded))
        path = self._journal.path_of(state.mark)
        where = join(self._journal.location, path)
        try:
            plan = WindowPlan.from_bytes(state.mark, self._journal.storage.read(path), where, committed=True)
        except NotFound as error:
            raise NotFound(
                f"The ledger lacks plan {state.mark}, which is in the table",
                where=where,
                fix="Put the file back from a backup, or run with --full-refresh.",
            ) from error
        check_ledger(plan, state, where)
        return Known(plan.ranges.with_(recorded), plan)

    def recorded(self, state: State) -> list[tuple[Window, datetime]]:
        """The windows that have a record of their own, each with the time of the record; none where there is no table."""
        return [(window, modified) for window, _, modified in self._found(state)] if state.table is not None else []

    def record(self, window: Window, generation: int, facts: dict[str, Any]) -> None:
        """Record that a window's rows are in."""
        header = {"format_version": FORMAT, "kind": "window", "window": window.texts(), **facts}
        self._journal.storage.write(_path(window, generation), json.dumps(header).encode())

    def tidy(self, state: State) -> None:
        """Merge records if there are many, and remove plans and records that the last plan replaces."""
        if state.table is None:
            return
        records = list(self._records(state))
        if len(records) > _MOST:
            merged = Ranges.of(window for window, _ in records).windows
            for window in merged:
                self.record(window, state.generation, {})
            kept = {_path(window, state.generation) for window in merged}
            self._remove(path for _, path in records if path not in kept)
        if state.mark is not None:
            plans = sorted(number for number in self._journal.records().plans if number < state.mark)
            earlier = [number for number in plans if number < state.generation]
            self._remove(self._journal.path_of(number) for number in {*earlier, *plans[:-_MOST]})
            self._remove(path for path, generation in self.all_records() if generation < state.generation)

    def all_records(self) -> list[tuple[str, int]]:
        """The paths of the records of all generations, each with its generation."""
        found = (entry.path for entry in self._journal.storage.list(_FOLDER))
        return [(path, _generation_of(path)) for path in found if _OF_A_GENERATION.fullmatch(path)]

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._journal.storage.delete(path)

    def _records(self, state: State) -> list[tuple[Window, str]]:
        return [(window, path) for window, path, _ in self._found(state)]

    def _found(self, state: State) -> list[tuple[Window, str, datetime]]:
        folder = f"{_FOLDER}/{state.generation}"
        found = []
        for entry in self._journal.storage.list(folder):
            # Other names belong to others, or are left from an interrupted write.
            name = entry.path.rsplit("/", 1)[-1]
            if stamps := _NAME.fullmatch(name):
                moments = (datetime.strptime(item, _STAMP).replace(tzinfo=timezone.utc) for item in stamps.groups())
                found.append((Window(*moments), f"{folder}/{name}", entry.modified))
        return found


def _generation_of(path: str) -> int:
    """The generation of a record, from its path."""
    return int(path.split("/")[-2])


def _path(window: Window, generation: int) -> str:
    return f"{_FOLDER}/{generation}/{window.start.strftime(_STAMP)}_{window.end.strftime(_STAMP)}"
