"""Drops and moves on an object store that are killed before every effect: the relation is whole or gone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

import penstock
from penstock.api import Lake
from penstock.errors import PenstockError
from penstock.lake import object_store
from penstock.lake.relations import Link
from penstock.sql.names import Name
from penstock.storage import Storage
from tests.unit.lake.world import MOVED, OBJECTS, ORDERS, Killed, objects


class Store(Storage):
    """An object store in memory, whose process dies before the nth effect."""

    def __init__(
        self, root: str = "s3://bucket/lake", memory: MemoryStore | None = None, life: int | None = None
    ) -> None:
        super().__init__(root)
        self._opened = memory or MemoryStore()
        self.life = life
        self.done: list[str] = []

    def effect(self, path: str) -> None:
        if self.life is not None:
            if self.life == 0:
                raise Killed
            self.life -= 1
        self.done.append(path)

    def write(self, path: str, data: bytes) -> None:
        self.effect(path)
        super().write(path, data)

    def write_new(self, path: str, data: bytes) -> bool:
        self.effect(path)
        return super().write_new(path, data)

    def copy(self, old: str, new: str) -> None:
        self.effect(new)
        super().copy(old, new)

    def delete(self, path: str) -> None:
        self.effect(path)
        super().delete(path)

    def delete_folder(self, folder: str) -> None:
        self.effect(folder)
        super().delete_folder(folder)


@pytest.fixture(autouse=True)
def deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_store, "_PARALLEL_DELETES", 1)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Two minutes pass: whoever has written a marker and not since, is dead."""
    return lambda: monkeypatch.setattr(object_store, "_DEAD_SECONDS", 0.0)


def lake_on(store: Store) -> Lake:
    lake = Lake(store.root)
    lake.storage = store
    return lake


def lives() -> Iterator[tuple[Store, Lake]]:
    """A table, and a process that dies before its first effect; the same, before its second; …"""
    for life in range(100):
        memory = MemoryStore()
        for path in OBJECTS:
            Store(memory=memory).write(f"silver/orders/{path}", path.encode())
        store = Store(memory=memory, life=life)
        yield store, lake_on(store)
        if store.life:
            assert life > len(OBJECTS)
            return
    pytest.fail("it never ended")


def test_a_drop_on_a_store_is_whole_or_gone_and_finished(later: Callable[[], None]) -> None:
    later()
    for store, lake in lives():
        try:
            lake.drop(ORDERS)
        except Killed:
            pass
        other = lake_on(Store(memory=store._opened))
        found = other.find(ORDERS)
        assert found is None or objects(other, ORDERS) == OBJECTS
        assert [relation.name for relation in other.tables()] == ([] if found is None else [ORDERS])
        if found is not None:
            other.drop(ORDERS)
        assert other.location_of(ORDERS) == "s3://bucket/lake/silver/orders"
        assert objects(other, ORDERS) == set()


def test_plans_go_first_and_commits_oldest_first() -> None:
    store = Store()
    for path in OBJECTS:
        store.write(f"silver/orders/{path}", b"")
    store.done.clear()
    lake_on(store).drop(ORDERS)
    done = [path.removeprefix("silver/orders/") for path in store.done]
    assert done[0] == done[-1] == "_link.json"
    kinds = [path.split("/")[0] for path in done[1:-1]]
    assert kinds == ["_checkpoint"] * 2 + ["_delta_log"] * 5 + kinds[7:]
    commits = [path for path in done if path.endswith(".json") and path.startswith("_delta_log")]
    assert commits == sorted(commits)


def test_a_second_drop_finishes_the_first() -> None:
    for store, lake in lives():
        try:
            lake.drop(ORDERS)
        except Killed:
            other = lake_on(Store(memory=store._opened))
            other.drop(ORDERS, missing_ok=True)
            assert objects(other, ORDERS) == set()


def test_a_schema_is_dropped_with_what_a_killed_drop_left() -> None:
    for store, lake in lives():
        try:
            lake.drop(ORDERS)
        except Killed:
            other = lake_on(Store(memory=store._opened))
            other.drop_schema("silver")
            assert list(other.storage.list("")) == []


@pytest.mark.parametrize("first", [ORDERS, MOVED])
def test_a_rename_on_a_store_shows_one_whole_table(later: Callable[[], None], first: Name) -> None:
    later()
    for store, lake in lives():
        try:
            lake.rename(ORDERS, MOVED)
        except Killed:
            pass
        other = lake_on(Store(memory=store._opened))
        (found,) = other.tables()
        assert objects(other, found.name) - {"_link.json"} == OBJECTS
        # The next process that uses either of the two names finishes or undoes it, and keeps the table.
        gone = ({ORDERS, MOVED} - {found.name}).pop()
        for name in (first, *({ORDERS, MOVED} - {first})):
            other.location_of(name)
        assert [relation.name for relation in other.tables()] == [found.name]
        assert objects(other, found.name) == OBJECTS
        assert objects(other, gone) == set()


def test_a_commit_during_a_rename_is_moved_too() -> None:
    store = Store()
    for path in OBJECTS:
        store.write(f"silver/orders/{path}", b"")
    lake, late = lake_on(store), "_delta_log/00000000000000000003.json"

    def step(name: str) -> None:
        if name == "copied":
            store.write(f"silver/orders/{late}", b"")

    lake.rename(ORDERS, MOVED, step=step)
    assert objects(lake, MOVED) == OBJECTS | {late}


def test_a_name_is_not_used_while_another_process_drops_it() -> None:
    for store, lake in lives():
        try:
            lake.drop(ORDERS)
        except Killed:
            other = lake_on(Store(memory=store._opened))
            if other.find(ORDERS) is None and objects(other, ORDERS):
                with pytest.raises(PenstockError, match="Another process is dropping or renaming"):
                    other.location_of(ORDERS)


def test_a_new_name_that_is_being_taken_is_not_taken_twice() -> None:
    store = Store()
    for path in OBJECTS:
        store.write(f"silver/orders/{path}", b"")
        store.write(f"silver/other/{path}", b"")

    def step(name: str) -> None:
        if name == "moved":
            with pytest.raises(PenstockError):
                lake_on(store).rename(Name("silver", "other"), MOVED)

    lake_on(store).rename(ORDERS, MOVED, step=step)
    assert objects(lake_on(store), MOVED) == OBJECTS == objects(lake_on(store), Name("silver", "other"))


def test_a_table_elsewhere_on_a_store_is_gone_as_soon_as_its_drop_has_begun(
    monkeypatch: pytest.MonkeyPatch, later: Callable[[], None], tmp_path: Path
) -> None:
    later()
    memory = MemoryStore()
    location = "s3://bucket/elsewhere"
    monkeypatch.setattr("penstock.lake.locations.check_removable", lambda lake, relation: None)

    def opened(root: str, options: dict[str, str] | None = None) -> Storage:
        return Store(root, memory, life) if root == location else Storage(root, options)

    for life in range(len(OBJECTS) + 1):
        for module in ("folder", "lookup", "object_store"):
            monkeypatch.setattr(f"penstock.lake.{module}.Storage", opened)
        for path in OBJECTS:
            Store(location, memory).write(path, b"")
        lake = penstock.connect(str(tmp_path / str(life)))
        lake.link(ORDERS, Link(location))
        lake.links[ORDERS] = Link(location)
        if life < len(OBJECTS):
            with pytest.raises(Killed):
                lake.drop(ORDERS, owns_location=True)
            assert lake.find(ORDERS) is None
            life = 100
            assert lake.location_of(ORDERS) == location
        else:
            lake.drop(ORDERS, owns_location=True)
        assert list(Store(location, memory).list("")) == []
        assert lake.kept_link(ORDERS) is None


def test_objects_of_a_store_on_disk_are_dropped_too(tmp_path: Path) -> None:
    """A store whose listing is a disk's: nothing of the order rests on the memory store."""
    store = Store()
    store._opened = LocalStore(tmp_path)
    for path in OBJECTS:
        store.write(f"silver/orders/{path}", b"")
    lake_on(store).drop(ORDERS)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
