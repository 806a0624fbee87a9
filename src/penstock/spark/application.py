"""The state that penstock keeps for one Spark application: all sessions of a process share it."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

from penstock.spark.catalog import Catalog
from penstock.spark.file_systems import Stores
from penstock.spark.shared_disk import SharedDisks
from penstock.spark.startup.first_statement import FirstStatement

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_INTERPRETED = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


class Application:
    """The state of one Spark application. Thread-safe."""

    def __init__(self) -> None:
        self.stores = Stores()
        """The stores that Spark is known to work on."""
        self.disks = SharedDisks()
        """The folders that all executors are known to see."""
        self.catalog = Catalog(self.stores)
        """The lake's names in Spark's in-memory catalog."""
        self.first_statement = FirstStatement()
        """Has the first statement that writes run alone."""
        self._interpreting: SparkSession | None = None
        self._lock = threading.Lock()

    def interpreting(self, spark: SparkSession) -> SparkSession:
        """A session for queries over a handful of rows with hundreds of columns, such as Delta's over a small log.

        It generates no code and does not plan again after each stage: both take longer than such a query does.
        """
        with self._lock:
            if self._interpreting is None:
                made = spark.newSession()
                for key, value in _INTERPRETED.items():
                    made.conf.set(key, value)
                self._interpreting = made
            return self._interpreting


_current: tuple[weakref.ref[SparkContext], Application] | None = None
"""The application of the one Spark context that a process can have at a time. The next context gets a new one."""
_lock = threading.Lock()


def application_of(spark: SparkSession) -> Application:
    """The application of a session."""
    global _current
    with _lock:
        if _current is None or _current[0]() is not spark.sparkContext:
            _current = (weakref.ref(spark.sparkContext), Application())
        return _current[1]
