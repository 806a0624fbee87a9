"""The private methods of Spark and Delta that penstock calls, compared with those of the Spark that runs.

Without this, a Spark or Delta that changed one of them would fail in the middle of a commit, with a message of py4j's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.spark.internals.jvm import java_class
from penstock.spark.internals.signatures import EXPECTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SUPPORTED = "pyspark 4.1.0 to 4.2.0 with delta-spark 4.4.0"


def check_signatures(spark: SparkSession, expected: Mapping[str, Collection[str]] = EXPECTED) -> None:
    """Fail if a class or method that penstock calls is missing, or takes other parameters, in this Spark and Delta."""
    missing = [text for name, methods in expected.items() for text in _missing(spark, name, methods)]
    if missing:
        raise PenstockError(
            f"Spark {spark.version} with Delta {_delta_version(spark)} is not supported; missing: {missing[0]}"
            + (f" and {len(missing) - 1} other methods" if len(missing) > 1 else ""),
            fix=f"Install {SUPPORTED}.",
        )


def _missing(spark: SparkSession, name: str, methods: Collection[str]) -> list[str]:
    found = _signatures(spark, name)
    if found is None:
        return [f"class {name}"]
    return [f"{name}.{method}" for method in methods if method not in found]


def _signatures(spark: SparkSession, name: str) -> set[str] | None:
    """The public methods and constructors of a class, as `name(Type,Type)`; None if there is no such class."""
    from py4j.protocol import Py4JJavaError

    # Spark's own loader: Delta's jars may be among `spark.jars`, which the JVM's loader does not have.
    loader = java_class(spark, "java.lang.Thread").currentThread().getContextClassLoader()
    try:
        found = loader.loadClass(name)
    except Py4JJavaError:
        return None
    # One text for all methods: a call for each would take a quarter of a millisecond.
    text = java_class(spark, "scala.runtime.ScalaRunTime").stringOf
    listed = [str(text(items)).removeprefix("Array(") for items in (found.getMethods(), found.getConstructors())]
    return {signature for items in listed for signature in parsed(items, name)}


def parsed(listed: str, name: str) -> list[str]:
    """The signatures in a list of Java's methods and constructors, with the short names of their types.

    >>> parsed("public static a.Log a.Log.of(java.lang.String,int), public a.Log(a.Path) throws a.Error)", "a.Log")
    ['of(String,int)', '<init>(Path)']
    """
    found = []
    for method, types in re.findall(r"([\w$.]+)\(([^)]*)\)", listed):
        short = ",".join(kind.rpartition(".")[2] for kind in types.split(","))
        found.append(f"{'<init>' if method == name else method.rpartition('.')[2]}({short})")
    return found


def _delta_version(spark: SparkSession) -> str:
    try:
        return str(java_class(spark, "io.delta.package").VERSION())
    except Exception:  # a Delta that does not tell; the message is about what it lacks
        return "of unknown version"
