"""A contract as CHECKs of Delta, and its columns compared with a table's."""

from __future__ import annotations

from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock import constraints
from penstock.delta.table import Column


def model(columns: dict[str, dict[str, Any]], *of_model: dict[str, Any]) -> dict[str, Any]:
    named = {name: {"name": name, **column} for name, column in columns.items()}
    return {"name": "orders", "columns": named, "constraints": list(of_model)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (model({"a b": {"constraints": [{"type": "not_null"}]}}), {"a_b_not_null": "`a b` is not null"}),
        (
            model({"n": {"constraints": [{"type": "check", "expression": "n > 0", "name": "Positive"}]}}),
            {"Positive": "n > 0"},
        ),
        (
            model({}, {"type": "check", "expression": "a < b", "name": "in order"}),
            {"in_order": "a < b"},
        ),
        (
            model({}, {"type": "not_null", "columns": ["a", "b"]}),
            {"a_not_null": "`a` is not null", "b_not_null": "`b` is not null"},
        ),
        (model({"n": {"constraints": [{"type": "primary_key"}]}}), {}),
    ],
)
def test_the_checks_of_a_contract(given: dict[str, Any], expected: dict[str, str]) -> None:
    assert constraints.checks(given) == expected


def test_a_check_without_a_name_gets_the_same_name_each_time() -> None:
    given = model({"n": {"constraints": [{"type": "check", "expression": "n > 0"}]}})
    (name,) = constraints.checks(given)
    assert name.startswith("n_")
    assert list(constraints.checks(given)) == [name]


def test_constraints_that_delta_does_not_enforce_are_told() -> None:
    given = model({"n": {"constraints": [{"type": "unique"}, {"type": "not_null"}]}}, {"type": "primary_key"})
    assert [found.type.value for found in constraints.unsupported(given)] == ["unique", "primary_key"]


def test_a_constraint_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(DbtRuntimeError, match="Cannot read the constraint"):
        constraints.checks(model({"n": {"constraints": [{"type": "nonsense"}]}}))


@pytest.mark.parametrize(
    ("written", "type", "expected"),
    [
        ("INTEGER", "int", True),
        ("numeric(10, 2)", "decimal(10,2)", True),
        ("varchar(10)", "string", True),
        ("array<long>", "array<bigint>", True),
        ("bigint", "int", False),
        ("interval day", "interval day to second", False),
    ],
)
def test_types_are_compared_as_they_are_written(written: str, type: str, expected: bool) -> None:
    assert constraints.certainly_fits(model({"n": {"data_type": written}}), [Column("n", type)]) is expected
