"""Runs a statement again after a commit conflict."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from penstock.errors import StatementError
from penstock.secrets import logger

log = logger("penstock.retry")
T = TypeVar("T")
_ATTEMPTS = 12


def retrying(attempt: Callable[[], T]) -> T:
    """The result of an attempt, which runs again on the new state of its table after a commit conflict."""
    for number in range(1, _ATTEMPTS):
        try:
            return attempt()
        except StatementError as error:
            if not error.may_run_again:
                raise
            pause = min(0.1 * 2**number, 5.0) * random.uniform(0.5, 1.0)
            log.info("another writer was first (%s); trying again in %.1f s", error.condition, pause)
            time.sleep(pause)
    return attempt()
