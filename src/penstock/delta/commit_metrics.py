"""The metrics of a commit: rows, files and bytes, from the table's log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.delta.table import Table

_NEWEST = 20
"""Our own commit is searched among this many newest commits."""


@dataclass(frozen=True)
class CommitMetrics:
    """Rows, files and bytes of a commit."""

    version: int
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    files: int = 0
    bytes: int = 0

    @property
    def rows(self) -> int:
        return self.rows_inserted + self.rows_updated + self.rows_deleted

    @classmethod
    def noted(cls, table: Table, note: str) -> CommitMetrics | None:
        """The metrics of the commit with this note; None if it is not among the newest commits."""
        ours = next((commit for commit in table.history(_NEWEST) if commit.get("userMetadata") == note), None)
        return None if ours is None else cls.from_commit(ours)

    @classmethod
    def from_commit(cls, commit: Mapping[str, Any]) -> CommitMetrics:
        """The metrics of a commit in the table's history. A metric that the commit does not have is 0."""
        metrics = {key: int(value) for key, value in (commit.get("operationMetrics") or {}).items() if _is_count(value)}

        def first(*keys: str) -> int:
            return next((metrics[key] for key in keys if key in metrics), 0)

        return cls(
            version=int(commit["version"]),
            # The names with underscores are those of delta-rs.
            rows_inserted=first("numTargetRowsInserted", "numOutputRows", "num_target_rows_inserted", "num_added_rows"),
            rows_updated=first("numTargetRowsUpdated", "numUpdatedRows", "num_target_rows_updated", "num_updated_rows"),
            rows_deleted=first("numTargetRowsDeleted", "numDeletedRows", "num_target_rows_deleted", "num_deleted_rows"),
            files=first(
                "numTargetFilesAdded", "numFiles", "numAddedFiles", "num_target_files_added", "num_added_files"
            ),
            bytes=first("numTargetBytesAdded", "numOutputBytes", "numAddedBytes"),
        )


def _is_count(value: Any) -> bool:
    return str(value).isdigit()
