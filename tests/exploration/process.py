"""A process of the engine in the memory world: the real journal, ledger and file work, with requests in place of I/O."""

from __future__ import annotations

import dataclasses
import logging
import random
import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any, Protocol
from unittest.mock import patch

import pyarrow as pa

import penstock.protocol.journal
from penstock.api import Lake
from penstock.delta.layout import Layout
from penstock.delta.table import MARK, VOID
from penstock.errors import CommitConflict
from penstock.files import FileSource
from penstock.files.compaction import Compaction
from penstock.files.job import FileJob
from penstock.files.plan import FilePlan
from penstock.files.query import FileQuery
from penstock.files.records import KEY
from penstock.files.source import FILES
from penstock.protocol.journal import SUMMARY
from penstock.protocol.state import GENERATION
from penstock.spark.reading.file_schema import FileSchema
from penstock.sql.names import Name
from penstock.storage import Entry, join
from tests.exploration.world import File, Log

LAKE = "/no-such-folder-of-the-exploration/lake"
ROOT = "/no-such-folder-of-the-exploration/landing"
LEDGER = "penstock.ledger"
SCHEMA = {"type": "struct", "fields": [{"name": "id", "type": "long", "nullable": True, "metadata": {}}]}


class Door(Protocol):
    """The one way from a process into the world."""

    def ask(self, *request: Any) -> Any:
        """The value of the answer; its error is raised."""


class Process:
    """What is going on in the process that runs at the moment: one at a time, each from its first step on."""

    current: Process | None = None

    def __init__(self, door: Door, number: int) -> None:
        self.door = door
        self.number = number
        self.drawn = 0
        self.generation: int | None = None
        """The generation of the table when the process first read it; None where there was no table."""
        self.read_state = False

    @classmethod
    def ask(cls, *request: Any) -> Any:
        assert cls.current is not None
        return cls.current.door.ask(*request)


class MemoryStorage:
    """`penstock.storage.Storage` on the memory world."""

    local = False

    def __init__(self, root: str, options: dict[str, str] | None = None) -> None:
        self.root = root

    def read(self, path: str) -> bytes:
        assert not path.endswith(SUMMARY), "a run has read the summary, which is for people"
        return bytes(Process.ask("get", join(self.root, path)))

    def write(self, path: str, data: bytes) -> None:
        if path != SUMMARY:  # nobody reads it, so it makes no difference to anybody
            Process.ask("put", join(self.root, path), data)

    def write_new(self, path: str, data: bytes) -> bool:
        return bool(Process.ask("create", join(self.root, path), data))

    def delete(self, path: str) -> None:
        Process.ask("delete", join(self.root, path))

    def exists(self, path: str) -> bool:
        return self.head(path) is not None

    def head(self, path: str) -> Entry | None:
        size = Process.ask("head", join(self.root, path))
        return None if size is None else self._entry(path, size)

    def list(self, folder: str) -> Iterator[Entry]:
        for key in Process.ask("list", join(self.root, folder)):
            yield self._entry(key[len(self.root) + 1 :], 1)

    @staticmethod
    def _entry(path: str, size: int) -> Entry:
        return Entry(path, datetime(2023, 11, 14, tzinfo=timezone.utc), size)


class MemoryTable:
    """`penstock.delta.table.Table` on the memory world: a log as it was when it was opened."""

    def __init__(self, location: str, log: Log) -> None:
        self.location = location
        self.log = log

    @classmethod
    def open(cls, location: str, storage_options: Any = None, *, files: bool = True) -> MemoryTable:
        process = Process.current
        assert process is not None
        first, process.read_state = not process.read_state, True
        table = cls(location, process.door.ask("open", location))
        if first:
            process.generation = int(table.properties.get(GENERATION, -1))
        return table

    @property
    def version(self) -> int:
        return self.log.last.version

    @property
    def id(self) -> str:
        return self.log.last.id

    @property
    def mark(self) -> int | None:
        return self.log.last.mark

    @property
    def void(self) -> int | None:
        return self.log.last.void

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.log.last.properties)

    @property
    def columns(self) -> list[Any]:
        return [SimpleNamespace(name="id", type="bigint", nullable=True, comment=None)]

    def commits(self) -> Iterator[dict[str, Any]]:
        return (commit.info() for commit in reversed(self.log.commits))

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        return list(self.commits())[:limit]

    def statistics(self) -> Any:
        rows = len(self.log.last.rows)
        return SimpleNamespace(files=rows, bytes=rows, rows=rows)

    is_there = True
    """A commit on a table that was dropped is refused by the log itself."""

    def commit_marks(
        self, marks: Mapping[str, int], note: str | None, properties: Mapping[str, str] | None = None
    ) -> None:
        handle = (self.location, self.log.life, self.version)
        set_properties = tuple(sorted((properties or {}).items()))
        Process.ask("mark", *handle, marks[MARK], VOID in marks, note, set_properties)


class MemoryListings:
    """`penstock.files.source.Listings` on the memory world."""

    def __init__(self) -> None:
        self._kept: pa.Table | None = None

    def is_empty_store_root(self, root: str) -> bool:
        return False

    def of(self, roots: Any, *, fresh: bool = False) -> pa.Table:
        if fresh or self._kept is None:
            self._kept = files_of(Process.ask("landing", ROOT))
        return self._kept


def files_of(found: tuple[File, ...]) -> pa.Table:
    columns = [pa.array([file[index] for file in found], kind.type) for index, kind in enumerate(FILES)]
    return pa.table(columns, schema=FILES)


NO_READING: Any = SimpleNamespace(query="", made=[], warnings=[])
NO_SPARK: Any = SimpleNamespace(commit_marks=None, check_commits=lambda location: None)


class MemoryBatches:
    """Batches without Spark: reading is nothing, and writing is two requests to the memory world."""

    def __init__(self, job: MemoryJob) -> None:
        self._job = job

    def read(self, plan: FilePlan, state: Any) -> tuple[FilePlan, Any]:
        return dataclasses.replace(plan, schema=FileSchema(SCHEMA), format="json"), NO_READING

    def misfit(self, reading: Any) -> None:
        return None

    def read_ahead(self, files: Any, plan: FilePlan, state: Any) -> None:
        pass

    def append(self, plan: FilePlan, reading: Any, note: str, state: Any) -> None:
        if state.mark is not None and state.mark >= plan.number:
            raise CommitConflict(f"{plan.number} is in already")
        assert state.table is not None, f"plan {plan.number} appends to a table that is not there"
        ledger = state.table.properties.get(LEDGER)
        assert getattr(plan, "ledger", ledger) == ledger, f"plan {plan.number} of another ledger is run"
        location = self._job.location
        life, version, id, _ = Process.ask("begin", location)
        if (version, id) != (state.table.version, state.table.id):
            raise CommitConflict(f"the table is at version {version}, not {state.table.version}")
        Process.ask("append", location, life, version, plan.number, note, self._job.checked)

    def drop(self) -> None:
        pass

    def close(self) -> None:
        pass


class MemoryJob(FileJob):
    """The real job of file models; in place of Spark's reading and writing stand two requests to the memory world."""

    checked: tuple[File, ...] = ()
    """The files of the plan as they were looked at last: what Spark would read."""

    def _make_batches(self) -> Any:
        return MemoryBatches(self)

    def _changed_files(self, plan: FilePlan) -> dict[str, str]:
        rows = self.checked = tuple(tuple(row.values()) for row in plan.read.select(KEY).to_pylist())
        if not rows:
            return {}
        found = Process.ask("status", tuple(path for path, *_ in rows))
        pairs = [(path, now, then) for (path, *then), now in zip(rows, found, strict=True)]
        return {
            path: "vanished" if now is None else "changed"
            for path, now, then in pairs
            if now is None or list(now) != then
        }

    def properties_of(self, plan: FilePlan) -> dict[str, str]:
        """The table properties that the commit of a replace plan sets."""
        ledger = getattr(plan, "ledger", None)
        return {GENERATION: str(plan.number), **({} if ledger is None else {LEDGER: str(ledger)})}

    def create_table(self, plan: FilePlan, query: str, note: str, *, layout: Any = None) -> None:
        life, version, _, mark = Process.ask("begin", self.location)
        if mark is None or mark < plan.number:
            properties = tuple(sorted(self.properties_of(plan).items()))
            Process.ask("replace", self.location, life, version, plan.number, note, properties, self.checked)


_lake = Lake(LAKE)
_model = FileQuery.read("select id from @data")


def source_of(config: Mapping[str, Any]) -> FileSource:
    return FileSource.from_mapping({"source_roots": [ROOT], "safety_buffer_seconds": 0, **config})


def work_of(name: str, source: FileSource) -> MemoryJob:
    """The work of a run that begins now, on the table of a name."""
    listings: Any = MemoryListings()
    return MemoryJob(_lake, Name("bronze", name), source, _model, NO_SPARK, Layout(), listings=listings, warn=_quiet)


def location_of(name: str) -> str:
    return f"{LAKE}/bronze/{name}"


def _quiet(warning: str) -> None:
    pass


def _remembered(function: Callable[..., Any]) -> classmethod[Any, Any, Any]:
    """A class method that decodes bytes, once for the same bytes: most of the engine's time here, and without effects."""
    known: dict[Any, Any] = {}

    def decode(cls: type, *given: Any, **named: Any) -> Any:
        key = (given, tuple(named.items()))
        if key not in known:
            known[key] = function(*given, **named)
        return known[key]

    return classmethod(decode)


@contextmanager
def in_memory() -> Iterator[None]:
    """The engine reads the memory world, and its time, sleep and random numbers follow from that world alone."""
    real_time, real_sleep, real_gmtime, real_uuid = time.time, time.sleep, time.gmtime, uuid.uuid4

    def clock() -> float:
        return real_time() if Process.current is None else Process.ask("time") / 1000

    def sleep(seconds: float) -> None:
        if Process.current is None:
            real_sleep(seconds)

    def gmtime(seconds: float | None = None) -> time.struct_time:
        return real_gmtime(0 if seconds is None and Process.current is not None else seconds)

    def uuid4() -> uuid.UUID:
        process = Process.current
        if process is None:
            return real_uuid()
        process.drawn += 1
        return uuid.UUID(int=process.number << 64 | process.drawn)

    def uniform(low: float, high: float) -> float:
        return low

    with (
        patch.object(penstock.protocol.journal, "Storage", MemoryStorage),
        patch.object(penstock.protocol.journal, "Table", MemoryTable),
        patch.object(time, "time", clock),
        patch.object(time, "sleep", sleep),
        patch.object(time, "gmtime", gmtime),
        patch.object(uuid, "uuid4", uuid4),
        patch.object(random, "uniform", uniform),
        patch.object(FilePlan, "from_bytes", _remembered(FilePlan.from_bytes)),
        patch.object(Compaction, "from_bytes", _remembered(Compaction.from_bytes)),
    ):
        disabled = logging.root.manager.disable
        # A record asks for the time, which is an observation.
        logging.disable(logging.CRITICAL)
        threads = pa.cpu_count()
        pa.set_cpu_count(1)
        try:
            yield
        finally:
            pa.set_cpu_count(threads)
            logging.disable(disabled)


Actor = Callable[[], Hashable]
"""The whole life of one process: a function of what its requests are answered."""
