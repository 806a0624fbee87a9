"""The classes that Spark's JVM can load.

Private, because without a jar Spark fails only when a query runs, with an error that does not name the jar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.internals.jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_loadable(spark: SparkSession, name: str) -> bool:
    """Whether a class is on the class path."""
    return bool(java_class(spark, "org.apache.spark.util.Utils").classIsLoadable(name))
