"""Java's classes and Scala's objects by their whole names.

py4j walks a dotted name part by part, and looks each part up as a class in every jar, milliseconds each: a fifth of what
a batch of files costs the driver. A whole name is one look, and it is kept.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_class(spark: SparkSession, name: str) -> Any:
    return _found(spark.sparkContext._jvm, name)


def scala_object(spark: SparkSession, name: str) -> Any:
    return getattr(java_class(spark, f"{name}$"), "MODULE$")


@lru_cache(maxsize=256)
def _found(jvm: Any, name: str) -> Any:
    return getattr(jvm, name)
