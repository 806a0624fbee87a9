"""What dbt knows of a microbatch model: whether it looks at its batch, and what is wrong with its config."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.penstock.models import windows

MACROS = {
    "macro.shop.plain": ("{% macro plain() %}{{ ref('a') }}{% endmacro %}", []),
    "macro.shop.above": ("{% macro above() %}{{ of_batch() }}{% endmacro %}", ["macro.shop.of_batch"]),
    "macro.shop.of_batch": (
        "{% macro of_batch() %}{{ model.batch.event_time_start }}{% endmacro %}",
        ["macro.shop.above"],
    ),
}


def node(code: str, *macros: str, **config: Any) -> SimpleNamespace:
    given = SimpleNamespace(to_dict=lambda: config)
    return SimpleNamespace(
        raw_code=code, compiled_code=code, depends_on=SimpleNamespace(macros=list(macros)), config=given
    )


MANIFEST = SimpleNamespace(
    macros={
        name: SimpleNamespace(
            unique_id=name, package_name="shop", macro_sql=text, depends_on=SimpleNamespace(macros=below)
        )
        for name, (text, below) in MACROS.items()
    }
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (node("select * from {{ ref('a') }}"), False),
        (node("select * from {{ ref('batch') }} -- model.batch"), True),
        (node("select '{{ model.batch.id }}'"), True),
        (node("select '{{ model['batch'].id }}'"), True),
        (node("{% do log(model.get('batch')) %} select 1"), True),
        (node("select '{{ config.get('__dbt_internal_microbatch_event_time_start') }}'"), True),
        (node("select '{{ model.name }}', 'model.batch'"), False),
        (node("{{ plain() }}", "macro.shop.plain"), False),
        (node("{{ above() }}", "macro.shop.above"), True),
        (node("{{ of_a_package() }}", "macro.other.unknown"), False),
    ],
)
def test_a_model_that_looks_at_its_batch_is_found(given: SimpleNamespace, expected: bool) -> None:
    """A string 'batch' counts: not to pack is slower, to pack would be wrong."""
    assert windows.reads_batch(given, MANIFEST) is expected


def test_all_that_is_wrong_is_told_at_once() -> None:
    wrong = node(
        "select id from t",
        materialized="incremental",
        incremental_strategy="microbatch",
        event_time="at",
        batch_size="day",
        begin="2999-01-01",
        days_per_batch=0,
    )
    assert windows.problems(wrong) == [
        "`days_per_batch` must be a whole number of at least 1, not 0",
        "`begin` is in the future: 2999-01-01",
        "`event_time` names at, which the model does not select: it selects id",
    ]
