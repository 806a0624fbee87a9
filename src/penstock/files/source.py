"""Lists the files below the roots: path, modification time and size, as Arrow, without a JVM."""

from __future__ import annotations

import os
import re
import threading
from array import array
from collections import deque
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import NotFound, PenstockError
from penstock.files.config import FileSource
from penstock.storage import Storage, is_below, is_uri, prefix, split_root

FILES = pa.schema([("path", pa.string()), ("modificationTime", pa.int64()), ("size", pa.int64())])
_WALKERS = 8
_CHUNK = 20_000
# Spark reads a file with such a name as an empty one, so it is not data here either.
_HIDDEN = re.compile(r"^(?:\.|_(?!.*=))|\._COPYING_$")
_HIDDEN_BELOW = r"(?:^|/)(?:\.[^/]*|_[^/=]*)(?:/|$)|\._COPYING_$"

Identity = tuple[int, int]
"""A folder's device and inode."""


def none(schema: pa.Schema) -> pa.Table:
    """A table without rows. `empty_table()` would import pandas, half a second of a run that finds nothing new."""
    return pa.Table.from_batches([], schema)


def is_hidden(name: str) -> bool:
    """Whether Spark does not read a file or folder of this name."""
    return _HIDDEN.search(name) is not None


def list_root(root: str, storage_options: dict[str, str] | None = None) -> pa.Table:
    """All files below a root that are not hidden; an error if the listing is not complete."""
    return _list_store(root, storage_options or {}) if is_uri(root) else _list_disk(root)


class Listings:
    """The listings of one run. Models with the same root share its listing."""

    def __init__(self, storage_options: dict[str, str] | None = None) -> None:
        self._options = storage_options
        self._kept: dict[str, pa.Table] = {}
        self._there: set[str] = set()
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()

    def of(self, roots: Iterable[str], *, fresh: bool = False) -> pa.Table:
        """The files below these roots, each once; listed again if `fresh`."""
        roots = list(roots)
        for root in roots:
            with self._lock:
                lock = self._locks.setdefault(root, threading.Lock())
            with lock:
                if fresh or root not in self._kept:
                    self._kept[root] = list_root(root, self._options)
        return _once([self._kept[root] for root in roots], roots)

    def is_empty_store_root(self, root: str) -> bool:
        """Whether a root on an object store has no object at all. A mistyped prefix looks like this.

        False for folders on disk: the listing fails if a folder does not exist. A root that has only hidden files is not
        empty.
        """
        if not is_uri(root) or self.of([root]).num_rows:
            return False
        return not self.has_root(root)

    def has_root(self, root: str) -> bool:
        """Whether a folder exists, or on an object store any object below it. Nothing is listed completely."""
        if root not in self._there and Storage(root, self._options).has_folder(""):
            self._there.add(root)
        return root in self._there


def matching(files: pa.Table, source: FileSource) -> pa.Table:
    """The files whose paths below the root match the source's patterns."""
    if not (source.source_patterns or source.source_exclude) or files.num_rows == 0:
        return files
    wanted = [re.compile(pattern) for pattern in source.source_patterns or ("",)]
    unwanted = [re.compile(pattern) for pattern in source.source_exclude]
    roots = [prefix(root) for root in source.source_roots]

    def keep(path: str) -> bool:
        found = [path[len(root) :] for root in roots if path.startswith(root)]
        return any(pattern.search(below) for pattern in wanted for below in found) and not any(
            pattern.search(below) for pattern in unwanted for below in found
        )

    return files.filter(pa.array([keep(path) for path in files["path"].to_pylist()], pa.bool_()))


def _once(parts: list[pa.Table], roots: list[str]) -> pa.Table:
    whole = pa.concat_tables(parts) if parts else none(FILES)
    overlap = any(is_below(one, other) for one in roots for other in roots)
    if not overlap:
        return whole
    grouped = whole.group_by("path").aggregate([("modificationTime", "max"), ("size", "max")])
    return pa.table(
        [grouped.column("path"), grouped.column("modificationTime_max"), grouped.column("size_max")], schema=FILES
    )


@dataclass(frozen=True)
class _Folder:
    path: str
    above: tuple[Identity, ...]
    """The folders above it: a link to one of them is a loop."""


@dataclass
class _Walked:
    files: list[pa.RecordBatch]
    folders: list[_Folder]


def _list_disk(root: str) -> pa.Table:
    """Walk the folders in parallel. Not with obstore, which fails for a name with a newline."""
    if os.path.isfile(root):
        raise PenstockError("This source root is a file", where=root, fix="Name the folder of the file.")
    try:
        status = os.stat(root)
    except FileNotFoundError as error:
        raise NotFound(
            "This source root does not exist", where=root, fix="Create the folder, or correct the path."
        ) from error
    except OSError as error:
        raise _failed(root, error) from error
    batches: list[pa.RecordBatch] = []
    waiting = deque([_Folder(root, ((status.st_dev, status.st_ino),))])
    running: set[Future[_Walked]] = set()
    with ThreadPoolExecutor(_WALKERS) as pool:
        while waiting or running:
            while waiting:
                running.add(pool.submit(_walk, waiting.popleft(), root))
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                walked = future.result()
                batches += walked.files
                waiting += walked.folders
    return pa.Table.from_batches(batches, FILES)


def _walk(folder: _Folder, root: str) -> _Walked:
    files: list[pa.RecordBatch] = []
    folders: list[_Folder] = []
    paths: list[str] = []
    times, sizes = array("q"), array("q")
    try:
        with os.scandir(folder.path) as entries:
            for entry in entries:
                if is_hidden(entry.name):
                    continue
                try:
                    if entry.is_dir():
                        below = _below(entry, folder)
                        if below is not None:
                            folders.append(below)
                    elif entry.is_file():
                        status = entry.stat()
                        paths.append(entry.path)
                        times.append(status.st_mtime_ns // 1_000_000)
                        sizes.append(status.st_size)
                except FileNotFoundError:
                    continue  # It was removed after it was listed.
                if len(paths) >= _CHUNK:
                    files.append(_batch(paths, times, sizes))
                    paths, times, sizes = [], array("q"), array("q")
    except FileNotFoundError as error:
        if folder.path == root:
            raise _failed(folder.path, error) from error
    except OSError as error:
        raise _failed(folder.path, error) from error
    if paths:
        files.append(_batch(paths, times, sizes))
    return _Walked(files, folders)


def _below(entry: os.DirEntry[str], folder: _Folder) -> _Folder | None:
    status = entry.stat()
    identity = (status.st_dev, status.st_ino)
    if entry.is_symlink() and identity in folder.above:
        return None
    return _Folder(entry.path, (*folder.above, identity))


def _batch(paths: list[str], times: array[int], sizes: array[int]) -> pa.RecordBatch:
    """Listed files as Arrow. `pa.array()` of a list would import pandas; see `none`."""
    builder = pa.lib.StringBuilder()
    try:
        builder.append_values(paths)
    except UnicodeEncodeError as error:
        bad = next(path for path in paths if any(0xD800 <= ord(char) < 0xE000 for char in path))
        raise PenstockError(
            f"The name of a file is not UTF-8, so Spark can't open it: {bad!r}", fix="Rename the file."
        ) from error
    numbers = [pa.Array.from_buffers(pa.int64(), len(paths), [None, pa.py_buffer(values)]) for values in (times, sizes)]
    return pa.RecordBatch.from_arrays([builder.finish(), *numbers], schema=FILES)


def _list_store(root: str, options: dict[str, str]) -> pa.Table:
    tables: list[pa.Table] = []
    prefix = split_root(root)[1]
    for base, chunk in Storage(root, options).batches(_CHUNK):
        listed = pa.table(chunk)
        # The root itself may be below a hidden folder.
        below = pc.utf8_slice_codeunits(listed["path"].cast(pa.string()), len(prefix))
        listed = listed.filter(pc.invert(pc.match_substring_regex(below, _HIDDEN_BELOW)))
        tables.append(
            pa.table(
                [
                    pc.binary_join_element_wise(base, listed["path"].cast(pa.string()), ""),
                    listed["last_modified"].cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64()),
                    listed["size"].cast(pa.int64()),
                ],
                schema=FILES,
            )
        )
    return pa.concat_tables(tables) if tables else none(FILES)


def _failed(path: str, error: BaseException) -> PenstockError:
    return PenstockError(
        f"The source root could not be listed: {error}",
        where=path,
        fix="Nothing was ingested. Check the path, its permissions and `storage_options`.",
    )
