"""The temporary folder of this process's Spark, and the removal of folders that killed processes have left."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from penstock.lake.lock import DAY, Lock, delete_folder, is_locked_folder, untouched_for

_PREFIX = "penstock-"


class TemporaryFolder:
    """A folder that is removed at the end of the process, or by a later process if this one is killed.

    The JVM holds its lock too: if Python is killed, the JVM goes on for a moment and still writes here.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
        self._lock = Lock.hold(Path(self.path))
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The open files for `pass_fds`, with which a child process holds the lock as well."""
        return () if self._lock is None else (self._lock.descriptor,)


def sweep() -> None:
    """Remove the folders of processes that have ended; a folder that can't be removed stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        if not is_locked_folder(folder):
            _sweep_unlocked(folder)
        elif (lock := Lock.take(folder)) is not None:
            delete_folder(folder)
            lock.release()


def _sweep_unlocked(folder: Path) -> None:
    """Remove a folder without a lock, of an old version or on a disk without locks, once it is old enough.

    Its process id may be another container's.
    """
    pid = folder.name[len(_PREFIX) :].split("-", 1)[0]
    if pid.isdigit() and not _alive(int(pid)) and untouched_for(folder, DAY):
        shutil.rmtree(folder, ignore_errors=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
