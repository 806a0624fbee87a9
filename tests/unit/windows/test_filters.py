"""The filters that dbt puts around `ref()`: found in a text, and rendered again."""

from __future__ import annotations

from datetime import datetime, timezone

from penstock.windows import Window
from penstock.windows.filters import Filter, is_filtered, rendered, without_windows

TEXT = "select * from (select * from `s`.`t` where {}) et union all select * from (select * from `s`.`u` where {})"
TYPES = {"s.t": "date", "s.u": "timestamp"}


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def window(start: str, end: str) -> Window:
    return Window.of(start, end)


def filters(start: str, end: str) -> list[Filter]:
    return [Filter(name, "at", moment(start), moment(end)) for name in TYPES]


def text(start: str, end: str) -> str:
    return TEXT.format(*(found.marked() for found in filters(start, end)))


def test_each_filter_is_rendered_for_another_window_with_its_type() -> None:
    narrow, wide = text("2026-04-01", "2026-04-02"), window("2026-04-01", "2026-04-16")
    assert is_filtered(narrow)
    assert rendered(narrow, lambda found: found.within(wide).sql(TYPES[found.relation])) == TEXT.format(
        "`at` >= date '2026-04-01' and `at` < date '2026-04-16'",
        "`at` >= timestamp '2026-04-01 00:00:00+00:00' and `at` < timestamp '2026-04-16 00:00:00+00:00'",
    )


def test_each_filter_is_found_as_it_was() -> None:
    found: list[Filter] = []
    rendered(text("2026-04-01", "2026-04-02"), lambda item: found.append(item) or "")
    assert found == filters("2026-04-01", "2026-04-02")


def test_a_sample_s_filter_keeps_its_own_range() -> None:
    text = Filter("s.t", "at", moment("2026-04-01T05:00:00"), None).marked()
    assert rendered(text, lambda found: found.sql("timestamp")) == "`at` >= timestamp '2026-04-01 05:00:00+00:00'"


def test_texts_of_two_windows_are_one_text() -> None:
    texts = [text("2026-04-01", "2026-04-02"), text("2026-04-02", "2026-04-03")]
    assert len({without_windows(text) for text in texts}) == 1
    assert without_windows(texts[0].replace("`u`", "`v`")) != without_windows(texts[1])


def test_a_name_that_would_end_the_comment_does_not() -> None:
    text = Filter("s.t", "a*/b", moment("2026-04-01"), None).marked()
    other = window("2026-05-01", "2026-05-02")
    assert rendered(text, lambda found: found.within(other).sql("date")).count("2026-05-01") == 1


def test_a_column_that_has_a_dot_is_found_by_its_type() -> None:
    given = Filter("s.t", "a.b", moment("2026-04-01"), None)
    assert given.sql("date") == "`a.b` >= date '2026-04-01'"
    assert "typeof(`a`.`b`)" in given.sql()


def test_a_text_without_filters_is_left_alone() -> None:
    assert not is_filtered("select '/*penstock.window*/' from t")
