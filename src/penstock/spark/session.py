"""The one Spark of this process, and its sessions. Spark starts when `Runner.spark` is used for the first time."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.config.hadoop_options import HADOOP
from penstock.config.session_settings import SessionSettings
from penstock.spark.internals import process
from penstock.spark.partitions import cluster_partitions
from penstock.spark.startup import end
from penstock.spark.startup.start import start
from penstock.spark.startup.store_settings import NO_STORES, StoreSettings
from penstock.sql.quoting import PINNED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_starting = threading.Lock()


def spark_session(settings: SessionSettings, stores: StoreSettings = NO_STORES) -> SparkSession:
    """A new session, with settings and temporary views of its own, on this process's one Spark.

    Spark starts with the first call; an error if it can't. A session of another lake than Spark was started for gets
    the settings of its own stores.
    """
    with _starting:
        context = process.running_context()
        first = start(settings, stores) if context is None else process.first_session(context)
    session = first.newSession()
    if not settings.is_local:
        # Asked for by each session, because executors come and go.
        for key, value in cluster_partitions(session.sparkContext).items():
            session.conf.set(key, value)
    _set_hadoop(session, {**stores.settings, **settings.spark_config})
    if stores.profile is not None:
        process.set_property(first.sparkContext, "aws.profile", stores.profile)
    for key, value in settings.spark_config.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    pin(session)
    return session


def _set_hadoop(session: SparkSession, settings: Mapping[str, str]) -> None:
    """Set what Hadoop is to know for this session, where Spark started with something else."""
    started = session.sparkContext.getConf()
    for key, value in settings.items():
        if key.startswith(HADOOP) and started.get(key) != value:
            # Hadoop's settings of a session have no prefix.
            session.conf.set(key.removeprefix(HADOOP), value)


def pin(session: SparkSession) -> None:
    """Set what our quoting relies on, also in a Spark that penstock did not start."""
    for key, value in PINNED.items():
        session.conf.set(key, value)


def is_running() -> bool:
    """Whether this process has a Spark; this does not start one."""
    return process.running_context() is not None


def cancel(group: str) -> None:
    """Stop the jobs of a group, from any thread: the jobs that run, and those that its statement has yet to start."""
    if (context := process.running_context()) is not None:
        process.cancel_group(context, group)


def stop() -> None:
    """End this process's Spark if it runs."""
    if is_running():
        end.stop()
