"""The temporary folder of this process's Spark, and the sweep of those that killed processes have left."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from penstock.lake.lock import DAY, Lock, delete_folder, is_locked_folder, untouched_for

_PREFIX = "penstock-"


class TemporaryFolder:
    """A folder that is removed as the process ends, and by a later process's sweep where it was killed.

    Its lock is for the JVM too: when Python is killed, the JVM goes on for a moment and still writes here.
    """

    def __init__(self) -> None:
        self.path = tempfile.mkdtemp(prefix=f"{_PREFIX}{os.getpid()}-")
        self._lock = Lock.hold(Path(self.path))
        atexit.register(shutil.rmtree, self.path, ignore_errors=True)

    @property
    def descriptors(self) -> tuple[int, ...]:
        """For `pass_fds`: a child process that has them holds the lock as well."""
        return () if self._lock is None else (self._lock.descriptor,)


def sweep() -> None:
    """Remove the folders whose processes have ended; whatever can't be removed stays."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*-*"):
        if not is_locked_folder(folder):
            _sweep_unlocked(folder)
        elif (lock := Lock.take(folder)) is not None:
            delete_folder(folder)
            lock.release()


def _sweep_unlocked(folder: Path) -> None:
    """One of a version without locks, or on a disk that has none: its process id may be another container's."""
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
