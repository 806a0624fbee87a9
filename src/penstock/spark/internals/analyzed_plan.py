"""The plan that Spark's analyzer makes of a query: names are resolved, and `current_date()` is not a constant yet."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from penstock.spark.internals.jvm import java_class, jvm_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_CLASS = "penstock.PlanNodes"
_NODE, _FIELD = "\x1e", "\x1f"


def filter_condition(filtered: DataFrame) -> Any:
    """The resolved condition of a `DataFrame.where`; private, and what Delta's data skipping takes."""
    return filtered._jdf.queryExecution().analyzed().condition()


def listed_nodes(query: DataFrame) -> list[list[str]] | None:
    """The nodes of a query's plan, as `java/PlanNodes.java` lists them; None in a session without an analyzed plan.

    Private: a public plan is a text for people, without the classes of its nodes. One call, because a call from Python
    takes a quarter of a millisecond and a plan has a thousand nodes.
    """
    java: Any = getattr(query, "_jdf", None)
    if java is None:
        return None
    spark = query.sparkSession
    listed = str(_lister(jvm_of(spark), spark).of(java.queryExecution().analyzed()))
    return [line.split(_FIELD) for line in listed.split(_NODE) if line]


@lru_cache(maxsize=4)
def _lister(jvm: Any, spark: SparkSession) -> Any:
    """The class that lists nodes: from our jar, or compiled here in a second where a cluster has no jar of ours."""
    found = java_class(spark, _CLASS)
    if callable(getattr(found, "of", None)) and type(found).__name__ == "JavaClass":
        return found
    compiler = java_class(spark, "org.codehaus.janino.SimpleCompiler")()
    compiler.cook(resources.files("penstock.spark").joinpath("java").joinpath("PlanNodes.java").read_text())
    return compiler.getClassLoader().loadClass(_CLASS).newInstance()
