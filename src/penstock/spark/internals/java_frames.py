"""DataFrames between Python and Java."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.spark.internals.jvm import java_class, java_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def java_frame(frame: DataFrame) -> Any:
    """The Java `Dataset` of a DataFrame; private, and a parameter of Delta's methods."""
    return frame._jdf


def python_frame(java: Any, spark: SparkSession) -> DataFrame:
    """A DataFrame of this session over a Java `Dataset`; PySpark makes them the same way."""
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    return ClassicDataFrame(java, spark)


def adopted(frame: DataFrame, spark: SparkSession) -> DataFrame:
    """A DataFrame of any session of this process, as one of this session.

    `Dataset.ofRows` is private: a public DataFrame keeps the session that created it.
    """
    ours, theirs = java_session(spark), java_session(frame.sparkSession)
    if theirs.equals(ours):
        return frame
    plan = java_frame(frame).queryExecution().analyzed()
    return python_frame(java_class(spark, "org.apache.spark.sql.classic.Dataset").ofRows(ours, plan), spark)
