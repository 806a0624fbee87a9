"""The Java side of Spark: classes and Scala objects by their whole names, and the values that Scala's methods take.

py4j looks up each part of a dotted name as a class in every jar, which takes milliseconds: a fifth of the driver's work
in a batch of files. Here a class is looked up once, by its whole name.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DELTA = "org.apache.spark.sql.delta"


def jvm_of(spark: SparkSession) -> Any:
    """py4j's view of the JVM; private, because Spark has no public way to a Java class from Python."""
    return spark.sparkContext._jvm


def java_session(spark: SparkSession) -> Any:
    """The Java session that a Python session stands for; private, and a parameter of most methods of Delta."""
    return spark._jsparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    """A Java class by its whole name."""
    return _found(jvm_of(spark), name)


def scala_object(spark: SparkSession, name: str) -> Any:
    """A Scala object by its whole name."""
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


def option(spark: SparkSession, value: Any = None) -> Any:
    """Scala's `Some`, or its `None` for None."""
    return java_class(spark, "scala.Option").apply(value)


def empty_list(spark: SparkSession) -> Any:
    """Scala's empty list, which is also an empty `Seq`."""
    return scala_object(spark, "scala.collection.immutable.Nil")


def scala_map(spark: SparkSession, items: Mapping[str, Any]) -> Any:
    """An immutable map of Scala's."""
    java = java_class(spark, "java.util.HashMap")()
    for key, value in items.items():
        java.put(key, value)
    return java_class(spark, "org.apache.spark.api.python.PythonUtils").toScalaMap(java)


@lru_cache(maxsize=256)
def _found(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)
