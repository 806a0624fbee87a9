"""Drops, renames and replacements of relations' folders on a disk: readers see the whole folder or none.

A drop first renames the folder to a hidden name beside it, which is atomic, and then deletes it. If the process is
killed in between, a later drop or create beside it deletes the rest.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from penstock.errors import PenstockError
from penstock.lake.leftovers import UNLOCKED, delete_hidden, dropped_name, put_back, staged_name
from penstock.lake.lock import Lock
from penstock.steps import Step, no_step


def rename_folder(old: str, new: str, step: Step = no_step) -> None:
    """Rename a folder atomically; an error if the new name is taken."""
    step("move")
    os.makedirs(os.path.dirname(new), exist_ok=True)
    _rename(old, new)
    step("moved")


def drop_folder(path: str, step: Step = no_step) -> None:
    """Delete a folder: readers see all of it or nothing. If the path is a link, only the link is deleted."""
    if os.path.islink(path):
        try:
            os.unlink(path)
        except OSError as error:
            raise PenstockError(
                f"The link could not be deleted: {error.strerror}",
                where=path,
                fix=f"Nothing was changed. Check the permissions of {os.path.dirname(path)}.",
            ) from error
        return
    step("drop")
    hidden = os.path.join(os.path.dirname(path), dropped_name())
    try:
        os.rename(path, hidden)
    except FileNotFoundError:
        return
    except OSError as error:
        raise PenstockError(
            f"The folder could not be dropped: {error.strerror}",
            where=path,
            fix=f"Nothing was changed. Check the permissions of {os.path.dirname(path)}, or delete the folder by hand.",
        ) from error
    step("dropped")
    delete_hidden(hidden)


class Staging:
    """A hidden folder beside a path, to build in it the folder that will take that path.

    It is deleted at the end. After a kill, `leftovers.sweep` deletes it.
    """

    def __init__(self, path: str) -> None:
        self._folder = Path(os.path.dirname(path), staged_name())
        self.path = str(self._folder / "made")
        """The path of the folder to build."""

    def __enter__(self) -> Staging:
        self._folder.mkdir(parents=True)
        self._lock = Lock.hold(self._folder)
        if self._lock is None:
            (self._folder / UNLOCKED).touch()
        return self

    def __exit__(self, *error: object) -> None:
        put_back(self._folder)
        delete_hidden(str(self._folder))
        if self._lock is not None:
            self._lock.release()


def replace_folder(staged: str, path: str, step: Step = no_step) -> None:
    """Move a staged folder to a path, in place of the folder there. Atomic if the disk can exchange two folders.

    If the disk can't, the old folder waits beside the staged one until the new one is in place. If the process is
    killed in between, `leftovers.sweep` puts the old folder back.
    """
    step("replace")
    if not os.path.lexists(path):
        _rename(staged, path)
    elif not _exchanged(staged, path):
        beside = Path(os.path.dirname(staged), "old")
        Path(os.path.dirname(staged), "name").write_text(os.path.basename(path))
        _rename(path, str(beside))
        step("between")
        try:
            _rename(staged, path)
        except PenstockError:
            _rename(str(beside), path)
            raise
    step("replaced")


def remove_empty(path: str) -> None:
    """Delete a folder if it is empty. If the path is a link to an empty folder, only the link is deleted."""
    try:
        if os.path.islink(path):
            if not os.listdir(path):
                os.unlink(path)
        else:
            os.rmdir(path)
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise PenstockError(
                f"The empty folder could not be deleted: {error.strerror}",
                where=path,
                fix=f"Everything in it was dropped. Check the permissions of {os.path.dirname(path)}.",
            ) from error


def _rename(old: str, new: str) -> None:
    try:
        os.rename(old, new)
    except OSError as error:
        raise PenstockError(
            f"The folder could not be renamed: {error.strerror}",
            where=f"{old} to {new}",
            fix="Nothing was changed. Check that the new name is free, and check the permissions of both folders.",
        ) from error


def _exchanged(one: str, other: str) -> bool:
    """Exchange two paths atomically; False if this system or this disk can't."""
    import ctypes

    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)
