"""Hadoop's file systems for stores: asked once for each, so that a jar that is missing shows at once.

Spark looks for its paths in threads of its own, and waits for their answers without a limit. A class that can't be
loaded ends such a thread without an answer: Scala's futures carry exceptions, and take this error for the end of the
JVM. So the store is asked first in the thread that calls, which gets any error back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import PenstockError, from_spark
from penstock.spark.internals.jvm import java_class
from penstock.storage import is_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MISSING = ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException")
_NO_SCHEME = "org.apache.hadoop.fs.UnsupportedFileSystemException"
# The packages of the classes, and in which jar they come; {hadoop} is the version of Spark's own Hadoop.
_JARS = {
    "org.apache.hadoop.fs.s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "software.amazon.awssdk": "software.amazon.awssdk:bundle, in the version that hadoop-aws {hadoop} names",
    "software.amazon.s3.analyticsaccelerator": "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3, in "
    "the version that hadoop-aws {hadoop} names",
    "org.apache.hadoop.fs.azurebfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "com.google.cloud.hadoop": "com.google.cloud.bigdataoss:gcs-connector",
}
_SCHEMES = {"gs": "com.google.cloud.hadoop", "abfs": "org.apache.hadoop.fs.azurebfs", "s3a": "org.apache.hadoop.fs.s3a"}
_asked: set[tuple[str, str]] = set()


def check(spark: SparkSession, location: str) -> None:
    """Fail where Spark can't work on the store of a location, spelled for Hadoop; once a store and process."""
    if not is_uri(location):
        return
    scheme, rest = location.split("://", 1)
    store = (spark.sparkContext.applicationId or "", f"{scheme}://{rest.split('/', 1)[0]}")
    if store in _asked:
        return
    try:
        path = java_class(spark, "org.apache.hadoop.fs.Path")(location)
        path.getFileSystem(spark._jsparkSession.sessionState().newHadoopConf()).exists(path)
    except Exception as error:
        raise _explained(spark, error, scheme, store[1]) from error
    _asked.add(store)


def _explained(spark: SparkSession, error: Exception, scheme: str, store: str) -> PenstockError:
    java: Any = getattr(error, "java_exception", None)
    while java is not None:
        kind, said = str(java.getClass().getName()), str(java.getMessage())
        if kind in _MISSING or kind == _NO_SCHEME:
            if kind == _NO_SCHEME:
                needed, what = _SCHEMES.get(scheme, ""), f"no class for the scheme {scheme}://"
            else:
                needed = said.removeprefix("Class ").removesuffix(" not found").replace("/", ".")
                what = f"no class {needed}"
            return PenstockError(
                f"Spark has {what}, so it can't read or write there", where=store, fix=_fix(spark, needed)
            )
        java = java.getCause()
    return from_spark(error)


def _fix(spark: SparkSession, needed: str) -> str:
    hadoop = java_class(spark, "org.apache.hadoop.util.VersionInfo").getVersion()
    jar = next((jar for package, jar in _JARS.items() if needed.startswith(package)), "")
    which = f" ({jar.format(hadoop=hadoop)})" if jar else ""
    return (
        f"A jar is missing{which}: name it in `spark.jars.packages` of `session.spark_config`, or, together with "
        "Delta's jars, in `session.jars`."
    )
