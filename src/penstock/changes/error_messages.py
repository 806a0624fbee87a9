"""The messages of errors that Spark raises while a plan runs: which versions, which column, and the next step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.changes.plan import ChangePlan
from penstock.changes.source import FollowedSources
from penstock.changes.version_range import Gap
from penstock.errors import PenstockError, StatementError
from penstock.spark import key_checks
from penstock.sql.names import Name

_FILE_GONE = ("FAILED_READ_FILE.FILE_NOT_EXIST", "DELTA_CHANGE_DATA_FILE_NOT_FOUND", "DELTA_FILE_NOT_FOUND")
_FEED_GONE = ("DELTA_MISSING_CHANGE_DATA", "DELTA_LOG_FILE_NOT_FOUND", "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
              "DELTA_VERSIONS_NOT_CONTIGUOUS", "DELTA_CANNOT_TIME_TRAVEL", "DELTA_VERSION_NOT_FOUND")  # fmt: skip
_NOT_OF_VALUES = ("DELTA_", "FAILED_READ_FILE", "INTERNAL_ERROR", "UNABLE_TO_ACQUIRE_MEMORY", "USER_RAISED_EXCEPTION")


def is_of_values(error: StatementError) -> bool:
    """Whether Spark refuses a value or a name in the query, and not a table, a file or a commit."""
    condition = error.condition or ""
    return bool(condition) and not condition.startswith(_NOT_OF_VALUES) and not error.is_cancelled


@dataclass(frozen=True)
class Explainer:
    """Explains why a plan of one model failed."""

    name: Name
    unique_key: tuple[str, ...]
    sources: FollowedSources

    def explained(self, error: PenstockError, plan: ChangePlan, misfits: Sequence[str] = ()) -> PenstockError:
        """The error in words of the model, a Gap if changes are gone; the error itself if nothing is known about it.

        `misfits` are the columns whose types differ between the model and the table.
        """
        if not isinstance(error, StatementError):
            return error
        if _is_gone(error):
            return Gap(
                f"Changes of {plan} are gone from disk, deleted by VACUUM or by hand: "
                f"{str(error).splitlines()[0][:300]}",
                where=", ".join(versions.location for versions in plan.ranges),
            )
        return (
            key_checks.explained(error, self.unique_key, str(self.name))
            or self._of_types(error, plan, misfits)
            or self._of_dropped_columns(error, plan)
            or error
        )

    def _of_types(self, error: StatementError, plan: ChangePlan, misfits: Sequence[str]) -> PenstockError | None:
        if not misfits or not (error.condition or "").startswith(("CAST_", "DATATYPE_MISMATCH")):
            return None
        return PenstockError(
            f"A value of {plan} does not fit: {error.what.splitlines()[0]} The table and the model differ: "
            f"{'; '.join(misfits)}",
            where=str(self.name),
            fix="No row was changed. Set `on_schema_change: sync_all_columns`, or run with --full-refresh.",
        )

    def _of_dropped_columns(self, error: StatementError, plan: ChangePlan) -> PenstockError | None:
        if not (error.condition or "").startswith("UNRESOLVED_COLUMN"):
            return None
        dropped = [
            f"{', '.join(sorted(changed.dropped))} of {name}"
            for name, changed in self.sources.changes(plan.ranges).items()
            if changed.dropped
        ]
        if not dropped:
            return None
        return PenstockError(
            f"The model reads a dropped column: {'; '.join(dropped)} (dropped in {plan}). {error.what.splitlines()[0]}",
            where=str(self.name),
            fix="No row was changed. Remove the column from the SQL, or add it upstream again.",
        )


def _is_gone(error: StatementError) -> bool:
    """Whether a file or a version that the plan reads is gone."""
    if error.condition is not None:
        return error.condition.startswith((*_FILE_GONE, *_FEED_GONE))
    # Hadoop reads log files and deletion vectors, and its exception has no condition.
    return "FileNotFound" in str(error)
