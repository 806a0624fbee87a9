"""Files on HDFS with the methods of obstore's stores, by a client in Rust: no JVM.

The package `hdfs-native` reads `core-site.xml` and `hdfs-site.xml` below HADOOP_CONF_DIR, for name services and Kerberos.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import islice
from typing import TYPE_CHECKING, Any

from obstore.exceptions import AlreadyExistsError
from obstore.exceptions import NotFoundError as StoreNotFound

from penstock.errors import PenstockError

if TYPE_CHECKING:
    import pyarrow as pa
    from hdfs_native import Client

# The client's own number takes three minutes for a name node that is down.
_WITHOUT_CONFIG = {"dfs.client.failover.max.attempts": "4"}
_WRITING = ".penstock-put-"
_CHUNK = 1000

Meta = dict[str, Any]
"""`path`, `last_modified` and `size` of a file, as in obstore."""


@dataclass(frozen=True)
class Whole:
    """The content of a file."""

    data: bytes

    def bytes(self) -> bytes:
        return self.data


class HdfsStore:
    """The files of one HDFS. Keys are paths without the first slash. A new file appears whole, by a rename."""

    def __init__(self, address: str) -> None:
        try:
            from hdfs_native import Client
        except ImportError as error:
            raise PenstockError(
                "HDFS needs the package hdfs-native, which is not installed",
                where=address,
                fix="Run: pip install 'dbt-penstock[hdfs]'",
            ) from error
        configured = os.environ.get("HADOOP_CONF_DIR") or os.environ.get("HADOOP_HOME")
        self._client: Client = Client(address, {} if configured else _WITHOUT_CONFIG)

    def head(self, key: str) -> Meta:
        try:
            status = self._client.get_file_info(f"/{key}")
        except FileNotFoundError as error:
            raise StoreNotFound(str(error)) from error
        if status.isdir:
            raise StoreNotFound(f"{key} is a folder")
        return _meta(status)

    def get(self, key: str) -> Whole:
        with self._opened(key) as file:
            return Whole(bytes(file.read()))

    def get_range(self, key: str, *, start: int, length: int) -> bytes:
        with self._opened(key) as file:
            file.seek(start)
            return bytes(file.read(length))

    def put(self, key: str, data: bytes, *, mode: str = "overwrite") -> None:
        """Write a file whole; with mode `create`, AlreadyExistsError if it exists. HDFS renames atomically."""
        from hdfs_native import WriteOptions

        folder, _, name = f"/{key}".rpartition("/")
        written = f"{folder}/{_WRITING}{name}-{uuid.uuid4().hex}"
        try:
            with self._client.create(written, WriteOptions(create_parent=True)) as file:
                file.write(data)
            self._client.rename(written, f"/{key}", overwrite=mode != "create")
        except FileExistsError as error:
            self._discard(written)
            raise AlreadyExistsError(str(error)) from error
        except BaseException:
            self._discard(written)
            raise

    def copy(self, old: str, new: str) -> None:
        self.put(new, self.get(old).bytes())

    def delete(self, keys: str | Sequence[str]) -> None:
        """Delete files, and the folders that this leaves empty, as object stores have no empty folders."""
        for key in [keys] if isinstance(keys, str) else keys:
            self._client.delete(f"/{key}", recursive=False)
            folder = key.rpartition("/")[0]
            while folder:
                try:
                    self._client.delete(f"/{folder}", recursive=False)
                except Exception:  # it has files; the client has no class for this
                    break
                folder = folder.rpartition("/")[0]

    def list(
        self, prefix: str | None, *, chunk_size: int = _CHUNK, return_arrow: bool = False
    ) -> Iterator[Sequence[Meta] | pa.Table]:
        """The files below a folder, in chunks; with `return_arrow` as tables with obstore's columns."""
        found = self._files(prefix)
        while chunk := [*islice(found, chunk_size)]:
            yield _table(chunk) if return_arrow else chunk

    def list_with_delimiter(self, prefix: str | None) -> dict[str, Any]:
        """The folders and files directly below a folder."""
        statuses = [*self._statuses(prefix, recursive=False)]
        return {
            "common_prefixes": [_key(status.path) for status in statuses if status.isdir],
            "objects": [_meta(status) for status in statuses if not status.isdir],
        }

    def _files(self, prefix: str | None) -> Iterator[Meta]:
        for status in self._statuses(prefix, recursive=True):
            if not status.isdir and not status.path.rpartition("/")[2].startswith(_WRITING):
                yield _meta(status)

    def _statuses(self, prefix: str | None, *, recursive: bool) -> Iterator[Any]:
        folder = f"/{(prefix or '').rstrip('/')}"
        try:
            yield from self._client.list_status(folder, recursive=recursive)
        except FileNotFoundError:
            return

    def _opened(self, key: str) -> Any:
        try:
            return self._client.read(f"/{key}")
        except FileNotFoundError as error:
            raise StoreNotFound(str(error)) from error

    def _discard(self, path: str) -> None:
        try:
            self._client.delete(path, recursive=False)
        except Exception:
            return  # the first error says more; such a file is never listed


def _table(chunk: Sequence[Meta]) -> pa.Table:
    import pyarrow as pa

    columns = {
        "path": pa.array([meta["path"] for meta in chunk], pa.string()),
        "last_modified": pa.array([meta["last_modified"] for meta in chunk], pa.timestamp("ms", "UTC")),
        "size": pa.array([meta["size"] for meta in chunk], pa.int64()),
    }
    return pa.table(columns)


def _key(path: str) -> str:
    """The key of a path or URI that the client gives."""
    return (path.partition("://")[2].partition("/")[2] if "://" in path else path).strip("/")


def _meta(status: Any) -> Meta:
    modified = datetime.fromtimestamp(status.modification_time / 1000, timezone.utc)
    return {"path": _key(status.path), "last_modified": modified, "size": status.length}
