"""Which windows come in next."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.windows import Window, WindowSettings, backlog
from penstock.windows.backlog import WindowBacklog
from penstock.windows.ledger import Known
from penstock.windows.window import Ranges

FIRST = datetime(2026, 4, 1, tzinfo=timezone.utc)
SETTINGS = WindowSettings.from_config({"event_time": "at", "batch_size": "day", "begin": FIRST, "days_per_batch": 2})
SETTLED: Any = SimpleNamespace(is_settled=lambda window: True)


def days(start: int, end: int) -> tuple[Window, ...]:
    return tuple(Window(FIRST + timedelta(days=start), FIRST + timedelta(days=end)).steps("day"))


def waiting(end: int, named: tuple[Window, ...] | None = None) -> WindowBacklog:
    return WindowBacklog(SETTINGS, FIRST, FIRST + timedelta(days=end), named)


@pytest.fixture(autouse=True)
def the_sixth_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "now", lambda: FIRST + timedelta(days=5, hours=12))


def test_all_windows_that_are_missing_come_in_packs_of_neighbours() -> None:
    known = Known(Ranges.of([*days(0, 1), *days(2, 3)]))
    assert waiting(5).packs(known, SETTLED, replace=False) == [days(1, 2), days(3, 5)]


def test_a_window_that_is_not_over_waits() -> None:
    assert waiting(8).packs(Known(), SETTLED, replace=True)[-1] == days(4, 5)


def test_nothing_comes_in_after_a_window_that_is_being_written() -> None:
    select: Any = SimpleNamespace(is_settled=lambda window: window != days(2, 3)[0])
    assert waiting(5).packs(Known(), select, replace=True) == [days(0, 2)]


def test_windows_that_the_user_names_come_in_if_they_are_missing() -> None:
    known = Known(Ranges.of(days(0, 4)))
    assert waiting(5, days(3, 5)).packs(known, SETTLED, replace=False) == [days(4, 5)]


def test_a_table_begins_where_its_first_window_is_or_where_the_config_says() -> None:
    assert waiting(4).packs(Known(Ranges.of(days(2, 3))), SETTLED, replace=False) == [days(3, 4)]
    assert waiting(4).packs(Known(), SETTLED, replace=False) == [days(0, 2), days(2, 4)]
