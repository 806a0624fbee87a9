"""Locks on folders. The operating system releases a lock when its process ends, also after a kill.

A lock also works between containers that share a disk; a process id does not.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # not POSIX: only the age of a folder tells whether it is in use
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"
DAY = 24 * 3600.0
"""A folder that can't be locked counts as abandoned after this many seconds."""


@dataclass(frozen=True)
class Lock:
    """A lock on a folder. A child process that inherits the descriptor holds the lock too, until both have ended."""

    folder: Path
    descriptor: int

    @classmethod
    def hold(cls, folder: Path) -> Lock | None:
        """Lock a new folder; None if the disk has no locks.

        The lock file gets its name only when it is locked, so no other process can lock it first.
        """
        if fcntl is None:
            return None
        unnamed = folder / f".{LOCK_FILE}"
        descriptor = os.open(unnamed, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(unnamed, folder / LOCK_FILE)
        except OSError:
            os.close(descriptor)
            unnamed.unlink(missing_ok=True)
            return None
        return cls(folder, descriptor)

    @classmethod
    def take(cls, folder: Path) -> Lock | None:
        """Lock a folder whose owner has ended; None if the owner is alive, or if this is unknown."""
        try:
            descriptor = os.open(folder / LOCK_FILE, os.O_RDWR)
        except OSError:
            return None
        try:
            if fcntl is None:
                raise OSError("no locks")
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return None
        return cls(folder, descriptor)

    def release(self) -> None:
        os.close(self.descriptor)


def delete_folder(folder: Path) -> OSError | None:
    """Delete as much of a folder as possible. Returns the first failure, or None.

    The lock file is deleted last: if the deletion is killed, the next sweep still recognizes the folder. A file that
    another process has deleted in the meantime is not a failure.
    """
    failed: list[OSError] = []

    def keep(function: Any, path: str, info: Any) -> None:
        if not isinstance(info[1], FileNotFoundError):
            failed.append(info[1])

    try:
        below = [path for path in folder.iterdir() if path.name != LOCK_FILE]
    except FileNotFoundError:
        return None
    except OSError as error:
        return error
    for path in below:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, onerror=keep)
            continue
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            failed.append(error)
    if not failed:
        shutil.rmtree(folder, onerror=keep)
    return failed[0] if failed else None


def is_locked_folder(folder: Path) -> bool:
    """Whether the folder was created with a lock, held or not."""
    return os.path.lexists(folder / LOCK_FILE)


def untouched_for(folder: Path, seconds: float) -> bool:
    """Whether nothing directly below a folder has changed for this many seconds; False if this is unknown."""
    try:
        newest = max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return False
    return time.time() - newest > seconds
