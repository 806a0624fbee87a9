"""The schema of csv or json texts that are in a DataFrame, by Spark's own inference.

Private, because PySpark infers a schema from files or from an RDD only; Java's reader takes a Dataset of strings.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from penstock.spark.internals.jvm import java_class

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader
    from pyspark.sql.types import StructType


def schema_of_texts(texts: DataFrame, reader: DataFrameReader, format: str) -> StructType:
    """The schema that a reader of csv or json infers from a column of texts. Runs a job."""
    from pyspark.sql.types import StructType

    string = java_class(texts.sparkSession, "org.apache.spark.sql.Encoders").STRING()
    dataset = getattr(texts._jdf, "as")(string)
    found = getattr(reader._jreader, format)(dataset).schema()
    return StructType.fromJson(json.loads(found.json()))
