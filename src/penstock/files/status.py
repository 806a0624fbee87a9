"""Whether files are still as they were listed. The store is asked; no JVM starts."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.storage import Storage, is_uri, split_path

VANISHED, CHANGED = "vanished", "changed"
_ASKERS = 16

Seen = tuple[int, int]
"""Modification time in milliseconds, and size."""


def changed(files: pa.Table, roots: Sequence[str], storage_options: dict[str, str] | None = None) -> dict[str, str]:
    """The files that have vanished or changed since they were listed: path → "vanished" or "changed".

    Raises if a store does not answer: no file counts as vanished then. Each object store of `roots` is opened once.
    A listing of a store has milliseconds, the answer for a single object has seconds, so times are compared in seconds.
    """
    paths = files["path"].to_pylist()
    listed: list[Seen] = list(zip(files["modificationTime"].to_pylist(), files["size"].to_pylist(), strict=True))
    if not paths:
        return {}
    stores = _Stores(roots, storage_options)
    with ThreadPoolExecutor(min(_ASKERS, len(paths))) as pool:
        found = list(pool.map(lambda path: stores.status(path) if is_uri(path) else _on_disk(path), paths))
    result = {}
    for path, then, now in zip(paths, listed, found, strict=True):
        if now is None:
            result[path] = VANISHED
        elif not (same(then, now) if is_uri(path) else then == now):
            result[path] = CHANGED
    return result


def same(one: Seen, other: Seen) -> bool:
    """Whether time and size are equal; one of the times may be in whole seconds.

    >>> same((1_700_000_000_123, 5), (1_700_000_000_000, 5)), same((1_700_000_000_123, 5), (1_700_000_000_124, 5))
    (True, False)
    """
    if one[1] != other[1]:
        return False
    if one[0] % 1000 == 0 or other[0] % 1000 == 0:
        return one[0] // 1000 == other[0] // 1000
    return one[0] == other[0]


class _Stores:
    """The stores of the roots, each opened at its first use."""

    def __init__(self, roots: Sequence[str], storage_options: dict[str, str] | None) -> None:
        self._roots = roots
        self._options = storage_options
        self._lock = threading.Lock()
        self._opened: dict[str, Storage] = {}

    def status(self, path: str) -> Seen | None:
        root, key = split_path(path, self._roots)
        with self._lock:
            if root not in self._opened:
                self._opened[root] = Storage(root, self._options)
        entry = self._opened[root].head(key)
        if entry is None:
            return None
        return int(entry.modified.timestamp()) * 1000 + entry.modified.microsecond // 1000, entry.size


def _on_disk(path: str) -> Seen | None:
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise PenstockError(f"Cannot stat this file: {error}", where=path, fix="Check its permissions.") from error
    return status.st_mtime_ns // 1_000_000, status.st_size
