"""Hidden folders of drops and builds, and the removal of those that a killed process has left."""

from __future__ import annotations

import os
import re
import time
import uuid
from pathlib import Path

from penstock.lake.lock import DAY, Lock, delete_folder, is_locked_folder, untouched_for
from penstock.secrets import logger
from penstock.storage import Storage

log = logger("penstock.removal")

UNLOCKED = "unlocked"
"""A file in a staged folder on a disk without locks."""
_DROPPED, _STAGED = ".penstock-dropped-", ".penstock-staged-"
_HIDDEN = re.compile(rf"(?:{re.escape(_DROPPED)}|{re.escape(_STAGED)})[0-9a-f]{{32}}")
_MINUTE = 60.0


def is_hidden(name: str) -> bool:
    """Whether this is the name of a hidden folder of a drop or a build."""
    return _HIDDEN.fullmatch(name) is not None


def dropped_name() -> str:
    """A new hidden name for a folder that is about to be deleted."""
    return f"{_DROPPED}{uuid.uuid4().hex}"


def staged_name() -> str:
    """A new hidden name for a folder in which something is built. A sweep removes it after a kill."""
    return f"{_STAGED}{uuid.uuid4().hex}"


def sweep(folder: str) -> None:
    """Delete the hidden folders in a folder on disk, except those in which a living process still builds."""
    try:
        names = [name for name in os.listdir(folder) if is_hidden(name)]
    except OSError:
        return  # the folder does not exist, or belongs to someone else, so it has no leftovers of ours
    for name in names:
        path = Path(folder, name)
        if name.startswith(_DROPPED):
            delete_hidden(str(path))
        elif not is_locked_folder(path):
            # A folder without lock and without UNLOCKED was swept, and then the JVM of the killed process wrote again.
            if untouched_for(path, DAY if (path / UNLOCKED).exists() else _MINUTE):
                delete_hidden(str(path))
        elif (lock := Lock.take(path)) is not None:
            put_back(path)
            delete_hidden(str(path))
            lock.release()


def sweep_objects(storage: Storage, folder: str) -> None:
    """Delete the hidden folders on an object store that nobody wrote to for a day. An object store has no locks."""
    for name in filter(is_hidden, storage.folders(folder)):
        hidden = f"{folder}/{name}".lstrip("/")
        times = [entry.modified.timestamp() for entry in storage.list(hidden)]
        if times and time.time() - max(times) > DAY:
            storage.delete_folder(hidden)


def put_back(staging: Path) -> None:
    """Undo a replacement that was killed between its two renames: the old folder gets its name back."""
    old, name = staging / "old", staging / "name"
    if not os.path.lexists(old) or not name.exists():
        return
    path = staging.parent / name.read_text()
    if not os.path.lexists(path):
        os.rename(old, path)


def delete_hidden(path: str) -> None:
    """Delete a hidden folder. If this fails, log a warning: the next sweep tries again."""
    if os.path.islink(path):
        os.unlink(path)
        return
    failed = delete_folder(Path(path))
    if failed is not None:
        log.warning("%s was dropped, but could not be deleted: %s. The next drop beside it tries again.", path, failed)
