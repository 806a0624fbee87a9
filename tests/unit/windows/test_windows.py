"""Windows, their conditions, their folders and their configuration: tables of (given, expected)."""

from __future__ import annotations

from datetime import date, datetime, timezone
from pathlib import Path
from typing import ClassVar

import pytest

from penstock.errors import NotFound, PenstockError
from penstock.files import Listings
from penstock.windows import DatedPath, Window, WindowSettings, bounds
from penstock.windows.plan import APPEND, WindowPlan
from penstock.windows.window import Ranges, after, floor, packs

UTC = timezone.utc


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


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
        (
            None,
            "2026-04-01",
            None,
            "at >= timestamp '2026-04-01 00:00:00+00:00'",
        ),
    ],
)
def test_a_condition_is_of_the_column_s_type(type: str | None, start: str, end: str | None, expected: str) -> None:
    assert bounds.condition("at", type, moment(start), None if end is None else moment(end)) == expected


def test_a_column_that_holds_no_time_is_refused() -> None:
    with pytest.raises(PenstockError, match="at of type bigint, which holds no time"):
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


class TestMarks:
    TEXT = "select * from (select * from `s`.`t` where {}) et union all select * from (select * from `s`.`u` where {})"

    def text(self, start: str, end: str) -> str:
        types = {"t": "date", "u": "timestamp"}
        filters = [bounds.marked(f"s.{name}", "at", type, moment(start), moment(end)) for name, type in types.items()]
        return self.TEXT.format(*filters)

    def test_each_filter_is_rendered_again_with_its_type(self) -> None:
        types = {"s.t": "date", "s.u": "timestamp"}
        narrow, wide = self.text("2026-04-01", "2026-04-02"), self.text("2026-04-01", "2026-04-16")
        assert bounds.is_filtered(narrow)
        assert bounds.rebound(narrow, window("2026-04-01", "2026-04-16"), lambda name, _: types[name]) == wide

    def test_texts_of_two_windows_are_one_text(self) -> None:
        texts = [self.text("2026-04-01", "2026-04-02"), self.text("2026-04-02", "2026-04-03")]
        plain = {bounds.rebound(text, None, lambda *_: None) for text in texts}
        assert len(plain) == 1
        assert bounds.rebound(texts[0].replace("`u`", "`v`"), None, lambda *_: None) not in plain

    def test_a_name_that_would_end_the_comment_does_not(self) -> None:
        text = bounds.marked("s.t", "a*/b", "date", moment("2026-04-01"), None)
        assert bounds.rebound(text, window("2026-05-01", "2026-05-02"), lambda *_: "date").count("2026-05-01") == 1

    def test_a_text_without_filters_is_left_alone(self) -> None:
        assert not bounds.is_filtered("select '/*penstock.window*/' from t")


class TestDatedPath:
    @pytest.mark.parametrize(
        ("path", "given", "folders"),
        [
            ("/l/%Y/%m/%d/*.json", ("2025-12-31", "2026-01-02"), ["/l/2025/12/31", "/l/2026/01/01"]),
            ("/l/%Y-%m/x.csv", ("2026-01-31", "2026-02-02"), ["/l/2026-01", "/l/2026-02"]),
            (
                "/l/day=%Y%m%d/hour=%H/*",
                ("2026-04-01T22:00:00", "2026-04-02"),
                ["/l/day=20260401/hour=22", "/l/day=20260401/hour=23"],
            ),
            ("/l/%Y/%j/*", ("2026-02-01", "2026-02-02"), ["/l/2026/032"]),
            ("/l/e-%Y%m%d-*.json", ("2026-04-01", "2026-04-02"), ["/l"]),
        ],
    )
    def test_a_window_s_folders(self, path: str, given: tuple[str, str], folders: list[str]) -> None:
        assert [folder for _, folder, _ in DatedPath(path).places(window(*given))] == folders

    @pytest.mark.parametrize(
        ("path", "problem"),
        [
            ("landing/*.json", "lacks %Y"),
            ("landing/%Y/%q/*", "%q"),
            ("landing/%d", "lacks %Y"),
            ("landing/%Y/%d", "%d without %m"),
            ("", "is a path"),
            (7, "is a path"),
        ],
    )
    def test_what_is_wrong_with_a_path(self, path: object, problem: str) -> None:
        assert problem in " ".join(DatedPath.problems(path))

    def test_only_what_matches_is_a_file_of_the_window(self, tmp_path: Path) -> None:
        for name in ("2026/04/01/a.json", "2026/04/01/b.txt", "2026/04/01/sub/c.json", "2026/04/02/d.json"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("{}")

        def names(pattern: str, *given: str) -> list[str]:
            found = DatedPath(f"{tmp_path}/%Y/%m/%d/{pattern}").files(window(*given), Listings())
            return [Path(path).name for dated in found for path in dated.files["path"].to_pylist()]

        assert names("*.json", "2026-04-01", "2026-04-02") == ["a.json"]
        assert sorted(names("**/*.json", "2026-04-01", "2026-04-04")) == ["a.json", "c.json", "d.json"]
        assert names("[ab].t?t", "2026-04-01", "2026-04-02") == ["b.txt"]

    def test_a_root_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound):
            DatedPath(f"{tmp_path}/nowhere/%Y/*").files(window("2026-04-01", "2026-04-02"), Listings())


class TestSettings:
    RIGHT: ClassVar = {"event_time": "at", "batch_size": "day", "begin": "2026-01-01"}

    @pytest.mark.parametrize(
        ("given", "problem"),
        [
            ({"event_time": None}, "`event_time` is missing"),
            ({"batch_size": "week"}, "`batch_size` is one of hour, day, month, year"),
            ({"begin": "2026-13-01"}, "`begin` is a date or a time"),
            ({"begin": "2999-01-01"}, "`begin` is in the future"),
            ({"days_per_batch": 0}, "`days_per_batch`"),
            ({"days_per_batch": True}, "`days_per_batch`"),
            ({"delete_before_insert": "no"}, "`delete_before_insert` is true or false"),
            ({"lookback": -1}, "`lookback`"),
            ({"delete_before_insert": False, "skip_to_high_watermark": True}, "the ledger decides"),
            ({"source_path": "l/%Y", "source_roots": ["l"]}, "exclude each other"),
        ],
    )
    def test_each_mistake_is_named(self, given: dict[str, object], problem: str) -> None:
        assert WindowSettings.problems(self.RIGHT) == []
        assert problem in " ".join(WindowSettings.problems({**self.RIGHT, **given}))

    def test_all_at_once(self) -> None:
        with pytest.raises(PenstockError, match=r"event_time.*begin.*days_per_batch"):
            WindowSettings.from_config({"batch_size": "day", "days_per_batch": 0})


class TestPlan:
    PLAN = WindowPlan(
        number=7,
        generation=3,
        windows=(window("2026-04-02", "2026-04-03"),),
        mode=APPEND,
        before=Ranges.of([window("2026-04-01", "2026-04-02")]),
        whole=window("2026-04-01", "2026-04-10"),
        shape={"format": "json", "schema": {}, "folders": []},
    )

    def test_it_is_read_as_it_was_written(self) -> None:
        assert WindowPlan.from_bytes(7, self.PLAN.to_bytes(), "here") == self.PLAN

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "can't be read"),
            (b'{"kind": "files", "format_version": 1}', "one of files, not of windows"),
            (b'{"kind": "windows", "format_version": 9}', "format 9"),
            (b'{"kind": "windows", "format_version": 1, "number": 8}', "can't be read"),
        ],
    )
    def test_what_is_no_plan_is_an_error(self, data: bytes, message: str) -> None:
        with pytest.raises(PenstockError, match=message):
            WindowPlan.from_bytes(7, data, "here")
