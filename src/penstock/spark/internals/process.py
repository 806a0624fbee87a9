"""The one Spark of this process, as PySpark keeps it: its context, its first session, and its connection to the JVM."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


def running_context() -> SparkContext | None:
    """The context of this process's Spark, if it runs. Private: `SparkContext.getOrCreate` would start one."""
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext

    context = SparkContext._active_spark_context
    # The context that another thread is starting has no Java side yet.
    return None if context is None or getattr(context, "_jsc", None) is None else context


def first_session(context: SparkContext) -> SparkSession:
    """The session that this process's Spark started with. Private: `builder.getOrCreate` would change its settings."""
    from pyspark.sql import SparkSession

    return SparkSession._instantiatedSession or SparkSession(context)


def cancel_group(context: SparkContext, group: str) -> None:
    """Cancel the jobs of a group, later ones too; PySpark's public `cancelJobGroup` only cancels those that run."""
    java: Any = context._jsc
    java.sc().cancelJobGroupAndFutureJobs(group)


def set_property(context: SparkContext, name: str, value: str) -> None:
    """Set a system property of the JVM; libraries read some settings nowhere else."""
    java: Any = context._jvm
    java.java.lang.System.setProperty(name, value)


def gateway() -> Any:
    """PySpark's connection to the JVM, with its process as `proc` if this process started it; None without a JVM."""
    from pyspark import SparkContext

    return SparkContext._gateway


def forget_gateway() -> None:
    """Have PySpark start a new JVM for its next context; private, because PySpark keeps a JVM until the end."""
    from pyspark import SparkContext

    SparkContext._gateway = None
    SparkContext._jvm = None


def mute_accumulators(context: SparkContext) -> None:
    """Have PySpark's accumulator thread say nothing about a connection that breaks."""
    server: Any = context._accumulatorServer
    server.handle_error = lambda *_: None
