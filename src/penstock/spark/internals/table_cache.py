"""The plans that Spark's session catalog keeps for tables: `SessionCatalog.cacheTable`.

Spark resolves a table of its catalog by the plan that the session keeps for it, if there is one. So a name with two
parts can stand for rows that are only in memory, for one session, also below a permanent view. There is no public way:
a temporary view has one part in its name, and a permanent view may not read one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.spark.internals.java_frames import java_frame
from penstock.spark.internals.jvm import java_class, java_session
from penstock.sql.names import CATALOG, Name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def keep(spark: SparkSession, name: Name, frame: DataFrame) -> None:
    """Have a table of the catalog stand for a DataFrame in this session, for statements that are parsed from now on."""
    _catalog(spark).cacheTable(_qualified(spark, name), java_frame(frame).queryExecution().analyzed())


def drop(spark: SparkSession, name: Name) -> None:
    """Have a table stand for itself again. Queries that are parsed already keep their rows."""
    _catalog(spark).invalidateCachedTable(_qualified(spark, name))


def _catalog(spark: SparkSession) -> Any:
    return java_session(spark).sessionState().catalog()


def _qualified(spark: SparkSession, name: Name) -> Any:
    return java_class(spark, "org.apache.spark.sql.catalyst.QualifiedTableName")(CATALOG, name.schema, name.identifier)
