from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from penstock.delta.layout import Layout
from penstock.errors import PenstockError

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


class AsItIs:
    """A table as its log tells it."""

    description = None

    def __init__(self, *, partitions: Sequence[str] = (), clustering: Sequence[str] = (), **properties: str) -> None:
        self.partition_columns, self.clustering_columns = list(partitions), list(clustering)
        self.properties, self.features = properties, {"appendOnly", "timestampNtz"}
        self.protocol_versions = (1, 7)


CHANGES = [
    ({}, AsItIs(), []),
    ({"cluster_by": "a"}, AsItIs(clustering=["b"]), ["alter table t cluster by (`a`)"]),
    ({}, AsItIs(clustering=["b"]), ["alter table t cluster by none"]),
    ({"partition_by": "b"}, AsItIs(clustering=["b"]), []),
    ({"cluster_by": "b"}, AsItIs(partitions=["b"]), []),
    ({"table_properties": {"a": 1}}, AsItIs(a="2"), ["alter table t set tblproperties ('a' = '1')"]),
    ({"table_properties": {"A": 1}}, AsItIs(a="1"), ["alter table t set tblproperties ('A' = '1')"]),
    ({"table_properties": {"delta.AppendOnly": True}}, AsItIs(**{"delta.appendOnly": "true"}), []),
    ({"cluster_by": "A"}, AsItIs(clustering=["a"]), []),
    ({"table_properties": {"delta.minReaderVersion": 1, "delta.minWriterVersion": "5"}}, AsItIs(), []),
    (
        {"table_properties": {"delta.minReaderVersion": 3}},
        AsItIs(),
        ["alter table t set tblproperties ('delta.minReaderVersion' = '3')"],
    ),
    ({"table_properties": {"delta.feature.timestampntz": "supported"}}, AsItIs(), []),
    (
        {"table_properties": {"delta.feature.columnMapping": "supported"}},
        AsItIs(),
        ["alter table t set tblproperties ('delta.feature.columnMapping' = 'supported')"],
    ),
]


def test_constraints_that_a_table_was_not_made_with() -> None:
    table: Any = AsItIs(**{"delta.constraints.Same": "a > 0", "delta.constraints.other": "b > 0", "by.hand": "c"})
    layout = Layout.from_config({}, checks={"same": "a>0", "other": "b > 1", "new": "c > 0"})
    assert layout.unmet_checks(table) == ["other", "new"]
    assert not Layout.from_config({}).unmet_checks(table)


@pytest.mark.parametrize(("config", "table", "expected"), CHANGES)
def test_a_table_is_brought_to_its_config(config: dict[str, object], table: Any, expected: list[str]) -> None:
    assert Layout.from_config(config).changes(table, "t") == expected


PARTITIONS = [
    ({"partition_by": "A"}, AsItIs(partitions=["a"]), False),
    ({"partition_by": "b"}, AsItIs(partitions=["a"]), True),
    ({"cluster_by": "a"}, AsItIs(partitions=["a"]), True),
    ({"cluster_by": "a"}, AsItIs(clustering=["b"]), False),
    ({}, AsItIs(partitions=["a"]), False),
]


@pytest.mark.parametrize(("config", "table", "differs"), PARTITIONS)
def test_what_only_a_new_table_can_have(config: dict[str, object], table: Any, differs: bool) -> None:
    assert Layout.from_config(config).differs_in_partitions(table) == differs


def test_every_error_is_in_one_message() -> None:
    with pytest.raises(PenstockError) as caught:
        Layout.from_config(
            {
                "partition_by": 3,
                "cluster_by": ["a"],
                "table_properties": {"delta.setTransactionretentionduration": "1 day"},
            }
        )
    for part in ("`partition_by`", "exclude", "setTransactionRetentionDuration"):
        assert part in str(caught.value)
