"""Statements that lost against another writer run again."""

from __future__ import annotations

import pytest

from penstock.errors import StatementError
from penstock.spark import retry
from penstock.spark.retry import retrying

CONFLICT = "DELTA_CONCURRENT_WRITE"


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    found: list[float] = []
    monkeypatch.setattr(retry.time, "sleep", found.append)
    return found


def attempts(errors: list[Exception]) -> tuple[list[int], object]:
    """How often an attempt ran, and what came of it; each of the errors ends one attempt."""
    runs: list[int] = []

    def attempt() -> str:
        runs.append(1)
        if errors:
            raise errors.pop(0)
        return "done"

    try:
        return runs, retrying(attempt)
    except StatementError as error:
        return runs, error.condition


def test_it_runs_again_until_it_is_done(pauses: list[float]) -> None:
    runs, result = attempts([StatementError("lost", condition=CONFLICT) for _ in range(3)])
    assert (len(runs), result) == (4, "done")
    assert len(pauses) == 3


def test_other_errors_end_it(pauses: list[float]) -> None:
    runs, result = attempts([StatementError("wrong", condition="PARSE_SYNTAX_ERROR")])
    assert (len(runs), result) == (1, "PARSE_SYNTAX_ERROR")
    assert not pauses


def test_it_does_not_run_for_ever() -> None:
    runs, result = attempts([StatementError("lost", condition=CONFLICT) for _ in range(100)])
    assert (len(runs), result) == (12, CONFLICT)
