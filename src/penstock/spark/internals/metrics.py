"""Metrics of a commit, as Spark keeps them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from penstock.spark.internals.jvm import scala_map, scala_object

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def java_metrics(spark: SparkSession, counts: Mapping[str, int]) -> Any:
    """Counts as Spark's `SQLMetric`s, by name; private, and how Delta takes the metrics of a commit."""
    create = scala_object(spark, "org.apache.spark.sql.execution.metric.SQLMetrics").createMetric
    context = spark.sparkContext._jsc.sc()
    metrics = {}
    for name, count in counts.items():
        metrics[name] = create(context, name)
        metrics[name].set(count)
    return scala_map(spark, metrics)
