"""The driver of a cluster: where it keeps files, and the wait for its first executors."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.secrets import logger
from penstock.spark.internals.executors import executor_count

if TYPE_CHECKING:
    from pyspark import SparkContext

log = logger("penstock.session")

# An executor starts within seconds on a free worker. A query without executors waits for ever, and says nothing.
_SECONDS_FOR_EXECUTORS = 30
# Executors of other workers register shortly after the first one.
_SECONDS_BETWEEN_EXECUTORS = 1.0
_SCRATCH, _OPTIONS = "SPARK_LOCAL_DIRS", "SPARK_SUBMIT_OPTS"


def driver_environment(configuration: Mapping[str, str], folder: str) -> dict[str, str]:
    """Variables that keep the driver's files in a folder of this process, also if it is killed.

    Settings would reach the executors, on whose machines there is no such folder; variables do not.
    """
    options = f"{os.environ.get(_OPTIONS, '')} -Djava.io.tmpdir={folder}".strip()
    if _SCRATCH in os.environ or "spark.local.dir" in configuration:
        return {_OPTIONS: options}
    return {_OPTIONS: options, _SCRATCH: folder}


def wait_for_executors(context: SparkContext) -> None:
    """Wait until no further executor registers for a moment; a warning if there is none after half a minute.

    On YARN and Kubernetes Spark itself has waited for most of them by now.
    """
    until = time.monotonic() + _SECONDS_FOR_EXECUTORS
    known, since = 0, time.monotonic()
    while time.monotonic() < until:
        found = executor_count(context)
        if found > known:
            known, since = found, time.monotonic()
        elif known and time.monotonic() - since > _SECONDS_BETWEEN_EXECUTORS:
            return
        time.sleep(0.05)
    if not known:
        log.warning(
            "The cluster %s has given no executor within %s seconds, and queries wait until it does. Either it has no "
            "free cores or memory, or its executors can't reach the driver at %s: look at the master's page, and set "
            "`session.driver_host` to an address of this machine that they can reach.",
            context.master,
            _SECONDS_FOR_EXECUTORS,
            context.getConf().get("spark.driver.host"),
        )
