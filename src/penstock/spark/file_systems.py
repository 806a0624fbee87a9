"""Object stores, as Spark reaches them: each is asked once, so that a missing jar is an error and not a wait.

Spark checks paths in threads of its own, and waits for their answers without a limit. Scala's futures take a class that
can't be loaded for the end of the JVM, so such a thread ends without an answer. A store is therefore asked first in the
calling thread, which gets any error back.

Spark starts with the jars of the stores that the profile is about. A store that only a model names is learned of later:
its jars are added to the Spark that runs.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from penstock.config.session_settings import SessionSettings
from penstock.config.store_options import kinds
from penstock.errors import PenstockError, from_spark
from penstock.spark.internals.class_path import add_jars
from penstock.spark.internals.hadoop import ask_store, causes, hadoop_version
from penstock.spark.startup.java import find_java, find_spark_home
from penstock.spark.startup.store_jars import store_jars
from penstock.storage import is_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MISSING = ("java.lang.NoClassDefFoundError", "java.lang.ClassNotFoundException")
_NO_SCHEME = "org.apache.hadoop.fs.UnsupportedFileSystemException"
# The jar of each package; {hadoop} is the version of Spark's own Hadoop.
_JARS = {
    "org.apache.hadoop.fs.s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "software.amazon.awssdk": "software.amazon.awssdk:bundle, in the version that hadoop-aws {hadoop} names",
    "software.amazon.s3.analyticsaccelerator": "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3, in "
    "the version that hadoop-aws {hadoop} names",
    "org.apache.hadoop.fs.azurebfs": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "com.google.cloud.hadoop": "com.google.cloud.bigdataoss:gcs-connector",
}
_SCHEMES = {"gs": "com.google.cloud.hadoop", "abfs": "org.apache.hadoop.fs.azurebfs", "s3a": "org.apache.hadoop.fs.s3a"}


class Stores:
    """The stores that one Spark application has been found to work on."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
        self._settings: weakref.WeakKeyDictionary[SparkSession, SessionSettings] = weakref.WeakKeyDictionary()

    def learn(self, spark: SparkSession, settings: SessionSettings) -> None:
        """Take a session's settings for the jars that it may need."""
        self._settings[spark] = settings

    def check(self, spark: SparkSession, location: str) -> None:
        """Fail if Spark can't work on the store of a location, spelled for Hadoop; each store is asked once."""
        if not is_uri(location):
            return
        scheme, rest = location.split("://", 1)
        store = f"{scheme}://{rest.split('/', 1)[0]}"
        if store in self._asked:
            return
        try:
            ask_store(spark, location)
        except Exception as error:
            if not self._add_jars(spark, error, store):
                raise _explained(spark, error, scheme, store) from error
            try:
                ask_store(spark, location)
            except Exception as again:
                raise _explained(spark, again, scheme, store) from again
        self._asked.add(store)

    def _add_jars(self, spark: SparkSession, error: Exception, store: str) -> bool:
        """Add the jars of a store that Spark has no class for; False if that is not what is wrong, or if there are none."""
        if not any(kind in (_NO_SCHEME, *_MISSING) for kind, _ in causes(error)):
            return False
        settings = self._settings.get(spark)
        jars = [] if settings is None else store_jars(settings, kinds(store, {}), find_spark_home(), find_java())
        if jars:
            add_jars(spark, jars)
        return bool(jars)


def _explained(spark: SparkSession, error: Exception, scheme: str, store: str) -> PenstockError:
    for kind, said in causes(error):
        if kind == _NO_SCHEME:
            missing, needed = f"no class for the scheme {scheme}://", _SCHEMES.get(scheme, "")
        elif kind in _MISSING:
            needed = said.removeprefix("Class ").removesuffix(" not found").replace("/", ".")
            missing = f"no class {needed}"
        else:
            continue
        return PenstockError(
            f"Spark has {missing}, so it can't read or write there", where=store, fix=_fix(spark, needed)
        )
    return from_spark(error)


def _fix(spark: SparkSession, needed: str) -> str:
    jar = next((jar for package, jar in _JARS.items() if needed.startswith(package)), "")
    which = f" ({jar.format(hadoop=hadoop_version(spark))})" if jar else ""
    return (
        f"A jar is missing{which}: name it in `spark.jars.packages` of `session.spark_config`, or, together with "
        "Delta's jars, in `session.jars`."
    )
