"""Delta's own reader of change data feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import from_spark
from penstock.spark.internals.active_session import active_session
from penstock.spark.internals.delta_log import delta_log
from penstock.spark.internals.java_frames import python_frame
from penstock.spark.internals.jvm import DELTA, java_session, option, scala_object

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def row_images(spark: SparkSession, location: str, first: int, last: int) -> DataFrame:
    """The row images of the versions `first` to `last`, with the columns that the table had at `last`.

    Delta's public reader (`readChangeFeed`) takes today's columns, and fails if a column has another type today.
    """
    none, reader = option(spark), scala_object(spark, f"{DELTA}.commands.cdc.CDCReader")
    try:
        log = delta_log(spark, location)
        then = option(spark, log.getSnapshotAt(last, none, none, False))
        with active_session(spark):
            images = reader.changesToBatchDF(log, first, last, java_session(spark), none, then, False, none)
    except Exception as error:
        raise from_spark(error) from error
    return python_frame(images, spark)
