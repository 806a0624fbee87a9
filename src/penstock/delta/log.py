"""The commits and checkpoints of a Delta log, for information that delta-rs does not provide."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from penstock.storage import Entry, Storage, with_keys

LOG_FOLDER = "_delta_log"
# The protocol has three kinds: one file, one of several parts, or one file with a uuid (Parquet or JSON).
_FILE = re.compile(r"(?P<version>\d{20})\.checkpoint(\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")
_DOMAIN = "domainMetadata"
_INFO, _HEAD = b"commitInfo", 40
_WITH_FILES = ("add", "remove", "cdc")


def commit_file(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020}.json"


FIRST_COMMIT = commit_file(0)


def has_commits(storage: Storage, prefix: str = "") -> bool:
    """Whether a log folder has a commit. A first write that still runs or was killed leaves one without commits."""
    return any(_is_of_log(entry) for entry in storage.list(f"{prefix}{LOG_FOLDER}"))


def _is_of_log(entry: Entry) -> bool:
    """Whether an object is a file of the log, and neither a temporary file nor an empty object that is a folder to Spark.

    Such an object is named `_delta_log/`, and listed without the slash.
    """
    name = entry.path.rsplit("/", 1)[-1]
    return not name.startswith(".") and (entry.size > 0 or "." in name)


def holds_table(storage: Storage) -> bool:
    """Whether there is a Delta table at the storage's root."""
    return storage.exists(FIRST_COMMIT) or has_commits(storage)


def actions_of(data: bytes) -> list[dict[str, Any]]:
    """The actions in a JSON file of the log, one per line. ValueError if a line is not JSON."""
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def commit_info(data: bytes) -> dict[str, Any]:
    """The `commitInfo` in a JSON file of the log; empty if it has none. ValueError if the file is not JSON.

    Only the line of the `commitInfo` is parsed: a commit may have thousands of files, and a time line reads thousands of
    commits.
    """
    for line in data.splitlines():
        if _INFO in line[:_HEAD] and isinstance(found := json.loads(line).get(_INFO.decode()), dict):
            return found
    return next((action[_INFO.decode()] for action in actions_of(data) if _INFO.decode() in action), {})


def domains_of(actions: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The domain metadata of table features among some actions, such as the clustering columns."""
    return (action[_DOMAIN] for action in actions if _DOMAIN in action)


def files_named(storage: Storage) -> set[str]:
    """Every file below a table's folder that a commit or checkpoint in its log names.

    This includes removed files and files of the change data feed, but not the files of deletion vectors.
    """
    named: set[str] = set()
    for entry in list(storage.list(LOG_FOLDER)):
        if entry.path.endswith(".json"):
            actions = actions_of(storage.read(entry.path))
            paths = [action[kind]["path"] for action in actions for kind in _WITH_FILES if action.get(kind)]
        elif entry.path.endswith(".parquet"):  # a checkpoint, or a part of one
            paths = _paths_in(storage.read(entry.path))
        else:
            continue
        # An absolute path belongs to the source of a clone.
        named |= {unquote(path) for path in paths if "://" not in path and not path.startswith(("/", "file:"))}
    return named


def _paths_in(checkpoint: bytes) -> list[str]:
    import io

    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    file = pq.ParquetFile(io.BytesIO(checkpoint))
    columns = [kind for kind in _WITH_FILES if kind in file.schema_arrow.names]
    if not columns:
        return []
    read = file.read(columns=[f"{column}.path" for column in columns])
    return [path for column in columns for path in pc.struct_field(read[column], "path").drop_null().to_pylist()]


class Checkpoint:
    """A checkpoint of a table's log: the state of the table at one version."""

    def __init__(self, location: str, options: dict[str, str] | None, version: int, paths: list[str]) -> None:
        self.version = version
        self._location, self._options, self._paths = location, options, paths

    @classmethod
    def newest(cls, location: str, options: dict[str, str] | None, until: int) -> Checkpoint | None:
        """The newest complete checkpoint up to a version; None if there is none."""
        found = defaultdict(list)
        for entry in Storage(location, options).list(LOG_FOLDER):
            name = _FILE.fullmatch(entry.path.rpartition("/")[2])
            if name and int(name["version"]) <= until:
                found[int(name["version"]), int(name["parts"] or 1)].append(entry.path)
        complete = [key for key, paths in found.items() if len(paths) >= key[1]]
        if not complete:
            return None
        version, parts = max(complete)
        return cls(location, options, version, found[version, parts])

    def domains(self) -> Iterator[dict[str, Any]]:
        """The domain metadata of table features at the checkpoint's version."""
        for path in self._paths:
            if path.endswith(".json"):
                yield from domains_of(actions_of(Storage(self._location, self._options).read(path)))
            else:
                yield from self._parquet(path)

    def _parquet(self, path: str) -> Iterator[dict[str, Any]]:
        import pyarrow.parquet as pq
        from deltalake.fs import DeltaStorageHandler

        # Through delta-rs's file system, which reads only one small column of a checkpoint that may be large.
        files = DeltaStorageHandler(self._location, with_keys(self._location, self._options))
        checkpoint = pq.ParquetFile(files.open_input_file(path))
        if _DOMAIN in checkpoint.schema_arrow.names:
            yield from checkpoint.read(columns=[_DOMAIN])[_DOMAIN].drop_null().to_pylist()
