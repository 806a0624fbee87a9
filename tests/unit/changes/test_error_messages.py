"""Spark's errors in words of the model: decided by their conditions."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.changes.error_messages import Explainer, is_of_values
from penstock.changes.plan import ChangePlan
from penstock.changes.source_log import SourceChanges
from penstock.changes.version_range import Gap, VersionRange
from penstock.errors import CANCELLED, PenstockError, StatementError
from penstock.sql.names import Name

PLAN = ChangePlan(7, 5, (VersionRange("s.a", "/lake/s/a", "id", 1, 2, "commit"),))
DROPPED = SourceChanges((), (("id", "bigint"), ("v", "string")), (("id", "bigint"),))
SOURCES = SimpleNamespace(changes=lambda ranges: {Name("s", "a"): DROPPED})


def explained(condition: str | None, text: str = "It failed\nmore", misfits: list[str] | None = None) -> PenstockError:
    explainer = Explainer(Name("gold", "t"), ("id",), SOURCES)
    return explainer.explained(StatementError(text, condition=condition), PLAN, misfits or [])


@pytest.mark.parametrize(
    ("condition", "text"),
    [
        ("FAILED_READ_FILE.FILE_NOT_EXIST", "[FAILED_READ_FILE.FILE_NOT_EXIST] cdc-0.parquet"),
        ("DELTA_CHANGE_DATA_FILE_NOT_FOUND", "gone"),
        ("DELTA_FILE_NOT_FOUND_DETAILED", "gone"),
        ("DELTA_MISSING_CHANGE_DATA", "gone"),
        (None, "java.io.FileNotFoundException: deletion_vector.bin"),
    ],
)
def test_changes_that_are_gone_are_a_gap(condition: str | None, text: str) -> None:
    gap = explained(condition, text)
    assert isinstance(gap, Gap)
    assert "Changes of s.a 2 to 2 are gone from disk" in str(gap)


def test_a_text_that_names_a_lost_file_is_no_gap_by_itself() -> None:
    error = explained("CAST_INVALID_INPUT", "cannot cast 'FileNotFoundException'")
    assert not isinstance(error, Gap)


@pytest.mark.parametrize(
    ("check", "said"),
    [("penstock-not-unique", "comes more than once"), ("penstock-null", "is null"), ("penstock-there", "another row")],
)
def test_checks_of_the_key(check: str, said: str) -> None:
    text = f'[USER_RAISED_EXCEPTION] {check} {{"id":1}} SQLSTATE: P0001'
    error = explained("USER_RAISED_EXCEPTION", text)
    assert said in str(error)
    assert '{"id":1}' in str(error)
    # A value of a row that looks like one of the checks.
    assert said not in str(explained("CAST_INVALID_INPUT", text))


def test_columns_of_other_types_and_dropped_columns() -> None:
    assert "n (int, in the table date)" in str(explained("CAST_INVALID_INPUT", misfits=["n (int, in the table date)"]))
    assert "reads a dropped column: v of s.a (dropped in s.a 2 to 2)" in str(
        explained("UNRESOLVED_COLUMN.WITH_SUGGESTION")
    )


@pytest.mark.parametrize("condition", ["CAST_INVALID_INPUT", "DIVIDE_BY_ZERO", None])
def test_an_error_of_which_nothing_is_known_stays(condition: str | None) -> None:
    error = explained(condition)
    assert isinstance(error, StatementError)
    assert error.condition == condition


@pytest.mark.parametrize(
    ("condition", "of_values"),
    [
        ("DIVIDE_BY_ZERO", True),
        ("UNRESOLVED_COLUMN", True),
        ("DELTA_CONCURRENT_APPEND", False),
        ("FAILED_READ_FILE.NO_HINT", False),
        ("USER_RAISED_EXCEPTION", False),
        (CANCELLED, False),
        (None, False),
    ],
)
def test_errors_of_values(condition: str | None, of_values: bool) -> None:
    assert is_of_values(StatementError("It failed", condition=condition)) is of_values
