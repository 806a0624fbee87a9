"""The check that this Spark and Delta are supported: once for each of their versions, and remembered in the cache."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.lake.relations import digest
from penstock.secrets import logger
from penstock.spark.internals.probe import check_signatures
from penstock.spark.internals.signatures import EXPECTED
from penstock.spark.startup.cache import COMPILED, is_trusted_file, trusted_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logger("penstock.session")


def check_supported(spark: SparkSession, made_of: str) -> None:
    """Fail if Spark or Delta lacks a private method that penstock calls; `made_of` is the digest of their jars."""
    known = _known(spark, made_of)
    if known is not None and is_trusted_file(known):
        return
    begun = time.monotonic()
    check_signatures(spark)
    log.debug("this Spark and Delta are supported; the check took %.2f s", time.monotonic() - begun)
    if known is not None:
        try:
            known.touch(mode=0o600)
        except OSError as error:  # a cache that can't be written costs this check at each start
            log.debug("the check is not remembered: %s", error)


def _known(spark: SparkSession, made_of: str) -> Path | None:
    """The file that says that these jars passed, with the expectations of this penstock; None without a cache."""
    try:
        # `.json`, so that the cache removes it when nothing has used it for long.
        return trusted_folder(COMPILED) / f"supported-{digest(spark.version, made_of, EXPECTED)[:16]}.json"
    except (OSError, PenstockError):
        return None
