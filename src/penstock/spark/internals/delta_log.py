"""Delta's own view of a table's log (`DeltaLog`), which Delta caches for each path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.spark.internals.jvm import DELTA, java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def delta_log(spark: SparkSession, location: str) -> Any:
    """The log of a table; `location` as Hadoop spells it. Private: `DeltaTable` gives no transaction."""
    return java_class(spark, f"{DELTA}.DeltaLog").forTable(java_session(spark), location)


def forget_log(spark: SparkSession, location: str) -> None:
    """Remove a log from Delta's cache: a table that was dropped or created again must not be served from it.

    Private: Delta's public API only drops its cache with the table itself.
    """
    path = java_class(spark, "org.apache.hadoop.fs.Path")(location)
    java_class(spark, f"{DELTA}.DeltaLog").invalidateCache(java_session(spark), path)
