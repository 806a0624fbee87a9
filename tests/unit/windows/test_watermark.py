"""What the statistics of a Delta log tell of event times."""

from __future__ import annotations

from datetime import date, datetime, timezone
from typing import Any

import pytest

from penstock.windows import Window
from penstock.windows.watermark import high_watermark, may_hold

DAY = Window.of("2026-04-02", "2026-04-03")


class Log:
    def __init__(self, extremes: list[tuple[object, object]] | None) -> None:
        self._extremes = extremes

    def extremes(self, column: str) -> Any:
        return self._extremes


def table(*extremes: tuple[object, object]) -> Any:
    return Log(list(extremes))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (table((date(2026, 4, 1), date(2026, 4, 3)), (date(2026, 4, 2), date(2026, 4, 2))), "2026-04-03"),
        (table(("20260401", "2026-04-02T05:00:00Z")), "2026-04-02T05:00:00"),
        (table(("20260401", "soon")), None),
        (table(), None),
        (Log(None), None),
    ],
)
def test_the_high_watermark(given: Any, expected: str | None) -> None:
    moment = None if expected is None else datetime.fromisoformat(expected).replace(tzinfo=timezone.utc)
    assert high_watermark(given, "at") == moment


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (table((date(2026, 4, 1), date(2026, 4, 1))), False),
        (table((date(2026, 4, 3), date(2026, 4, 4))), False),
        (table((date(2026, 4, 3), date(2026, 4, 4)), (date(2026, 4, 1), date(2026, 4, 2))), True),
        (table(("then", "soon")), True),
        (table(), False),
        (Log(None), True),
    ],
)
def test_whether_a_table_may_have_rows_in_a_window(given: Any, expected: bool) -> None:
    assert may_hold(given, "at", DAY) is expected
