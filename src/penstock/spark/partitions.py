"""How many partitions a cluster's sessions use: as many as its cores ask for, as in a local Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark import SparkContext

# By default Delta rebuilds a snapshot in 50 tasks, Spark shuffles in 200, and VACUUM lists in 10,000.
_FACTORS = {
    "spark.databricks.delta.snapshotPartitions": 1,
    "spark.sql.shuffle.partitions": 2,
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": 2,
}
_DYNAMIC = "spark.dynamicAllocation.enabled"
_EXECUTORS = ("spark.dynamicAllocation.maxExecutors", "spark.executor.instances")
_MOST = {"spark.databricks.delta.snapshotPartitions": 50}
"""Delta's default: a log is small, however large the cluster is."""


def partitions(cores: int) -> dict[str, str]:
    """Settings for so many cores.

    >>> partitions(4)["spark.sql.shuffle.partitions"]
    '8'
    """
    return {key: str(min(factor * cores, _MOST.get(key, factor * cores))) for key, factor in _FACTORS.items()}


def cluster_partitions(context: SparkContext) -> dict[str, str]:
    """Settings for the cores that the cluster gives to this application, without those that the user has set.

    If Spark may ask for any number of executors, its own defaults hold.
    """
    conf = context.getConf()
    cores = expected_cores(conf.get)
    if cores is None:
        if conf.get(_DYNAMIC) == "true":
            return {}
        cores = context.defaultParallelism
    return {key: value for key, value in partitions(cores).items() if not conf.contains(key)}


def expected_cores(setting: Callable[[str], str | None]) -> int | None:
    """The cores that the settings ask for; None if only the executors themselves can tell.

    >>> expected_cores({"spark.executor.instances": "3", "spark.executor.cores": "4"}.get)
    12
    """
    if most := setting("spark.cores.max"):
        return int(most)
    most_executors, executors = map(setting, _EXECUTORS)
    if setting(_DYNAMIC) == "true":
        executors = most_executors
    cores = setting("spark.executor.cores")
    return int(cores) * int(executors) if cores and executors else None
