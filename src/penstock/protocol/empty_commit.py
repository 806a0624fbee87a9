"""Commits without data: they carry marks, and may set properties of the table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from deltalake.exceptions import CommitFailedError, DeltaError

from penstock.delta.table import Table
from penstock.errors import CommitConflict


class CommitBySpark(Protocol):
    """Commits without data by Spark, for tables that delta-rs can only read."""

    def __call__(
        self, known: Table, marks: Mapping[str, int], note: str, properties: Mapping[str, str] | None = None
    ) -> None: ...


def commit_marks(
    known: Table,
    marks: Mapping[str, int],
    note: str,
    by_spark: CommitBySpark | None = None,
    properties: Mapping[str, str] | None = None,
) -> None:
    """Commit marks on exactly this version of a table; CommitConflict if the table has a newer version.

    delta-rs commits. Spark starts only for a table that delta-rs cannot write.
    """
    try:
        known.commit_marks(marks, note, properties)
    except (DeltaError, OSError) as error:
        if "Unsupported" in str(error) and by_spark is not None:
            # delta-rs can read tables with clustering or row tracking, and cannot write them.
            by_spark(known, marks, note, properties)
        elif isinstance(error, CommitFailedError) and "Unsupported" not in str(error):
            raise CommitConflict(str(error)) from error
        else:
            raise known.failure_of_commit(error) from error
