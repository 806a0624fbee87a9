"""The partitions of a cluster's sessions."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.spark.partitions import cluster_partitions

SHUFFLE, SNAPSHOT = "spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"


class Context:
    """A Spark context with so many cores, as far as its settings can be asked."""

    def __init__(self, cores: int, conf: dict[str, str]) -> None:
        self.defaultParallelism, self._conf = cores, conf

    def getConf(self) -> Any:
        return self

    def get(self, key: str) -> str | None:
        return self._conf.get(key)

    def contains(self, key: str) -> bool:
        return key in self._conf


@pytest.mark.parametrize(
    ("conf", "cores"),
    [
        ({}, 6),
        ({"spark.cores.max": "40"}, 40),
        ({"spark.executor.instances": "5", "spark.executor.cores": "4"}, 20),
        ({"spark.executor.cores": "4"}, 6),
        (
            {
                "spark.dynamicAllocation.enabled": "true",
                "spark.dynamicAllocation.maxExecutors": "10",
                "spark.executor.instances": "2",
                "spark.executor.cores": "4",
            },
            40,
        ),
    ],
)
def test_partitions_follow_the_cores(conf: dict[str, str], cores: int) -> None:
    found = cluster_partitions(Context(6, conf))  # type: ignore[arg-type]
    assert found[SHUFFLE] == str(2 * cores)
    assert found[SNAPSHOT] == str(cores)


def test_a_large_cluster_does_not_read_a_log_in_a_thousand_tasks() -> None:
    found = cluster_partitions(Context(1000, {}))  # type: ignore[arg-type]
    assert (found[SHUFFLE], found[SNAPSHOT]) == ("2000", "50")


def test_what_the_user_sets_stays() -> None:
    found = cluster_partitions(Context(8, {SHUFFLE: "7"}))  # type: ignore[arg-type]
    assert SHUFFLE not in found
    assert found[SNAPSHOT] == "8"


def test_without_a_limit_of_executors_sparks_defaults_hold() -> None:
    assert cluster_partitions(Context(2, {"spark.dynamicAllocation.enabled": "true"})) == {}  # type: ignore[arg-type]
