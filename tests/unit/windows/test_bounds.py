"""A window as a condition on a column of each type, and as a value in the Delta log."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pytest

from penstock.errors import PenstockError
from penstock.windows import bounds


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


@pytest.mark.parametrize(
    ("type", "start", "end", "expected"),
    [
        ("date", "2025-12-31", "2026-01-01", "at >= date '2025-12-31' and at < date '2026-01-01'"),
        # A date is its midnight, so it is in the first hour of its day, and in no other.
        ("date", "2026-04-01", "2026-04-01T01:00:00", "at >= date '2026-04-01' and at < date '2026-04-02'"),
        ("date", "2026-04-01T01:00:00", "2026-04-01T02:00:00", "at >= date '2026-04-02' and at < date '2026-04-02'"),
        (
            "timestamp",
            "2026-04-01",
            "2026-04-02",
            "at >= timestamp '2026-04-01 00:00:00+00:00' and at < timestamp '2026-04-02 00:00:00+00:00'",
        ),
        (
            "timestamp_ntz",
            "2026-04-01",
            "2026-04-02",
            "at >= timestamp_ntz '2026-04-01 00:00:00' and at < timestamp_ntz '2026-04-02 00:00:00'",
        ),
    ],
)
def test_a_condition_is_of_the_column_s_type(type: str | None, start: str, end: str | None, expected: str) -> None:
    assert bounds.condition("at", type, moment(start), None if end is None else moment(end)) == expected


def test_a_condition_of_an_unknown_type_holds_for_each_type() -> None:
    start, end = moment("2026-04-01"), moment("2026-04-02")
    found = bounds.condition("at", None, start, end)
    assert found.startswith("case typeof(at) when 'date' then ")
    for type in ("date", "timestamp_ntz", "string", "timestamp"):
        assert bounds.condition(f"cast(at as {type})", type, start, end) in found


def test_a_column_that_holds_no_time_is_refused() -> None:
    with pytest.raises(PenstockError, match="at of type bigint, which has no time values"):
        bounds.condition("at", "bigint", moment("2026-04-01"), None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("20260401", "2026-04-01"),
        ("202604", "2026-04-01"),
        ("2026040105", "2026-04-01T05:00:00"),
        ("2026-04-01", "2026-04-01"),
        ("2026-04-01T02:00:00+02:00", "2026-04-01"),
        (date(2026, 4, 1), "2026-04-01"),
        (datetime(2026, 4, 1, 5), "2026-04-01T05:00:00"),
        ("soon", None),
        ("123", None),
    ],
)
def test_a_value_of_the_log_is_a_moment(value: object, expected: str | None) -> None:
    assert bounds.moment_of(value) == (None if expected is None else moment(expected))
