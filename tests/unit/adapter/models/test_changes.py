"""`cdf_merge` models: the relations that `cdf_source` names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.models import changes


def relation(unique_id: str, schema: str, identifier: str, **more: Any) -> SimpleNamespace:
    name = more.pop("name", identifier)
    return SimpleNamespace(unique_id=unique_id, name=name, schema=schema, identifier=identifier, **more)


MANIFEST = SimpleNamespace(
    nodes={
        "model": relation("model.shop.orders", "silver", "orders_v1", name="orders"),
        "itself": relation("model.shop.sums", "gold", "sums"),
    },
    sources={"source": relation("source.shop.raw.lines", "bronze", "lines_raw", name="lines", source_name="raw")},
)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("orders", "`silver`.`orders_v1`"),
        ("silver.orders_v1", "`silver`.`orders_v1`"),
        ("raw.lines", "`bronze`.`lines_raw`"),
        ("elsewhere.table", "`elsewhere`.`table`"),
    ],
)
def test_a_source_is_named_in_four_ways(given: str, expected: str) -> None:
    model = {"unique_id": "model.shop.sums", "config": {"unique_key": "id", "cdf_source": given}}
    assert [name.sql for name in changes.change_source(model, MANIFEST).cdf_source] == [expected]


@pytest.mark.parametrize("given", ["nowhere", "sums"])
def test_a_name_that_is_none_of_these_is_an_error(given: str) -> None:
    model = {"unique_id": "model.shop.sums", "config": {"unique_key": "id", "cdf_source": [given]}}
    with pytest.raises(DbtRuntimeError, match=f"`cdf_source` names '{given}', which is not a model, seed or source"):
        changes.change_source(model, MANIFEST)
