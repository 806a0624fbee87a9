"""Files that Spark can't read although the store returns their bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from penstock.errors import from_spark
from penstock.storage import Storage, split_path

if TYPE_CHECKING:
    from penstock.spark.backend import Backend

_LENGTH = 500


class BadFiles(Exception):
    """Some files of a batch can't be read; each with its reason."""

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__("; ".join(f"{path} can't be read: {reason}" for path, reason in files.items()))
        self.files = files


class BadFileSearch:
    """Finds the files that a failed read failed for, by reading each file alone."""

    def __init__(self, spark: Backend, roots: Sequence[str], storage_options: dict[str, str]) -> None:
        self._spark = spark
        self._roots = roots
        self._storage_options = storage_options

    def unreadable(self, paths: Sequence[str], read: Callable[[str], object]) -> dict[str, str]:
        """The files that `read` fails for, each with the reason.

        Raises if the store does not return a file's bytes, or if Spark has stopped: then the file is not bad.
        """
        bad = {}
        for path in paths:
            try:
                read(path)
            except Exception as error:
                self._read_bytes(path)
                self._spark.check_alive()
                bad[path] = str(from_spark(error)).splitlines()[0][:_LENGTH]
        return bad

    def _read_bytes(self, path: str) -> None:
        root, key = split_path(path, self._roots)
        Storage(root, self._storage_options).read_start(key)
