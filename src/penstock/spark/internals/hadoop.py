"""Hadoop's file systems and paths, as Spark uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.spark.internals.jvm import java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def escaped(spark: SparkSession, location: str) -> str:
    """A location as a URI with Hadoop's escapes, which no Python function has exactly."""
    return str(java_class(spark, "org.apache.hadoop.fs.Path")(location).toUri().toString())


def ask_store(spark: SparkSession, location: str) -> None:
    """Ask the store of a location whether the location is there; py4j's error if the store can't be used.

    The session's settings decide which class serves a store, and only its private state has them for Hadoop.
    """
    path = java_class(spark, "org.apache.hadoop.fs.Path")(location)
    path.getFileSystem(java_session(spark).sessionState().newHadoopConf()).exists(path)


def causes(error: Exception) -> list[tuple[str, str]]:
    """The class and the message of a Java error, and of each cause below it; none for an error of Python's."""
    found = []
    java: Any = getattr(error, "java_exception", None)
    while java is not None:
        found.append((str(java.getClass().getName()), str(java.getMessage())))
        java = java.getCause()
    return found


def hadoop_version(spark: SparkSession) -> str:
    """The version of the Hadoop that Spark carries."""
    return str(java_class(spark, "org.apache.hadoop.util.VersionInfo").getVersion())
