"""The executors of this process's Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext


def executor_count(context: SparkContext) -> int:
    """How many executors have registered, without the driver. Private: PySpark's status tracker knows jobs only."""
    java: Any = context._jsc
    return len(java.sc().statusTracker().getExecutorInfos()) - 1
