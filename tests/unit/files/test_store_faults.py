"""Each request of a run, a drop, a rename and a view fails once, in each way; then all is finished, and nothing is lost."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from penstock.api import Lake, connect
from penstock.delta.layout import Layout
from penstock.delta.table import MARK, Column
from penstock.errors import CommitConflict, PenstockError
from penstock.files import FileSource
from penstock.files.query import FileQuery
from penstock.lake import object_store
from penstock.lake.relations import Link
from penstock.protocol.plan import properties_of
from penstock.protocol.run import run_job
from penstock.sql.names import Name
from penstock.storage import Storage
from tests.s3_server import AFTER, BEFORE, S3, serve
from tests.unit.files.conftest import NO_SPARK, SCHEMA
from tests.unit.files.test_lake_on_store import StoreJob

EVENTS, MOVED = Name("bronze", "events"), Name("silver", "moved")
FAULTS = [(BEFORE, 500), (BEFORE, 503), (BEFORE, 0), (AFTER, 500), (AFTER, 0), (BEFORE, 409)]
FILES = 3


class OneCommitJob(StoreJob):
    """The table is created and filled in one commit, as Spark does it; delta-rs needs two."""

    def create_table(self, plan: Any, query: str, note: str, *, layout: Layout | None = None) -> None:
        storage, data, file = (
            Storage(self.location, self.lake.storage_options),
            pa.BufferOutputStream(),
            f"{plan.number}.parquet",
        )
        pq.write_table(self._rows(plan), data)
        storage.write(file, data.getvalue().to_pybytes())
        actions = [
            {"commitInfo": {"timestamp": 1, "operation": "CREATE TABLE AS SELECT", "userMetadata": note}},
            {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
            {
                "metaData": {
                    "id": str(uuid.uuid4()),
                    "format": {"provider": "parquet", "options": {}},
                    "schemaString": json.dumps(SCHEMA),
                    "partitionColumns": [],
                    "configuration": properties_of(plan),
                    "createdTime": 1,
                }
            },
            {"txn": {"appId": MARK, "version": plan.number}},
            {
                "add": {
                    "path": file,
                    "partitionValues": {},
                    "size": len(data.getvalue()),
                    "modificationTime": 1,
                    "dataChange": True,
                }
            },
        ]
        commit = "\n".join(map(json.dumps, actions)).encode()
        if not storage.write_new("_delta_log/00000000000000000000.json", commit):
            raise CommitConflict("another run has created the table")


@dataclass
class World:
    """A store. Its clients try nothing twice by themselves until `calm` is called."""

    s3: S3
    options: dict[str, str]

    def calm(self) -> None:
        """From now on, no request fails."""
        self.s3.faults.clear()
        self.options = self.s3.options

    def lake(self) -> Lake:
        return connect("s3://bucket/lake", storage_options=self.options)

    def run(self) -> None:
        given = {"source_roots": ["s3://bucket/in"], "safety_buffer_seconds": 0, "max_files_per_trigger": 2}
        model = FileQuery.read("select id from @data")
        work = OneCommitJob(self.lake(), EVENTS, FileSource.from_mapping(given), model, NO_SPARK, Layout())
        work.s3 = self.s3
        run_job(work, replace=False)

    def fill(self) -> None:
        rows = pa.table({"id": pa.array([1], pa.int64())})
        for _ in range(2):
            write_deltalake("s3://bucket/lake/bronze/events", rows, mode="append", storage_options=self.s3.options)
        self.s3.put("lake/bronze/events/_checkpoint/sources/0", b"{}")

    def ids(self, name: Name = EVENTS) -> Counter[int]:
        table = DeltaTable(f"s3://bucket/lake/{name.schema}/{name.identifier}", storage_options=self.s3.options)
        return Counter(table.to_pyarrow_table()["id"].to_pylist())

    def below(self, prefix: str) -> set[str]:
        return {key for key in self.s3.objects if key.startswith(prefix)}


@pytest.fixture(autouse=True)
def dead_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has put a marker and failed, is dead."""
    monkeypatch.setattr(object_store, "_DEAD_SECONDS", 0.0)


def worlds(
    fault: tuple[str, int], every: int, prepare: Callable[[World], None] = lambda world: None
) -> Iterator[tuple[int, World]]:
    """A world in which the first request fails; one in which the second fails; … until no request is left to fail.

    With `every`, only each so many requests fail; each fault begins with another one.
    """
    when, status = fault
    code = "ConditionalRequestConflict" if status == 409 else "InternalError"
    for number in range(FAULTS.index(fault) % every, 1000, every):
        with serve() as s3:
            world = World(s3, {**s3.options, "max_retries": "0"})
            prepare(world)
            s3.fail("*", when, status, after=number, code=code)
            planned = s3.faults[0]
            yield number, world
            if planned.times:
                assert number > 2
                return
    pytest.fail("it never ended")


def sweep(fast: int) -> Callable[[Any], Any]:
    """Each fault at a part of the requests, which is fast; or at every request."""
    counts = [pytest.param(fast, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)]

    def marked(test: Any) -> Any:
        with_faults = pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault[0]}-{fault[1]}")(test)
        return pytest.mark.parametrize("every", counts)(with_faults)

    return marked


def failing(action: Callable[[], object]) -> bool:
    """Whether an action failed. It may only fail with an error for users, or with a conflict that the run resolves."""
    try:
        action()
    except (PenstockError, CommitConflict):
        return True
    except (OSError, DeltaError):  # by delta-rs, in the place of Spark
        return True
    return False


@sweep(9)
def test_a_run(fault: tuple[str, int], every: int) -> None:
    def prepare(world: World) -> None:
        for number in range(FILES):
            world.s3.put(f"in/{number}.json", json.dumps({"id": number}).encode(), 1_700_000_000 + number)

    failed = 0
    for number, world in worlds(fault, every, prepare):
        failed += failing(world.run)
        world.calm()
        world.run()
        assert world.ids() == Counter(range(FILES)), f"request {number}"
        world.run()
        assert world.ids() == Counter(range(FILES)), f"request {number}"
    assert failed


@sweep(4)
def test_a_drop(fault: tuple[str, int], every: int) -> None:
    for number, world in worlds(fault, every, World.fill):
        failing(lambda world=world: world.lake().drop(EVENTS))
        world.calm()
        found = world.lake().find(EVENTS)
        assert found is None or world.ids() == Counter({1: 2}), f"request {number}"
        world.lake().drop(EVENTS, missing_ok=True)
        assert world.below("lake/bronze") == set(), f"request {number}"
        assert world.lake().tables() == []


@sweep(6)
def test_a_rename(fault: tuple[str, int], every: int) -> None:
    for number, world in worlds(fault, every, World.fill):
        failing(lambda world=world: world.lake().rename(EVENTS, MOVED))
        world.calm()
        (found,) = world.lake().tables()
        assert world.ids(found.name) == Counter({1: 2}), f"request {number}"
        gone = ({EVENTS, MOVED} - {found.name}).pop()
        for name in (gone, found.name):
            world.lake().location_of(name)
        assert [relation.name for relation in world.lake().tables()] == [found.name]
        assert world.ids(found.name) == Counter({1: 2}), f"request {number}"
        assert world.below(f"lake/{gone.schema}/{gone.identifier}/") == set(), f"request {number}"


@sweep(3)
def test_a_rename_of_a_view(fault: tuple[str, int], every: int) -> None:
    def prepare(world: World) -> None:
        world.lake().write_view(EVENTS, "select 1 as id", [Column("id", "int")])

    for number, world in worlds(fault, every, prepare):
        failing(lambda world=world: world.lake().rename(EVENTS, MOVED))
        world.calm()
        names = {relation.name for relation in world.lake().tables()}
        assert names in ({EVENTS}, {MOVED}), f"request {number}"
        (name,) = names
        assert world.lake().view(world.lake().get(name)).sql == "select 1 as id"
        for other in (EVENTS, MOVED):
            world.lake().location_of(other)
        assert {relation.name for relation in world.lake().tables()} == names
        if name == EVENTS:
            world.lake().rename(EVENTS, MOVED)
        assert world.lake().find(EVENTS) is None
        assert world.lake().get(MOVED).kind == "view"
        assert world.below("lake/bronze") == set(), f"request {number}"


@sweep(3)
def test_a_rename_of_a_link(fault: tuple[str, int], every: int) -> None:
    def prepare(world: World) -> None:
        write_deltalake("s3://bucket/elsewhere", pa.table({"id": [1]}), storage_options=world.s3.options)
        world.lake().link(EVENTS, Link("s3://bucket/elsewhere"))

    for number, world in worlds(fault, every, prepare):
        failing(lambda world=world: world.lake().rename(EVENTS, MOVED))
        world.calm()
        names = {relation.name for relation in world.lake().tables()}
        assert names, f"request {number}"
        assert names <= {EVENTS, MOVED}, f"request {number}"
        for name in names:
            assert world.lake().get(name).location == "s3://bucket/elsewhere"
        assert world.below("elsewhere")


@sweep(1)
def test_put_if_absent(fault: tuple[str, int], every: int) -> None:
    for number, world in worlds(fault, every):
        mine, theirs = (Storage("s3://bucket/lake", world.options) for _ in range(2))
        won = []
        for storage, data in ((mine, b"mine"), (theirs, b"theirs")):
            for key in ("a", "b"):
                try:
                    won.append((key, data, storage.write_new(key, data)))
                except PenstockError:
                    won.append((key, data, None))
        for key in ("a", "b"):
            held = world.s3.objects[f"lake/{key}"].data if f"lake/{key}" in world.s3.objects else None
            for name, data, mine_won in won:
                if name == key and mine_won is not None:
                    assert mine_won == (held == data), f"request {number}"


def test_a_folder_that_someone_made_as_an_empty_object_does_not_stop_a_rename() -> None:
    with serve() as s3:
        world = World(s3, s3.options)
        world.fill()
        s3.put("lake/bronze/events/_delta_log/", b"")
        world.lake().rename(EVENTS, MOVED)
        assert world.ids(MOVED) == Counter({1: 2})


def test_an_object_that_vanishes_during_a_rename_is_an_error() -> None:
    with serve() as s3:
        world = World(s3, s3.options)
        world.fill()
        s3.fail("PUT", status=404, after=1, code="NoSuchKey")
        with pytest.raises(PenstockError, match="no such object"):
            world.lake().rename(EVENTS, MOVED)
        assert [relation.name for relation in world.lake().tables()] == [EVENTS]
