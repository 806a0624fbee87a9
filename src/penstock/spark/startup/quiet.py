"""Silences the messages that pyspark and py4j print themselves: users see our errors instead."""

from __future__ import annotations

import logging
from pathlib import Path


def silence_python() -> None:
    """Keep pyspark from printing the context of each failing query, and py4j each broken pipe."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # py4j also logs to the root logger, when a JVM ends while Python still lets go of objects in it.
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts
