"""The config of windows: each mistake is named, all at once."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.windows import WindowSettings

RIGHT = {"event_time": "at", "batch_size": "day", "begin": "2026-01-01"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"event_time": None}, "`event_time` is missing"),
        ({"batch_size": "week"}, "`batch_size` must be one of hour, day, month, year"),
        ({"begin": "2026-13-01"}, "`begin` must be a date or a time"),
        ({"begin": "2999-01-01"}, "`begin` is in the future"),
        ({"days_per_batch": 0}, "`days_per_batch`"),
        ({"days_per_batch": True}, "`days_per_batch`"),
        ({"delete_before_insert": "no"}, "`delete_before_insert` must be true or false"),
        ({"lookback": -1}, "`lookback`"),
        ({"delete_before_insert": False, "skip_to_high_watermark": True}, "the ledger says which windows are skipped"),
        ({"source_path": "l/%Y", "source_roots": ["l"]}, "exclude each other"),
    ],
)
def test_each_mistake_is_named(given: dict[str, object], problem: str) -> None:
    assert WindowSettings.problems(RIGHT) == []
    assert problem in " ".join(WindowSettings.problems({**RIGHT, **given}))


def test_all_at_once() -> None:
    with pytest.raises(PenstockError, match=r"event_time.*begin.*days_per_batch"):
        WindowSettings.from_config({"batch_size": "day", "days_per_batch": 0})
