"""Replaces rows of a table by those of a DataFrame, in one commit with a mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import from_spark

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame

# Delta would require that each new row meets the condition.
_ALLOW_OTHER_ROWS = {"spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false"}


def replace_rows(
    spark: Backend,
    frame: DataFrame,
    location: str,
    condition: str,
    mark: tuple[str, int],
    note: str,
    *,
    merge_schema: bool,
) -> None:
    """Delete the rows that meet a condition and append a DataFrame, in one commit with a mark and a note.

    The new rows need not meet the condition. A StatementError with `is_conflict` if another writer was first.
    """
    application, number = mark
    options = {"txnAppId": application, "txnVersion": str(number), "userMetadata": note}
    if merge_schema:
        options["mergeSchema"] = "true"
    writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", condition).options(**options)
    with spark.configured(_ALLOW_OTHER_ROWS):
        try:
            writer.save(spark.spark_location(location))
        except Exception as error:
            raise from_spark(error) from error
