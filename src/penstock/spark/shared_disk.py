"""The check that a cluster's executors see the lake's disk: without it, each would write to a disk of its own."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, from_spark
from penstock.lake.leftovers import staged_name
from penstock.lake.lock import Lock
from penstock.spark.internals.executors import executor_count
from penstock.storage import is_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOT_THERE = ("FAILED_READ_FILE", "PATH_NOT_FOUND")


class SharedDisks:
    """The folders that the executors of one Spark application are known to see. Thread-safe."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._lock = threading.Lock()

    def check(self, spark: SparkSession, root: str) -> None:
        """Fail if an executor can't read a new file of this process in a folder. Each folder is checked once.

        The folder is created if needed; in a local Spark, and on object stores, nothing happens.
        """
        if is_uri(root) or _is_local(spark):
            return
        with self._lock:
            if root not in self._seen:
                _check(spark, root)
                self._seen.add(root)


def _is_local(spark: SparkSession) -> bool:
    master = spark.sparkContext.master or "local"
    return master == "local" or master.startswith("local[")


def _check(spark: SparkSession, root: str) -> None:
    # The name of a build, so that a sweep removes what a killed process has left.
    folder = Path(root, staged_name())
    os.makedirs(folder)
    lock = Lock.hold(folder)
    probe = folder / "probe.txt"
    try:
        probe.write_text("penstock\n")
        # A file is a task, and tasks go to all executors that are free.
        tasks = 2 * max(executor_count(spark.sparkContext), 1)
        read = spark.read.text([str(probe)] * tasks).count()
    except Exception as error:
        failed = from_spark(error)
        if not (failed.condition or "").startswith(_NOT_THERE):
            raise failed from error
        read, tasks = 0, 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            lock.release()
    if read < tasks:
        raise PenstockError(
            f"The executors of {spark.sparkContext.master} do not see the lake's folder of this machine: each would write "
            "to a disk of its own, and the rows would be lost",
            where=root,
            fix="Put the lake on a disk that all machines of the cluster mount at this path, or on an object store "
            "(`root: s3://…`).",
        )
