"""The message of a window's result."""

from __future__ import annotations

from penstock.delta.commit_metrics import CommitMetrics
from penstock.windows import Window
from penstock.windows.report import WindowReport

DAYS = list(Window.of("2026-04-01", "2026-04-04").steps("day"))


def test_a_result_sums_the_commits_and_names_windows_that_were_not_asked_for() -> None:
    report = WindowReport()
    report.add(DAYS[:2], CommitMetrics(version=4, rows_inserted=1000, files=2, bytes=10))
    report.add(DAYS[2:], CommitMetrics(version=5, rows_inserted=234, files=1, bytes=5))
    outcome = report.outcome(DAYS[2:])
    assert outcome.message == "OK 1,234 rows of 2026-04-01 … 2026-04-04"
    assert (outcome.rows, outcome.files, outcome.bytes, outcome.version) == (1234, 3, 15, 5)


def test_a_result_of_the_window_that_was_asked_for_names_no_range() -> None:
    report = WindowReport()
    report.add(DAYS[:1], CommitMetrics(version=4, rows_inserted=7))
    assert report.outcome(DAYS[:1]).message == "OK 7 rows"


def test_windows_without_a_commit_in_the_log_have_no_version() -> None:
    report = WindowReport()
    report.add(DAYS[:1], None)
    assert report.outcome(DAYS[:1]).version is None
