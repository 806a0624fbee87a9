from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.layout import Layout

CLAUSES = [
    ({}, ""),
    ({"partition_by": "day"}, "partitioned by (`day`)"),
    ({"partition_by": ["day", "c"]}, "partitioned by (`day`, `c`)"),
    ({"cluster_by": ["a", "b"]}, "cluster by (`a`, `b`)"),
    ({"table_properties": {"delta.appendOnly": True}}, "tblproperties ('delta.appendOnly' = 'true')"),
]


@pytest.mark.parametrize(("config", "expected"), CLAUSES)
def test_a_config_becomes_clauses(config: dict[str, object], expected: str) -> None:
    assert Layout.from_config(config).clauses() == expected


def test_a_comment_and_checks_are_quoted() -> None:
    layout = Layout.from_config({}, comment="it's", checks={"positive": "a > 'x'"})
    assert layout.clauses() == "comment 'it\\'s'\ntblproperties ('delta.constraints.positive' = 'a > \\'x\\'')"


def test_every_error_is_in_one_message() -> None:
    with pytest.raises(PenstockError) as caught:
        Layout.from_config(
            {
                "partition_by": 3,
                "cluster_by": ["a"],
                "table_properties": {"delta.setTransactionRetentionDuration": "1 day"},
            }
        )
    for part in ("`partition_by`", "exclude", "setTransactionRetentionDuration"):
        assert part in str(caught.value)
