"""A window of event time, its sizes, packs of windows, and sets of windows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import pairwise


def utc(moment: datetime) -> datetime:
    """The time in UTC. A time without a zone is in UTC, as dbt's windows are."""
    return moment.replace(tzinfo=timezone.utc) if moment.tzinfo is None else moment.astimezone(timezone.utc)


def floor(moment: datetime, size: str) -> datetime:
    """The start of the hour, day, month or year that holds a moment."""
    moment = utc(moment)
    moment = moment.replace(minute=0, second=0, microsecond=0)
    if size != "hour":
        moment = moment.replace(hour=0)
    if size in ("month", "year"):
        moment = moment.replace(day=1)
    return moment.replace(month=1) if size == "year" else moment


def after(moment: datetime, size: str) -> datetime:
    """The start of the next hour, day, month or year.

    >>> after(datetime(2026, 12, 31, 23, tzinfo=timezone.utc), "month").isoformat()
    '2027-01-01T00:00:00+00:00'
    """
    start = floor(moment, size)
    if size in ("hour", "day"):
        return start + timedelta(**{f"{size}s": 1})
    return floor(start + timedelta(days=31 if size == "month" else 366), size)


@dataclass(frozen=True, order=True)
class Window:
    """A range of event time, in UTC: from `start`, up to and without `end`.

    >>> print(Window.of("2026-04-01", "2026-04-02"))
    2026-04-01 … 2026-04-02
    """

    start: datetime
    end: datetime

    @classmethod
    def of(cls, start: datetime | str, end: datetime | str) -> Window:
        """A window from two times, or from their ISO texts."""
        moments = (datetime.fromisoformat(item) if isinstance(item, str) else item for item in (start, end))
        return cls(*map(utc, moments))

    def __str__(self) -> str:
        return f"{plain(self.start)} … {plain(self.end)}"

    def texts(self) -> list[str]:
        """The two times in ISO format, as plans hold them."""
        return [self.start.isoformat(), self.end.isoformat()]

    def steps(self, size: str) -> Iterator[Window]:
        """The windows of a size within this range; the last one ends with the range."""
        start = self.start
        while start < self.end:
            end = min(after(start, size), self.end)
            yield Window(start, end)
            start = end


def plain(moment: datetime) -> str:
    """A time in the format of dbt's `--event-time-start`."""
    return moment.strftime("%Y-%m-%d" if moment == floor(moment, "day") else "%Y-%m-%dT%H:%M:%S")


def span(windows: Sequence[Window]) -> Window:
    """The range from the first window's start to the last one's end."""
    return Window(windows[0].start, windows[-1].end)


def packs(windows: Iterable[Window], most: int) -> list[tuple[Window, ...]]:
    """Windows in packs of at most `most` neighbours.

    >>> days = [Window.of(f"2026-04-0{day}", f"2026-04-0{day + 1}") for day in (1, 2, 3, 5)]
    >>> [len(pack) for pack in packs(days, 2)]
    [2, 1, 1]
    """
    made: list[list[Window]] = []
    for window in windows:
        if made and len(made[-1]) < most and made[-1][-1].end == window.start:
            made[-1].append(window)
        else:
            made.append([window])
    return [tuple(pack) for pack in made]


@dataclass(frozen=True)
class Ranges:
    """A set of windows, merged and in order."""

    windows: tuple[Window, ...] = ()

    @classmethod
    def of(cls, windows: Iterable[Window]) -> Ranges:
        """
        >>> Ranges.of([Window.of("2026-04-02", "2026-04-03"), Window.of("2026-04-01", "2026-04-02")]).texts()
        [['2026-04-01T00:00:00+00:00', '2026-04-03T00:00:00+00:00']]
        """
        merged: list[Window] = []
        for window in sorted(windows):
            if window.start >= window.end:
                continue
            if merged and window.start <= merged[-1].end:
                merged[-1] = Window(merged[-1].start, max(merged[-1].end, window.end))
            else:
                merged.append(window)
        return cls(tuple(merged))

    def with_(self, windows: Iterable[Window]) -> Ranges:
        """This set with more windows."""
        return Ranges.of([*self.windows, *windows])

    def holds(self, window: Window) -> bool:
        """Whether the whole window is in the set."""
        return any(known.start <= window.start and window.end <= known.end for known in self.windows)

    def touches(self, window: Window) -> bool:
        """Whether a part of the window is in the set."""
        return any(known.start < window.end and window.start < known.end for known in self.windows)

    def gaps(self, whole: Window) -> Ranges:
        """The parts of a range that are not in the set."""
        inside = [known for known in self.windows if known.start < whole.end and whole.start < known.end]
        edges = [Window(whole.start, whole.start), *inside, Window(whole.end, whole.end)]
        return Ranges.of(Window(left.end, right.start) for left, right in pairwise(edges))

    def texts(self) -> list[list[str]]:
        return [window.texts() for window in self.windows]


NONE = Ranges()
