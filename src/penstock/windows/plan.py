"""The ledger of windows: what is written down before, or beside, a window's data."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from penstock.errors import NotFound, PenstockError
from penstock.lake.relations import LEDGER_FOLDER
from penstock.protocol.journal import Journal
from penstock.protocol.plan import FORMAT, check_header, check_ledger
from penstock.protocol.state import GENERATION, State
from penstock.storage import join
from penstock.windows.window import NONE, Ranges, Window

_FOLDER = f"{LEDGER_FOLDER}/windows"
_STAMP = "%Y%m%dT%H%M%SZ"
_NAME = re.compile(r"(\d{8}T\d{6}Z)_(\d{8}T\d{6}Z)")
_OF_A_GENERATION = re.compile(rf"{_FOLDER}/\d+/{_NAME.pattern}")
_MOST = 100
"""More records than this are made into fewer; more plans than this are not kept."""
APPEND, REPLACE = "append", "replace"
KIND = "windows"


@dataclass(frozen=True)
class WindowPlan:
    """Windows that are one commit. Each plan tells all that came in before it, so that the last is the ledger."""

    number: int
    generation: int
    windows: tuple[Window, ...]
    mode: str
    replace: bool = False
    """Whether it makes the table, or makes it anew."""
    before: Ranges = NONE
    """What came in before it, in this generation."""
    whole: Window | None = None
    """What the run that made the table was to bring in: what of it is missing later are holes."""
    shape: dict[str, Any] | None = None
    """What the files of `@data` are read as."""
    ledger: str | None = None
    """The table's life that it belongs to, or begins."""
    time: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def ranges(self) -> Ranges:
        return self.before.with_(self.windows)

    def to_bytes(self) -> bytes:
        header = {
            "format_version": FORMAT,
            "kind": KIND,
            "ledger": self.ledger,
            "number": self.number,
            "generation": self.generation,
            "batchId": self.number - self.generation,
            "replace": self.replace,
            "mode": self.mode,
            "time": self.time,
            "windows": [window.texts() for window in self.windows],
            "before": self.before.texts(),
            "whole": None if self.whole is None else self.whole.texts(),
            "shape": self.shape,
        }
        return json.dumps(header).encode() + b"\n"

    @classmethod
    def from_bytes(cls, number: int, data: bytes, where: str) -> WindowPlan:
        try:
            header = json.loads(data.partition(b"\n")[0])
            check_header(header, number, KIND, where)
            whole = header["whole"]
            return cls(
                number,
                header["generation"],
                tuple(Window.of(*texts) for texts in header["windows"]),
                header["mode"],
                header["replace"],
                Ranges.of(Window.of(*texts) for texts in header["before"]),
                None if whole is None else Window.of(*whole),
                header["shape"],
                header.get("ledger"),
                header["time"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise PenstockError(
                f"This plan can't be read: {error}",
                where=where,
                fix="Put it back from a backup; or move it away where its windows are not in the table; "
                "or run with --full-refresh.",
            ) from error


@dataclass(frozen=True)
class Known:
    """What the ledger says of a table."""

    ranges: Ranges = NONE
    plan: WindowPlan | None = None
    """The last that was committed, where the table is one of ours."""

    @property
    def begin(self) -> datetime | None:
        """Where the table's windows begin."""
        starts = [self.plan.whole.start] if self.plan is not None and self.plan.whole is not None else []
        starts += [window.start for window in self.ranges.windows[:1]]
        return min(starts, default=None)

    def holes(self, soon: Iterable[Window]) -> Ranges:
        """What should be in, and neither is nor soon will be."""
        known = self.ranges.with_(soon)
        ends = [window.end for window in known.windows[-1:]]
        if self.plan is not None and self.plan.whole is not None:
            ends.append(self.plan.whole.end)
        if self.begin is None or not ends:
            return NONE
        return known.gaps(Window(self.begin, max(ends)))


class WindowLedger:
    """The windows that are in: by the last plan, and, of those that replaced others, by a record each.

    A window that replaces needs no mark in the log, because doing it again does no harm; so such windows commit side by
    side. Their records are written after their commits: one that a kill kept from being written is a hole that is none.
    """

    def __init__(self, journal: Journal[WindowPlan]) -> None:
        self._journal = journal

    def read(self, state: State) -> Known:
        if state.table is None:
            return Known()
        recorded = [window for window, _ in self._records(state)]
        if state.mark is None or GENERATION not in state.table.properties:
            return Known(Ranges.of(recorded))
        path = self._journal.path_of(state.mark)
        where = join(self._journal.location, path)
        try:
            plan = WindowPlan.from_bytes(state.mark, self._journal.storage.read(path), where)
        except NotFound as error:
            raise NotFound(
                f"The ledger lacks plan {state.mark}, which is in the table",
                where=where,
                fix="Put the file back from a backup, or run with --full-refresh.",
            ) from error
        check_ledger(plan, state, where)
        return Known(plan.ranges.with_(recorded), plan)

    def record(self, window: Window, generation: int, facts: dict[str, Any]) -> None:
        """Note that a window's rows are in."""
        header = {"format_version": FORMAT, "kind": "window", "window": window.texts(), **facts}
        self._journal.storage.write(_path(window, generation), json.dumps(header).encode())

    def tidy(self, state: State) -> None:
        """Make many records into few, and remove plans that the last one makes needless."""
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
            self._remove(path for path in self._all_records() if _generation_of(path) < state.generation)

    def _all_records(self) -> list[str]:
        found = (entry.path for entry in self._journal.storage.list(_FOLDER))
        return [path for path in found if _OF_A_GENERATION.fullmatch(path)]

    def _remove(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._journal.storage.delete(path)

    def _records(self, state: State) -> list[tuple[Window, str]]:
        folder = f"{_FOLDER}/{state.generation}"
        found = []
        for entry in self._journal.storage.list(folder):
            # What is not named so is another's, or the leftover of a write that was cut short.
            name = entry.path.rsplit("/", 1)[-1]
            if stamps := _NAME.fullmatch(name):
                moments = (datetime.strptime(item, _STAMP).replace(tzinfo=timezone.utc) for item in stamps.groups())
                found.append((Window(*moments), f"{folder}/{name}"))
        return found


def _generation_of(path: str) -> int:
    """The generation whose record lies at a path."""
    return int(path.split("/")[-2])


def _path(window: Window, generation: int) -> str:
    return f"{_FOLDER}/{generation}/{window.start.strftime(_STAMP)}_{window.end.strftime(_STAMP)}"
