"""Drops and moves of relations on an object store: readers see the whole relation or none.

An object store can't rename a folder atomically. So a marker first takes the place of the relation's `_link.json`.
While the marker exists, the relation is not listed, and the next process that uses the name finishes the work.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from penstock.delta.log import LOG_FOLDER
from penstock.errors import NotFound, PenstockError
from penstock.lake.relations import LEDGER_FOLDER, LINK_FILE, VIEW_FILE, Link
from penstock.steps import Step, no_step
from penstock.storage import Storage, join

_MARKER = "removed"
_FROM, _TO, _DATA, _ID = "from", "to", "data", "id"
# A living process rewrites its marker at this interval. The process behind an older marker is dead.
_BEAT_SECONDS, _DEAD_SECONDS = 20.0, 120.0
_PARALLEL_DELETES = 16


def is_marker(link: Link | None) -> bool:
    """Whether a `_link.json` is a marker: its relation is being dropped, or moved to or from here."""
    return link is not None and link.format == _MARKER


def is_arriving(marker: Link) -> bool:
    """Whether a marker belongs to a move whose target is this name."""
    return _FROM in marker.options


def removes(link: Link, location: str) -> bool:
    """Whether a marker belongs to a drop that also deletes the data at this location outside the lake."""
    return link.options.get(_DATA) == location


def drop_objects(storage: Storage, folder: str, *, elsewhere: Storage | None = None, step: Step = no_step) -> None:
    """Delete a relation's objects below `folder`, and its data `elsewhere`. A marker exists until the last delete."""
    options = {_ID: uuid.uuid4().hex} | ({_DATA: elsewhere.root} if elsewhere is not None else {})
    step("drop")
    if elsewhere is None and not any(storage.has_folder(f"{folder}/{kept}") for kept in (LEDGER_FOLDER, LOG_FOLDER)):
        storage.delete_folder(folder)  # a view or a link is one object, so no marker is needed
        return
    _finish(_LiveMarker(storage, folder, options).put(), elsewhere, step)


def finish_drop(storage: Storage, folder: str, marker: Link, options: dict[str, str]) -> None:
    """Finish a drop that another process has begun. That process may still run, because both only delete."""
    data = marker.options.get(_DATA)
    _finish(_LiveMarker(storage, folder, marker.options).put(), Storage(data, options) if data else None)


def move_objects(storage: Storage, old: str, new: str, step: Step = no_step) -> None:
    """Move a relation's objects to another name. The copy becomes valid when the marker is written on the old name.

    An error if another process has taken the new name.
    """
    options = {_ID: uuid.uuid4().hex}
    arriving = _LiveMarker(storage, new, options | {_FROM: old})
    step("move")
    if not storage.write_new(f"{new}/{LINK_FILE}", arriving.content):
        raise PenstockError(
            "Another process has taken the new name",
            where=join(storage.root, new),
            fix="Nothing was changed. Choose another name, or try again in a few minutes.",
        )
    copied: set[str] = set()
    # The loop also copies commits that others make in the meantime.
    while found := {entry.path: entry.size for entry in storage.list(old) if entry.path not in copied}:
        # The log is copied last, and its oldest commit at the very end: until then readers see no table at the new name.
        for path in sorted(found, key=lambda path: (f"/{LOG_FOLDER}/" not in path, path), reverse=True):
            arriving.beat()
            copied.add(path)
            if path == f"{old}/{LINK_FILE}":
                continue
            try:
                storage.copy(path, new + path[len(old) :])
            except NotFound:
                # An empty object `a/` that stands for a folder is listed as `a`; obstore can't address it.
                if found[path]:
                    raise
            step("copied")
    leaving = _LiveMarker(storage, old, options | {_TO: new}).put()
    step("moved")
    storage.delete(f"{new}/{LINK_FILE}")
    step("shown")
    _finish(leaving, None, step)


def has_arrived(storage: Storage, marker: Link) -> bool:
    """Whether a marker belongs to a move whose copy is valid: the old name has the marker of the same move."""
    old = marker.options.get(_FROM)
    return old is not None and _has_same_move(storage, old, marker)


def settle(storage: Storage, folder: str, marker: Link, options: dict[str, str]) -> None:
    """Finish or undo a drop or a move, so that the name can be used. An error while its process is still alive."""
    moved_from, moved_to = marker.options.get(_FROM), marker.options.get(_TO)
    if moved_from is not None and has_arrived(storage, marker):
        storage.delete(f"{folder}/{LINK_FILE}")
        if not _is_alive(storage, moved_from):
            _finish(_LiveMarker(storage, moved_from, {_ID: marker.options[_ID], _TO: folder}).put(), None)
        return
    if _is_alive(storage, folder):
        raise PenstockError(
            "Another process is dropping or renaming this relation",
            where=join(storage.root, folder),
            fix=f"Nothing was changed. Run again in {int(_DEAD_SECONDS / 60)} minutes.",
        )
    if moved_to is not None and _has_same_move(storage, moved_to, marker):
        storage.delete(f"{moved_to}/{LINK_FILE}")
    finish_drop(storage, folder, marker, options)


def _has_same_move(storage: Storage, folder: str, marker: Link) -> bool:
    """Whether a folder has a marker of the same move."""
    path = f"{folder}/{LINK_FILE}"
    if not storage.exists(path):
        return False
    link = Link.from_bytes(storage.read(path), join(storage.root, path))
    return is_marker(link) and link.options.get(_ID) == marker.options.get(_ID)


def _is_alive(storage: Storage, folder: str) -> bool:
    """Whether the process behind a folder's marker has written the marker recently."""
    entry = storage.head(f"{folder}/{LINK_FILE}")
    return entry is not None and time.time() - entry.modified.timestamp() < _DEAD_SECONDS


class _LiveMarker:
    """The marker of a relation that this process drops or moves. Regular rewrites show that the process is alive."""

    def __init__(self, storage: Storage, folder: str, options: dict[str, str]) -> None:
        self.storage, self.folder = storage, folder
        self.content = Link(join(storage.root, folder), _MARKER, options).to_bytes()
        self._written = time.monotonic()

    def put(self) -> _LiveMarker:
        self.storage.write(f"{self.folder}/{LINK_FILE}", self.content)
        self._written = time.monotonic()
        return self

    def beat(self) -> None:
        """Rewrite the marker if its last write is too long ago."""
        if time.monotonic() - self._written > _BEAT_SECONDS:
            self.put()


def _finish(marked: _LiveMarker, elsewhere: Storage | None, step: Step = no_step) -> None:
    step("marked")
    if elsewhere is not None:
        _remove_in_order(elsewhere, "", marked, step)
    _remove_in_order(marked.storage, f"{marked.folder}/", marked, step)
    marked.storage.delete(f"{marked.folder}/{LINK_FILE}")


def _remove_in_order(storage: Storage, prefix: str, marked: _LiveMarker, step: Step) -> None:
    """Delete the plans first, so that no plan outlives its table; then the commits, the oldest first; then the rest.

    A delete of the newest commits first would let readers see an older table.
    """
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


def _delete_many(storage: Storage, paths: Iterable[str], marked: _LiveMarker, step: Step) -> None:
    with ThreadPoolExecutor(_PARALLEL_DELETES, "penstock-drop") as pool:
        for _ in pool.map(storage.delete, paths):
            marked.beat()
            step("deleted")
