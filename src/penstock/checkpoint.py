"""A checkpoint of a Delta log, for what delta-rs does not tell of it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from penstock.storage import Storage

LOG = "_delta_log"
# One file, one of several, or one with a name of its own (which may be JSON): the protocol knows all three.
_FILE = re.compile(r"(?P<version>\d{20})\.checkpoint(\.\d{10}\.(?P<parts>\d{10})|\.[0-9a-f-]{36})?\.(parquet|json)")
_DOMAIN = "domainMetadata"


class Checkpoint:
    """All that a table's commits up to a version come to."""

    def __init__(self, location: str, options: dict[str, str] | None, version: int, paths: list[str]) -> None:
        self.version = version
        self._location, self._options, self._paths = location, options, paths

    @classmethod
    def newest(cls, location: str, options: dict[str, str] | None, until: int) -> Checkpoint | None:
        """The last one that is complete, up to a version; None where there is none."""
        found = defaultdict(list)
        for entry in Storage(location, options).list(LOG):
            name = _FILE.fullmatch(entry.path.rpartition("/")[2])
            if name and int(name["version"]) <= until:
                found[int(name["version"]), int(name["parts"] or 1)].append(entry.path)
        complete = [key for key, paths in found.items() if len(paths) >= key[1]]
        if not complete:
            return None
        version, parts = max(complete)
        return cls(location, options, version, found[version, parts])

    def domains(self) -> Iterator[dict[str, Any]]:
        """What features have written down in it for themselves, such as the columns that a table is clustered by."""
        for path in self._paths:
            yield from self._json(path) if path.endswith(".json") else self._parquet(path)

    def _json(self, path: str) -> Iterator[dict[str, Any]]:
        for line in Storage(self._location, self._options).read(path).splitlines():
            if line.strip() and _DOMAIN in (action := json.loads(line)):
                yield action[_DOMAIN]

    def _parquet(self, path: str) -> Iterator[dict[str, Any]]:
        import pyarrow.parquet as pq
        from deltalake.fs import DeltaStorageHandler

        # Through delta-rs's files, so that one small column is read of a checkpoint that may be large.
        files = DeltaStorageHandler(self._location, self._options)
        checkpoint = pq.ParquetFile(files.open_input_file(path))
        if _DOMAIN in checkpoint.schema_arrow.names:
            yield from checkpoint.read(columns=[_DOMAIN])[_DOMAIN].drop_null().to_pylist()
