"""The tags of one thread's work, and cancelling from another thread."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import StatementError
from penstock.spark import job_group
from penstock.spark.job_group import JobGroup


class Context:
    """The calls that set the jobs' group."""

    def __init__(self) -> None:
        self.groups: list[str | None] = []

    def setJobGroup(self, group: str, description: str, interruptOnCancel: bool) -> None:
        assert interruptOnCancel
        self.groups.append(group)

    def setLocalProperty(self, key: str, value: None) -> None:
        if key == "spark.jobGroup.id":
            self.groups.append(value)


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(job_group.session, "cancel", found.append)
    monkeypatch.setattr(job_group, "_SECONDS_TO_CANCEL_AGAIN", 0.01)
    return found


def started(jobs: JobGroup) -> Context:
    context = Context()
    spark: Any = SimpleNamespace(sparkContext=context)
    jobs.started(spark)
    return context


def test_jobs_belong_to_the_innermost_tag() -> None:
    jobs = JobGroup()
    context = started(jobs)
    with jobs.tagged("model"), jobs.tagged("statement"):
        assert jobs.tags == ("model", "statement")
    assert context.groups == ["model", "statement", "model", None]


def test_a_spark_that_starts_later_joins() -> None:
    jobs = JobGroup()
    with jobs.tagged("model"):
        context = started(jobs)
    assert context.groups == ["model", None]


def test_nothing_new_begins_in_what_was_cancelled(cancelled: list[str]) -> None:
    jobs = JobGroup()
    started(jobs)
    with jobs.tagged("model"):
        jobs.cancel()
        with pytest.raises(StatementError, match="cancelled"), jobs.tagged("statement"):
            pass
        assert set(cancelled) == {"model"}
    with jobs.tagged("next model"):
        assert jobs.tags == ("next model",)


def test_a_spark_that_starts_in_what_was_cancelled_is_not_used(cancelled: list[str]) -> None:
    jobs = JobGroup()
    with jobs.tagged("model"):
        jobs.cancel()
        with pytest.raises(StatementError, match="cancelled"):
            started(jobs)


def test_without_work_there_is_nothing_to_cancel(cancelled: list[str]) -> None:
    JobGroup().cancel()
    assert cancelled == []
