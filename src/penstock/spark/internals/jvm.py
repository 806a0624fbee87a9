"""The Java side of Spark and Delta: classes and objects by their whole names, and the values that Scala wants.

py4j walks a dotted name part by part, and looks each part up as a class in every jar, milliseconds each: a fifth of what
a batch of files costs the driver. A whole name is one look, and it is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA = "org.apache.spark.sql.delta"


def java_class(spark: SparkSession, name: str) -> Any:
    return _found(spark.sparkContext._jvm, name)


def scala_object(spark: SparkSession, name: str) -> Any:
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def option(spark: SparkSession, value: Any = None) -> Any:
    """Scala's Some; its None for None."""
    return java_class(spark, "scala.Option").apply(value)


def empty_list(spark: SparkSession) -> Any:
    return scala_object(spark, "scala.collection.immutable.Nil")


def scala_map(spark: SparkSession, items: Mapping[str, Any]) -> Any:
    java = java_class(spark, "java.util.HashMap")()
    for key, value in items.items():
        java.put(key, value)
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(java)


def delta_log(spark: Any, location: str) -> Any:
    """Delta's own view of a table's log; `location` as Hadoop spells it."""
    return java_class(spark, f"{DELTA}.DeltaLog").forTable(spark._jsparkSession, location)


@lru_cache(maxsize=256)
def _found(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)
