"""The end of this process's JVM."""

from __future__ import annotations

import subprocess
from typing import Any

from penstock.secrets import logger
from penstock.spark.internals import process
from penstock.spark.startup.archive import ClassArchive

log = logger("penstock.session")

# The dump of a first run's classes takes seconds; a JVM that does not end is killed after this time.
_SECONDS_TO_END = 120


def end(archive: ClassArchive, *, local: bool, fast: bool) -> None:
    """End Spark as the process ends.

    A JVM of our own that has no class archive to write is killed: to stop Spark in order only tidies up a folder that
    is deleted anyway.
    """
    gateway = process.gateway()
    if gateway is not None:
        if fast and local and not archive.is_due and getattr(gateway, "proc", None) is not None:
            _kill(gateway)
        else:
            stop()
    archive.keep()


def stop() -> None:
    """Stop Spark in order, and end its JVM if this process started it."""
    from py4j.protocol import Py4JError

    gateway = process.gateway()
    if gateway is None:
        return
    if (context := process.running_context()) is not None:
        try:
            # Without this the JVM goes away under pyspark's own threads, and they say so on stderr.
            context.stop()
        except Py4JError as error:
            log.debug("Spark was gone already: %s", error)
    process.forget_gateway()
    gateway.shutdown()
    if getattr(gateway, "proc", None) is not None:
        # The JVM ends when this pipe does.
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(timeout=_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()


def _kill(gateway: Any) -> None:
    if (context := process.running_context()) is not None:
        process.mute_accumulators(context)
    gateway.shutdown()
    gateway.proc.kill()  # cannot be refused, so the next line ends
    gateway.proc.wait()
