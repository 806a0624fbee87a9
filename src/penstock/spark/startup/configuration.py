"""The settings that Spark starts with, each with its reason if its name does not give it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from penstock.config.session_settings import SessionSettings
from penstock.spark.partitions import partitions
from penstock.spark.startup.memory import driver_memory
from penstock.sql.quoting import PINNED

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def spark_configuration(
    settings: SessionSettings, folder: str, jars: Sequence[str], java_options: Sequence[str] = ()
) -> dict[str, str]:
    """All settings that Spark starts with; those of the profile win. `java_options` are for a local JVM."""
    conf = _everywhere(settings, folder) | PINNED
    given = dict(settings.spark_config)
    if settings.is_local:
        options = [*java_options, given.pop(_JAVA_OPTIONS, "")]
        conf |= _local(folder, jars) | {_JAVA_OPTIONS: " ".join(option for option in options if option)}
    else:
        conf |= _cluster(settings, [*jars, *filter(None, given.pop("spark.jars", "").split(","))])
    return conf | given


def _everywhere(settings: SessionSettings, folder: str) -> dict[str, str]:
    return {
        "spark.app.name": "penstock",
        "spark.master": settings.master or "local[*]",
        "spark.driver.memory": settings.memory or driver_memory(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # No metastore: names are kept in memory, so nothing is written into the user's folder.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.sql.sources.default": "delta",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Spark 4.2.0 can pass columnar batches of Parquet to Python workers as they are; a UDF over them never ends.
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark describes each query for the UI, though there is none: keep that short.
        "spark.sql.ui.explainMode": "simple",
        "spark.log.level": "ERROR",
        # Spark's own pattern knows the names of S3's secrets, but neither Azure's keys nor its signatures.
        "spark.redaction.regex": "(?i)secret|passw|token|access[._]?key|account[._]key|[._]sas[._]|signature|private[._]?key",
        # Partitions in `day=…/` folders are listed from disk: the in-memory catalog knows none, and would return no rows.
        "spark.sql.hive.manageFilesourcePartitions": "false",
        # With more than 32 files Spark would run a job just to list them.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    }


def _local(folder: str, jars: Sequence[str]) -> dict[str, str]:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return {
        # Not `spark.jars`: the class archive holds only classes from the JVM's own class path.
        "spark.driver.extraClassPath": os.pathsep.join(jars),
        "spark.local.dir": folder,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        **partitions(cores),
    }


def _cluster(settings: SessionSettings, jars: Sequence[str]) -> dict[str, str]:
    """Settings of a cluster. The numbers of partitions follow its cores, which `partitions.py` asks for later."""
    network = {"spark.driver.host": settings.driver_host, "spark.driver.bindAddress": settings.driver_bind_address}
    # Executors fetch these jars from the driver.
    return {"spark.jars": ",".join(jars)} | {key: value for key, value in network.items() if value}
