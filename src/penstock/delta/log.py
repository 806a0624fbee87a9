"""The files of a Delta log, commits and checkpoints, for what delta-rs does not tell of them."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from penstock.storage import Storage

LOG_FOLDER = "_delta_log"
# One file, one of several, or one with a name of its own (which may be JSON): the protocol knows all three.
_FILE = re.compile(r"(?P<version>\d{20})\.checkpoint(\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")
_DOMAIN = "domainMetadata"
_WITH_FILES = ("add", "remove", "cdc")


def commit_file(version: int) -> str:
    return f"{LOG_FOLDER}/{version:020}.json"


FIRST_COMMIT = commit_file(0)


def has_commits(place: Storage, prefix: str = "") -> bool:
    """A log folder without a commit is what a first write has left that is under way, or was killed: no table yet."""
    return any(not entry.path.rsplit("/", 1)[-1].startswith(".") for entry in place.list(f"{prefix}{LOG_FOLDER}"))


def holds_table(place: Storage) -> bool:
    return place.exists(FIRST_COMMIT) or has_commits(place)


def actions_of(data: bytes) -> list[dict[str, Any]]:
    """What a file of the log says, a line each."""
    return [json.loads(line) for line in data.splitlines() if line.strip()]


def domains_of(told: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """What features have written down for themselves, such as the columns that a table is clustered by."""
    return (action[_DOMAIN] for action in told if _DOMAIN in action)


def files_named(place: Storage) -> set[str]:
    """Every file below a table's folder that its log names, in any version that the log still tells of.

    Files that were removed, and those of the change feed, are among them; deletion vectors are not.
    """
    named: set[str] = set()
    for entry in list(place.list(LOG_FOLDER)):
        if entry.path.endswith(".json"):
            told = actions_of(place.read(entry.path))
            paths = [action[kind]["path"] for action in told for kind in _WITH_FILES if action.get(kind)]
        elif entry.path.endswith(".parquet"):  # a checkpoint, or a part of one
            paths = _paths_in(place.read(entry.path))
        else:
            continue
        # Those of a clone's source are absolute.
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
    """All that a table's commits up to a version come to."""

    def __init__(self, location: str, options: dict[str, str] | None, version: int, paths: list[str]) -> None:
        self.version = version
        self._location, self._options, self._paths = location, options, paths

    @classmethod
    def newest(cls, location: str, options: dict[str, str] | None, until: int) -> Checkpoint | None:
        """The last one that is complete, up to a version; None where there is none."""
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
        """What is left of those that features have written down."""
        for path in self._paths:
            if path.endswith(".json"):
                yield from domains_of(actions_of(Storage(self._location, self._options).read(path)))
            else:
                yield from self._parquet(path)

    def _parquet(self, path: str) -> Iterator[dict[str, Any]]:
        import pyarrow.parquet as pq
        from deltalake.fs import DeltaStorageHandler

        # Through delta-rs's files, so that one small column is read of a checkpoint that may be large.
        files = DeltaStorageHandler(self._location, self._options)
        checkpoint = pq.ParquetFile(files.open_input_file(path))
        if _DOMAIN in checkpoint.schema_arrow.names:
            yield from checkpoint.read(columns=[_DOMAIN])[_DOMAIN].drop_null().to_pylist()
