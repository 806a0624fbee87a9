"""The session that Java's thread calls its own: much of Delta takes its settings from there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.spark.internals.jvm import java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def active_session(spark: SparkSession) -> Iterator[None]:
    """Make this session the active one inside; PySpark has no public way to set it."""
    sessions = java_class(spark, "org.apache.spark.sql.classic.SparkSession")
    before = sessions.getActiveSession()
    sessions.setActiveSession(java_session(spark))
    try:
        yield
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()
