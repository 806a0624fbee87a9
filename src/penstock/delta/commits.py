"""Whose a commit is: ours carry a note, and the commits of others are looked at before we build on them.

Every commit of ours notes its `base`, the version at which its writer had read the table's state. All that was
committed above the base of our newest commit, by others, has not been looked at when that commit was made: so it is
looked at whenever the state is read, and a RESTORE between two batches can't hide below the second one.
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
"""How the note (`userMetadata`) of each commit of ours begins."""
_BASE = re.compile(r" base (-?\d+)(?: void: .*)?$", re.DOTALL)
_EDITS = {"DELETE", "UPDATE", "MERGE", "TRUNCATE"}
_WRITES = {"WRITE", "STREAMING UPDATE", "COPY INTO"}
_REPLACES = re.compile(r"CREATE|(?:CREATE OR )?REPLACE TABLE|CLONE|CONVERT")
_ALWAYS = re.compile(r"[\[\]()\"'\s]*true[\[\]()\"'\s]*", re.IGNORECASE)
_REFRESH = "run with --full-refresh to load it anew"


def note_of(what: object, base: int) -> str:
    """A note for one commit of ours, such as no other carries; `base` is the version that its state was read at.

    >>> note_of(7, 12)    # doctest: +SKIP
    'penstock 7 6c0d… base 12'
    """
    return f"{OURS}{what} {uuid.uuid4()} base {base}"


def is_ours(commit: Commit) -> bool:
    return str(commit.get("userMetadata") or "").startswith(OURS)


def base_of(commit: Commit) -> int:
    """The version that the state of one of our commits was read at; 0.1.0 did not note it."""
    found = _BASE.search(str(commit["userMetadata"]))
    return int(found.group(1)) if found else int(commit["version"]) - 1


def foreign_commits(table: Table) -> list[Commit]:
    """The commits of others that none of ours has been built on knowingly, newest first.

    An error where one of them took rows of ours out of the table: a RESTORE to below one of our commits, a CREATE OR
    REPLACE, an overwrite of the whole table.
    """
    log = _Log(table)
    floor = log.floor()
    _check_nothing_lost(log, floor)
    return [commit for commit in log.above(floor) if not is_ours(commit)]


def edits(commits: list[Commit], *, appends: bool = False) -> list[str]:
    """Those of some commits that changed rows (or, if wanted, added some), oldest first, as a reader may be told."""
    wanted = _EDITS | _WRITES if appends else _EDITS
    return [
        f"{commit['operation']} (version {commit['version']})"
        for commit in reversed(commits)
        if commit.get("operation") in wanted
    ]


class _Log:
    """A table's commits, newest first, each read once and only when it is asked for."""

    def __init__(self, table: Table) -> None:
        self.location = table.location
        self.newest = table.version
        self._left: Iterator[Commit] = iter(table.commits())
        self._read: dict[int, Commit] = {}

    def get(self, version: int) -> Commit | None:
        """A commit; None where it was cleaned up."""
        while version not in self._read:
            commit = next(self._left, None)
            if commit is None:
                return None
            self._read[int(commit["version"])] = commit
        return self._read[version]

    def above(self, version: int, upto: int | None = None) -> Iterator[Commit]:
        """The commits above a version that are still there, newest first."""
        for number in range(self.newest if upto is None else upto, version, -1):
            commit = self.get(number)
            if commit is None:
                return
            yield commit

    def floor(self) -> int:
        """The version up to which all has been looked at by the writer of our newest commit; -1 where that is gone."""
        ours = next((commit for commit in self.above(-1) if is_ours(commit)), None)
        return -1 if ours is None else base_of(ours)


def _check_nothing_lost(log: _Log, floor: int) -> None:
    """Follow how the newest version came about, and raise where that leaves commits of ours aside.

    A version is the one before it and a commit; after a RESTORE it is the version that was restored. Versions up to the
    floor are known to hold all of ours, unless a RESTORE leads back among them: from there on it is followed to the
    first commit of ours, which was made on a version that held all before it.
    """
    version, led_back = log.newest, False
    while version > floor or led_back:
        commit = log.get(version)
        if commit is None:
            if led_back:
                raise _lost(log, "restored to a version whose commits are not in the log any more", None)
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
            raise _lost(log, "replaced by something else", commit)
        elif _is_overwrite(commit):
            raise _lost(log, "overwritten by something else", commit)
        version -= 1


def _check_restore(log: _Log, commit: Commit, target: int) -> None:
    version = int(commit["version"])
    between = list(log.above(target, version - 1))
    if len(between) == version - 1 - target and not any(is_ours(other) for other in between):
        return
    if target < 0:
        # Taken for the beginning, so that nothing passes unseen.
        raise _lost(log, "restored to an older version by a timestamp, which the log does not resolve,", commit)
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
    # Of a table without partitions, all rows are of the one partition that is overwritten.
    partitioned = str(parameters.get("partitionBy") or "[]") != "[]"
    return not (partitioned and str(parameters.get("isDynamicPartitionOverwrite")).lower() == "true")


def _lost(log: _Log, what: str, commit: Commit | None) -> PenstockError:
    """The error, with a RESTORE as the way out where that would bring all of our rows back."""
    fix = f"{_REFRESH[0].upper()}{_REFRESH[1:]}."
    if commit is None:
        return PenstockError(f"This table was {what}", where=log.location, fix=fix)
    version = int(commit["version"])
    if version > 0 and not any(is_ours(other) for other in log.above(version)):
        fix = f"RESTORE it to version {version - 1} to undo that, or {_REFRESH}."
    return PenstockError(
        f"This table was {what} in version {version} ({commit.get('operation')}), "
        "so rows of batches that count as done are gone",
        where=log.location,
        fix=fix,
    )
