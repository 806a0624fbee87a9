"""Delta's own reader of change data feeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import from_spark
from penstock.spark.internals.jvm import DELTA, delta_log, option, scala_object

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame


def row_images(runner: Backend, location: str, first: int, last: int) -> DataFrame:
    """The row images of the versions `first` to `last`, with the columns that the table had at `last`.

    Delta's public reader (`readChangeFeed`) takes today's columns, and fails if a column has another type today.
    """
    spark: Any = runner.spark
    none, reader = option(spark), scala_object(spark, f"{DELTA}.commands.cdc.CDCReader")
    try:
        log = delta_log(spark, runner.place(location))
        then = option(spark, log.getSnapshotAt(last, none, none, False))
        with runner.active():
            images = reader.changesToBatchDF(log, first, last, spark._jsparkSession, none, then, False, none)
    except Exception as error:
        raise from_spark(error) from error
    return runner.frame(images)
