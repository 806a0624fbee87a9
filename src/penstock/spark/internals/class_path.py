"""The classes that Spark's JVM can load.

`is_loadable` is private, because without a jar Spark fails only when a query runs, with an error that does not name the jar.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.spark.internals.jvm import java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_loadable(spark: SparkSession, name: str) -> bool:
    """Whether a class is on the class path."""
    return bool(java_class(spark, "org.apache.spark.util.Utils").classIsLoadable(name))


def add_jars(spark: SparkSession, jars: Iterable[str]) -> None:
    """Add jars to a Spark that runs: to its driver, to its tasks, and to Hadoop, which loads the classes of stores.

    Private: of the public ways, `addJar` serves tasks alone, and SQL's ADD JAR does not tell Hadoop.
    """
    session = java_session(spark)
    loader = session.sessionState().resourceLoader()
    for jar in jars:
        loader.addJar(jar)
    session.sparkContext().hadoopConfiguration().setClassLoader(session.sharedState().jarClassLoader())
