"""Commits of penstock and commits of other writers: ours carry a note, and foreign commits are checked.

The note of each commit of ours contains its `base`: the version at which its writer read the table's state. That
writer did not see the foreign commits above this base. So every reader of the state checks the foreign commits above
the base of our newest commit. A RESTORE between two batches therefore can't go unnoticed.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.delta.table import Table
from penstock.errors import PenstockError

Commit = Mapping[str, Any]

OURS = "penstock "
"""The prefix of the note (`userMetadata`) of our commits. Commits without it are foreign."""
_BASE = re.compile(r" base (-?\d+)(?: void: .*)?$", re.DOTALL)
_EDITS = {"DELETE", "UPDATE", "MERGE", "TRUNCATE"}
_WRITES = {"WRITE", "STREAMING UPDATE", "COPY INTO"}
_REPLACES = re.compile(r"CREATE|(?:CREATE OR )?REPLACE TABLE|CLONE|CONVERT")
_ALWAYS = re.compile(r"[\[\]()\"'\s]*true[\[\]()\"'\s]*", re.IGNORECASE)
_REFRESH = "run with --full-refresh to load the table again"


def note_of(what: object, base: int) -> str:
    """A unique note for one commit of ours. `base` is the version at which its writer read the table's state.

    >>> note_of(7, 12)    # doctest: +SKIP
    'penstock 7 6c0d… base 12'
    """
    return f"{OURS}{what} {uuid.uuid4()} base {base}"


def is_ours(commit: Commit) -> bool:
    """Whether penstock made a commit."""
    return str(commit.get("userMetadata") or "").startswith(OURS)


def base_of(commit: Commit) -> int:
    """The version at which the writer of one of our commits read the state. Notes of 0.1.0 do not contain it."""
    found = _BASE.search(str(commit["userMetadata"]))
    return int(found.group(1)) if found else int(commit["version"]) - 1


def foreign_commits(table: Table) -> list[Commit]:
    """The foreign commits that no writer of ours has seen yet, newest first.

    An error if one of them has removed our rows from the table: a RESTORE to a version before one of our commits, a
    CREATE OR REPLACE, or an overwrite of the whole table.
    """
    log = _Log(table)
    floor = log.floor()
    _check_nothing_lost(log, floor)
    return [commit for commit in log.above(floor) if not is_ours(commit)]


def edits(commits: list[Commit], *, appends: bool = False) -> list[str]:
    """The operation and version of each commit that changed rows, for messages, oldest first.

    With `appends`, also the commits that only added rows.
    """
    wanted = _EDITS | _WRITES if appends else _EDITS
    return [
        f"{commit['operation']} (version {commit['version']})"
        for commit in reversed(commits)
        if commit.get("operation") in wanted
    ]


class _Log:
    """A table's commits. Each is read at most once, and only when it is needed."""

    def __init__(self, table: Table) -> None:
        self.location = table.location
        self.newest = table.version
        self._left: Iterator[Commit] = iter(table.commits())
        self._read: dict[int, Commit] = {}

    def get(self, version: int) -> Commit | None:
        """The commit of a version; None if log cleanup has deleted it."""
        while version not in self._read:
            commit = next(self._left, None)
            if commit is None:
                return None
            self._read[int(commit["version"])] = commit
        return self._read[version]

    def above(self, version: int, upto: int | None = None) -> Iterator[Commit]:
        """The commits above a version that still exist, newest first."""
        for number in range(self.newest if upto is None else upto, version, -1):
            commit = self.get(number)
            if commit is None:
                return
            yield commit

    def floor(self) -> int:
        """The version up to which the writer of our newest commit saw all commits; -1 if that commit is gone."""
        ours = next((commit for commit in self.above(-1) if is_ours(commit)), None)
        return -1 if ours is None else base_of(ours)


def _check_nothing_lost(log: _Log, floor: int) -> None:
    """Walk back from the newest version, and raise an error if it does not contain all of our commits.

    A version builds on the version before it. After a RESTORE, it builds on the restored version. Versions up to the
    floor contain all of our commits, so the walk ends there. If a RESTORE goes back below the floor, the walk goes on
    to the next commit of ours, because that commit was made on a version with all of our earlier commits.
    """
    version, led_back = log.newest, False
    while version > floor or led_back:
        commit = log.get(version)
        if commit is None:
            if led_back:
                raise _lost(log, "restored to a version whose commits are no longer in the log", None)
            return
        if is_ours(commit):
            if version <= floor or _is_replace(commit):
                return
        elif commit.get("operation") == "RESTORE":
            target = _restored(commit)
            _check_restore(log, commit, target)
            version, led_back = target, led_back or target < floor
            continue
        elif _is_replace(commit):
            raise _lost(log, "replaced by another writer", commit)
        elif _is_overwrite(commit):
            raise _lost(log, "overwritten by another writer", commit)
        version -= 1


def _check_restore(log: _Log, commit: Commit, target: int) -> None:
    version = int(commit["version"])
    between = list(log.above(target, version - 1))
    if len(between) == version - 1 - target and not any(is_ours(other) for other in between):
        return
    if target < 0:
        # The log does not contain the version, so this is treated like a RESTORE to the first version.
        raise _lost(log, "restored to the version of a timestamp, whose number is not in the log,", commit)
    raise _lost(log, f"restored to an older version, {target},", commit)


def _restored(commit: Commit) -> int:
    version = (commit.get("operationParameters") or {}).get("version")
    return -1 if version is None else int(version)


def _is_replace(commit: Commit) -> bool:
    return _REPLACES.match(str(commit.get("operation") or "")) is not None


def _is_overwrite(commit: Commit) -> bool:
    parameters = commit.get("operationParameters") or {}
    if str(parameters.get("outputMode")) == "Complete":
        return True
    if commit.get("operation") != "WRITE" or str(parameters.get("mode")) != "Overwrite":
        return False
    if predicate := parameters.get("predicate"):
        return _ALWAYS.fullmatch(str(predicate)) is not None
    # A table without partitions is one partition, and this partition is overwritten.
    partitioned = str(parameters.get("partitionBy") or "[]") != "[]"
    return not (partitioned and str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true")


def _lost(log: _Log, what: str, commit: Commit | None) -> PenstockError:
    """The error for lost rows. It suggests a RESTORE if a RESTORE would bring all of our rows back."""
    fix = f"{_REFRESH[0].upper()}{_REFRESH[1:]}."
    if commit is None:
        return PenstockError(f"This table was {what}", where=log.location, fix=fix)
    version = int(commit["version"])
    if version > 0 and not any(is_ours(other) for other in log.above(version)):
        fix = f"RESTORE the table to version {version - 1} to undo this, or {_REFRESH}."
    return PenstockError(
        f"This table was {what} in version {version} ({commit.get('operation')}), "
        "so rows of committed batches are gone",
        where=log.location,
        fix=fix,
    )
