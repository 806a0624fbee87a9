"""Windows: their sizes, packs of them, and sets of them."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from penstock.windows import Window
from penstock.windows.window import Ranges, after, floor, packs


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def window(start: str, end: str) -> Window:
    return Window.of(start, end)


@pytest.mark.parametrize(
    ("size", "start", "end"),
    [
        ("hour", "2025-12-31T23:00:00", "2026-01-01T00:00:00"),
        ("day", "2025-12-31", "2026-01-01"),
        ("month", "2025-12-01", "2026-01-01"),
        ("year", "2025-01-01", "2026-01-01"),
    ],
)
def test_a_year_s_last_window(size: str, start: str, end: str) -> None:
    inside = moment("2025-12-31T23:59:59")
    assert (floor(inside, size), after(inside, size)) == (moment(start), moment(end))


def test_a_leap_year_s_months_and_years() -> None:
    assert after(moment("2028-02-29"), "month") == moment("2028-03-01")
    assert after(moment("2028-01-01"), "year") == moment("2029-01-01")
    assert [step.end.day for step in window("2028-02-28", "2028-03-02").steps("day")] == [29, 1, 2]


def test_a_time_with_a_zone_is_its_instant() -> None:
    """The hour that daylight saving repeats is two windows: they are in UTC."""
    first, again = (
        Window.of(f"2026-10-25T02:00:00+0{offset}:00", f"2026-10-25T03:00:00+0{offset}:00") for offset in (2, 1)
    )
    assert (first.start.hour, again.start.hour) == (0, 1)


def test_ranges() -> None:
    known = Ranges.of([window("2026-04-03", "2026-04-05"), window("2026-04-01", "2026-04-02")])
    assert known.gaps(window("2026-03-31", "2026-04-07")).texts() == [
        ["2026-03-31T00:00:00+00:00", "2026-04-01T00:00:00+00:00"],
        ["2026-04-02T00:00:00+00:00", "2026-04-03T00:00:00+00:00"],
        ["2026-04-05T00:00:00+00:00", "2026-04-07T00:00:00+00:00"],
    ]
    assert known.holds(window("2026-04-03", "2026-04-04"))
    assert not known.holds(window("2026-04-01", "2026-04-03"))
    assert known.touches(window("2026-04-01", "2026-04-03"))
    assert not known.touches(window("2026-04-02", "2026-04-03"))
    assert known.with_([window("2026-04-02", "2026-04-03")]).texts() == [
        ["2026-04-01T00:00:00+00:00", "2026-04-05T00:00:00+00:00"]
    ]


def test_packs_are_of_neighbours() -> None:
    days = list(window("2026-04-01", "2026-04-08").steps("day"))
    assert [len(pack) for pack in packs([*days[:3], *days[4:]], 2)] == [2, 1, 2, 1]
