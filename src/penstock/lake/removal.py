"""Dropping and moving relations: whole or gone for whoever looks, and finished by the next process where one was killed.

On a disk, a folder is renamed to a hidden name beside it, which is one step, and then deleted; a later drop or create
beside it removes the rest. An object store has no such step. There a marker takes the place of the relation's
`_link.json` first: while it stands, the relation is not listed, and whoever needs the name finishes the work.
"""

from __future__ import annotations

import errno
import os
import re
import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from penstock.delta.log import LOG_FOLDER
from penstock.errors import PenstockError
from penstock.lake.lock import DAY, Lock, delete_folder, is_locked_folder, untouched_for
from penstock.lake.relations import LEDGER_FOLDER, LINK_FILE, VIEW_FILE, Link
from penstock.secrets import logger
from penstock.steps import Step, no_step
from penstock.storage import Storage, join

log = logger("penstock.removal")

_DROPPED, _STAGED = ".penstock-dropped-", ".penstock-staged-"
_HIDDEN = re.compile(rf"(?:{re.escape(_DROPPED)}|{re.escape(_STAGED)})[0-9a-f]{{32}}")
_UNLOCKED, _MINUTE = "unlocked", 60.0
_MARKER = "removed"
_FROM, _TO, _DATA, _ID = "from", "to", "data", "id"
# A process that removes or moves writes its marker again and again: one that is older has nobody behind it.
_BEAT_SECONDS, _DEAD_SECONDS = 20.0, 120.0
_AT_ONCE = 16


# On a disk


def is_hidden(name: str) -> bool:
    """Whether a folder of this name is what a drop, or something that was being made, has left."""
    return _HIDDEN.fullmatch(name) is not None


def rename_folder(old: str, new: str, step: Step = no_step) -> None:
    """Give a folder another name, in one step; an error where the new one is taken."""
    step("move")
    os.makedirs(os.path.dirname(new), exist_ok=True)
    _rename(old, new)
    step("moved")


def drop_folder(path: str, step: Step = no_step) -> None:
    """Remove a folder: whoever looks sees all of it or nothing. Of a link to a folder, the link alone is removed."""
    if os.path.islink(path):
        try:
            os.unlink(path)
        except OSError as error:
            raise PenstockError(
                f"The link could not be removed: {error.strerror}",
                where=path,
                fix="Nothing was changed; check the permissions of the folder that it is in.",
            ) from error
        return
    step("drop")
    hidden = os.path.join(os.path.dirname(path), f"{_DROPPED}{uuid.uuid4().hex}")
    try:
        os.rename(path, hidden)
    except FileNotFoundError:
        return
    except OSError as error:
        raise PenstockError(
            f"The folder could not be dropped: {error.strerror}",
            where=path,
            fix=f"Nothing was changed; check the permissions of {os.path.dirname(path)}, or remove the folder by hand.",
        ) from error
    step("dropped")
    _delete(hidden)


class Staging:
    """A hidden folder beside a path, to make in it what then takes that path; removed at the end, or by a sweep."""

    def __init__(self, path: str) -> None:
        self._folder = Path(os.path.dirname(path), staged_name())
        self.made = str(self._folder / "made")
        """Where to make it."""

    def __enter__(self) -> Staging:
        self._folder.mkdir(parents=True)
        self._lock = Lock.hold(self._folder)
        if self._lock is None:
            (self._folder / _UNLOCKED).touch()
        return self

    def __exit__(self, *error: object) -> None:
        _put_back(self._folder)
        _delete(str(self._folder))
        if self._lock is not None:
            self._lock.release()


def sweep(folder: str) -> None:
    """Remove the hidden leftovers in a folder, of drops and of what nobody is making any more."""
    try:
        names = [name for name in os.listdir(folder) if _HIDDEN.fullmatch(name)]
    except OSError:
        return  # there is no such folder, or its owner is another: nothing of ours can be in it
    for name in names:
        path = Path(folder, name)
        if name.startswith(_DROPPED):
            _delete(str(path))
        elif not is_locked_folder(path):
            # Without either file it was swept, and the JVM of the killed process has written there once more.
            if untouched_for(path, DAY if (path / _UNLOCKED).exists() else _MINUTE):
                _delete(str(path))
        elif (lock := Lock.take(path)) is not None:
            _put_back(path)
            _delete(str(path))
            lock.release()


def replace_folder(staged: str, path: str, step: Step = no_step) -> None:
    """Let a staged folder take a path; what was there goes. In one step where the disk can exchange two folders.

    Where it can't, the old one waits beside the staged one until the new one is in place; `sweep` puts it back
    if the process is killed in between.
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


def _put_back(staging: Path) -> None:
    """Undo a replacement that was cut between its two renames."""
    old, name = staging / "old", staging / "name"
    if not os.path.lexists(old) or not name.exists():
        return
    path = staging.parent / name.read_text()
    if not os.path.lexists(path):
        os.rename(old, path)


def _rename(old: str, new: str) -> None:
    try:
        os.rename(old, new)
    except OSError as error:
        raise PenstockError(
            f"The folder could not be renamed: {error.strerror}",
            where=f"{old} to {new}",
            fix="Nothing was changed; check that the new name is free, and the permissions of both.",
        ) from error


def _exchanged(one: str, other: str) -> bool:
    """Exchange two paths in one step; False where this system or this disk can't."""
    import ctypes

    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _delete(path: str) -> None:
    """Delete what nobody sees any more; of what can't be deleted, a warning: the next sweep tries again."""
    if os.path.islink(path):
        os.unlink(path)
        return
    failed = delete_folder(Path(path))
    if failed is not None:
        log.warning("%s was dropped, and could not be deleted: %s. The next drop beside it tries again.", path, failed)


def remove_empty(path: str) -> None:
    """Remove a folder if there is nothing in it; of a link to one, the link."""
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
                f"The empty folder could not be removed: {error.strerror}",
                where=path,
                fix="Everything in it was dropped; check the permissions of the folder that it is in.",
            ) from error


# On an object store


def is_marker(link: Link | None) -> bool:
    """Whether a `_link.json` says that its relation is being removed, or moved here."""
    return link is not None and link.format == _MARKER


def staged_name() -> str:
    """A hidden name, to make below it what then takes another; `sweep_objects` removes it a day after a kill."""
    return f"{_STAGED}{uuid.uuid4().hex}"


def sweep_objects(storage: Storage, folder: str) -> None:
    """Remove what was being made below hidden names and was not touched for a day: a store has no locks."""
    for name in filter(is_hidden, storage.folders(folder)):
        hidden = f"{folder}/{name}".lstrip("/")
        times = [entry.modified.timestamp() for entry in storage.list(hidden)]
        if times and time.time() - max(times) > DAY:
            storage.delete_folder(hidden)


def is_arriving(marker: Link) -> bool:
    """Whether a marker says that its relation is being moved here."""
    return _FROM in marker.options


def removes(link: Link, location: str) -> bool:
    """Whether a marker says that the data at a location outside of the relation's folder are being removed."""
    return link.options.get(_DATA) == location


def drop_objects(storage: Storage, folder: str, *, elsewhere: Storage | None = None, step: Step = no_step) -> None:
    """Remove a relation's objects below `folder`, and its data elsewhere; a marker stands until all are gone."""
    options = {_ID: uuid.uuid4().hex} | ({_DATA: elsewhere.root} if elsewhere is not None else {})
    step("drop")
    if elsewhere is None and not any(storage.has_folder(f"{folder}/{kept}") for kept in (LEDGER_FOLDER, LOG_FOLDER)):
        storage.delete_folder(folder)  # a view or a link, which is one object
        return
    _finish(_Marked(storage, folder, options).put(), elsewhere, step)


def finish_drop(storage: Storage, folder: str, marker: Link, options: dict[str, str]) -> None:
    """Go on with a drop that another process has begun, whether or not it still lives: both only remove."""
    data = marker.options.get(_DATA)
    _finish(_Marked(storage, folder, marker.options).put(), Storage(data, options) if data else None)


def move_objects(storage: Storage, old: str, new: str, step: Step = no_step) -> None:
    """Give a relation's objects another name: they are copied, and the marker on the old name makes the copy count."""
    options = {_ID: uuid.uuid4().hex}
    arriving = _Marked(storage, new, options | {_FROM: old})
    step("move")
    if not storage.write_new(f"{new}/{LINK_FILE}", arriving.content):
        raise PenstockError(
            "The new name is taken by another process", where=join(storage.root, new), fix="Nothing was changed."
        )
    copied: set[str] = set()
    # What is committed meanwhile is copied too.
    while found := {entry.path for entry in storage.list(old)} - copied:
        # The log goes last, its oldest commit at the very end: other readers see no table, and not an older one.
        for path in sorted(found, key=lambda path: (f"/{LOG_FOLDER}/" not in path, path), reverse=True):
            arriving.beat()
            if path != f"{old}/{LINK_FILE}":
                storage.copy(path, new + path[len(old) :])
                step("copied")
            copied.add(path)
    gone = _Marked(storage, old, options | {_TO: new}).put()
    step("moved")
    storage.delete(f"{new}/{LINK_FILE}")
    step("shown")
    _finish(gone, None, step)


def has_arrived(storage: Storage, marker: Link) -> bool:
    """Whether a marker is on a copy that counts: the old name says that it went here."""
    old = marker.options.get(_FROM)
    return old is not None and _other(storage, old, marker) is not None


def settle(storage: Storage, folder: str, marker: Link, options: dict[str, str]) -> None:
    """Finish or undo what a marker says, so that the name can be used; an error while another process is at it."""
    moved_from, moved_to = marker.options.get(_FROM), marker.options.get(_TO)
    if moved_from is not None and has_arrived(storage, marker):
        storage.delete(f"{folder}/{LINK_FILE}")
        if not _lives(storage, moved_from):
            _finish(_Marked(storage, moved_from, {_ID: marker.options[_ID], _TO: folder}).put(), None)
        return
    if _lives(storage, folder):
        raise PenstockError(
            "Another process is dropping or renaming this relation",
            where=join(storage.root, folder),
            fix=f"Nothing was changed; run again in {int(_DEAD_SECONDS / 60)} minutes at most.",
        )
    if moved_to is not None and _other(storage, moved_to, marker) is not None:
        storage.delete(f"{moved_to}/{LINK_FILE}")
    finish_drop(storage, folder, marker, options)


def _other(storage: Storage, folder: str, marker: Link) -> Link | None:
    """The marker at the other end of a move."""
    path = f"{folder}/{LINK_FILE}"
    if not storage.exists(path):
        return None
    link = Link.from_bytes(storage.read(path), join(storage.root, path))
    return link if is_marker(link) and link.options.get(_ID) == marker.options.get(_ID) else None


def _lives(storage: Storage, folder: str) -> bool:
    entry = storage.head(f"{folder}/{LINK_FILE}")
    return entry is not None and time.time() - entry.modified.timestamp() < _DEAD_SECONDS


class _Marked:
    """A relation's marker, written again and again while the work goes on."""

    def __init__(self, storage: Storage, folder: str, options: dict[str, str]) -> None:
        self.storage, self.folder = storage, folder
        self.content = Link(join(storage.root, folder), _MARKER, options).to_bytes()
        self._written = time.monotonic()

    def put(self) -> _Marked:
        self.storage.write(f"{self.folder}/{LINK_FILE}", self.content)
        self._written = time.monotonic()
        return self

    def beat(self) -> None:
        if time.monotonic() - self._written > _BEAT_SECONDS:
            self.put()


def _finish(marked: _Marked, elsewhere: Storage | None, step: Step = no_step) -> None:
    step("marked")
    if elsewhere is not None:
        _remove_in_order(elsewhere, "", marked, step)
    _remove_in_order(marked.storage, f"{marked.folder}/", marked, step)
    marked.storage.delete(f"{marked.folder}/{LINK_FILE}")


def _remove_in_order(storage: Storage, prefix: str, marked: _Marked, step: Step) -> None:
    """Plans first, so that none outlives its table; commits oldest first, because newest first would show an older table."""
    paths = [entry.path for entry in storage.list(prefix.rstrip("/"))]
    view, marker = f"{prefix}{VIEW_FILE}", f"{prefix}{LINK_FILE}"
    if view in paths:
        storage.delete(view)
    ledger = [path for path in paths if path.startswith(f"{prefix}{LEDGER_FOLDER}/")]
    commits = sorted(path for path in paths if path.startswith(f"{prefix}{LOG_FOLDER}/"))
    first = {view, marker, *ledger, *commits}
    _delete_many(storage, ledger, marked, step)
    for path in commits:
        marked.beat()
        storage.delete(path)
        step("deleted")
    _delete_many(storage, [path for path in paths if path not in first], marked, step)


def _delete_many(storage: Storage, paths: Iterable[str], marked: _Marked, step: Step) -> None:
    with ThreadPoolExecutor(_AT_ONCE, "penstock-drop") as pool:
        for _ in pool.map(storage.delete, paths):
            marked.beat()
            step("deleted")
