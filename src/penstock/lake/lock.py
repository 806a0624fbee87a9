"""Locks on folders, held by the living: the system releases them when a process ends, however it ends.

A process id says nothing across containers that share a disk; a lock does.
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
except ImportError:  # no POSIX: folders are judged by their age alone
    fcntl = None  # type: ignore[assignment]

LOCK_FILE = "lock"
DAY = 24 * 3600.0
"""After so many seconds a folder that can't be locked counts as left behind."""


@dataclass(frozen=True)
class Lock:
    """A lock on a folder. A child process that is passed the descriptor holds it too, until both have ended."""

    folder: Path
    descriptor: int

    @classmethod
    def hold(cls, folder: Path) -> Lock | None:
        """Lock a new folder; None where the disk has no locks.

        The file takes its name when it is locked: nobody can find it in between and lock it first.
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
        """Lock a folder whose holder has ended; None where it lives, or where that can't be told."""
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
    """Delete a folder; the first failure is returned, and what could not be deleted stays.

    The lock's file goes last: of a deletion that is killed, a folder is left that the next sweep knows. What another
    process has deleted meanwhile is no failure.
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
    """Whether the folder was made with a lock, held or not."""
    return os.path.lexists(folder / LOCK_FILE)


def untouched_for(folder: Path, seconds: float) -> bool:
    """Whether nothing was made, removed or written directly below a folder since; False where that can't be told."""
    try:
        newest = max(path.lstat().st_mtime for path in (folder, *folder.iterdir()))
    except OSError:
        return False
    return time.time() - newest > seconds
