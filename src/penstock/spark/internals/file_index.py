"""The files that a DataFrame reads, from Spark's file index.

Private, because `DataFrame.inputFiles()` returns each file once: a file that Spark would read twice does not show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.spark.internals.jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def input_files(frame: DataFrame) -> list[str]:
    """The URIs of the files that a DataFrame reads. A file that Spark reads twice is listed twice. No job runs."""
    relation = frame._jdf.queryExecution().analyzed()
    if relation.getClass().getSimpleName() == "LogicalRelation":
        index = relation.relation().location()
    else:
        # A data source of version 2: a format that is not in `spark.sql.sources.useV1SourceList`.
        index = relation.table().fileIndex()
    # One call of py4j for all of them. A URI has no line break.
    joined = java_class(frame.sparkSession, "org.apache.hadoop.util.StringUtils").join("\n", index.inputFiles())
    return str(joined).split("\n") if joined else []
