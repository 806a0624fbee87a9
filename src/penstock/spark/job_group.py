"""Cancelling: the Spark jobs of one thread belong to a group, which another thread can cancel."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import CANCELLED, StatementError
from penstock.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_TO_CANCEL_AGAIN = 0.2
_PROPERTIES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class JobGroup:
    """The nested tags of one thread's work; the innermost tag is the group of its Spark jobs."""

    def __init__(self) -> None:
        self._spark: SparkSession | None = None
        self._tags: list[str] = []
        self._cancelled: str | None = None
        """The outermost tag of the work that was cancelled last; no tag is used twice."""

    def started(self, spark: SparkSession) -> None:
        """Have the jobs of this session belong to the group from now on; StatementError if the work was cancelled."""
        self._spark = spark
        if self._tags:
            self.join(self._tags)
        self._refuse_cancelled()

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """Spark jobs that start inside can be cancelled; this itself does not start Spark."""
        self._refuse_cancelled()
        self._tags.append(tag)
        self.join(self._tags)
        try:
            yield
        finally:
            self._tags.pop()
            self.join(self._tags)

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of the work that runs now, the outermost first."""
        return tuple(self._tags)

    def join(self, tags: Sequence[str]) -> None:
        """Have the calling thread's jobs belong to the group of the innermost tag; nothing happens before Spark runs."""
        if self._spark is None:
            return
        context = self._spark.sparkContext
        if tags:
            # Without an interrupt, a cancelled job ends only when its tasks do.
            context.setJobGroup(tags[-1], "penstock", interruptOnCancel=True)
        else:
            for key in _PROPERTIES:
                context.setLocalProperty(key, None)  # type: ignore[arg-type]

    def cancel(self) -> None:
        """Stop the work that runs now, and all that it would still start; from another thread."""
        if tags := self.tags:
            self._cancelled = tags[0]
            _cancel(tags)
            again = threading.Thread(target=self._cancel_again, args=(tags[0],), name="penstock-cancel", daemon=True)
            again.start()

    def _cancel_again(self, outermost: str) -> None:
        """Cancel until the work ends: Spark can't cancel a statement without a job, such as one that is being planned."""
        while (tags := self.tags) and tags[0] == outermost:
            _cancel(tags)
            time.sleep(_SECONDS_TO_CANCEL_AGAIN)

    def _refuse_cancelled(self) -> None:
        if self._tags and self._cancelled == self._tags[0]:
            raise StatementError("The run was cancelled", condition=CANCELLED)


def _cancel(tags: Sequence[str]) -> None:
    for tag in tags:
        session.cancel(tag)
