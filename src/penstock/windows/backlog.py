"""Which windows a job brings in next."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone

from penstock.windows.config import WindowSettings
from penstock.windows.ledger import Known
from penstock.windows.query import Select
from penstock.windows.window import Window, floor, packs


def now() -> datetime:
    return datetime.now(timezone.utc)


def over(windows: Iterable[Window]) -> tuple[Window, ...]:
    """The windows that have ended."""
    return tuple(window for window in windows if window.end <= now())


@dataclass(frozen=True)
class WindowBacklog:
    """The windows that a job is to add to a table.

    `named` are the windows that the user named. Without them, all windows up to `end` that are not in the table.
    """

    settings: WindowSettings
    begin: datetime
    """Where the windows begin if the table is created or replaced."""
    end: datetime
    named: tuple[Window, ...] | None = None

    def packs(self, known: Known, select: Select, *, replace: bool) -> list[tuple[Window, ...]]:
        """The packs that can come in now, in order; each is one commit. No JVM starts.

        They end before the first window that is not over, or that is still being written.
        """
        ready = []
        for window in self._missing(known, replace=replace):
            if not over([window]) or not select.is_settled(window):
                break
            ready.append(window)
        return packs(ready, self.settings.days_per_batch)

    def _missing(self, known: Known, *, replace: bool) -> list[Window]:
        if self.named is not None:
            return [window for window in self.named if not known.ranges.holds(window)]
        size = self.settings.batch_size
        begin = self.begin if replace else known.begin or floor(self.settings.begin, size)
        gaps = known.ranges.gaps(Window(begin, max(begin, self.end)))
        return [window for gap in gaps.windows for window in gap.steps(size)]
