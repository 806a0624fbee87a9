"""Drops and renames that are killed before every effect: the relation is whole or gone, and the next process goes on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from obstore.store import LocalStore, MemoryStore

import penstock
from penstock import removal
from penstock.errors import NotFound, PenstockError
from penstock.lake import Lake
from penstock.lock import Lock
from penstock.names import Name
from penstock.relations import Link
from penstock.storage import Storage

ORDERS, MOVED = Name("silver", "orders"), Name("gold", "moved")
OBJECTS = {
    "_delta_log/00000000000000000000.json",
    "_delta_log/00000000000000000001.json",
    "_delta_log/00000000000000000001.checkpoint.parquet",
    "_delta_log/00000000000000000002.json",
    "_delta_log/_last_checkpoint",
    "_checkpoint/sources/0",
    "_checkpoint/sources/1",
    "part-0.parquet",
    "day=1/part-1.parquet",
}


class Killed(BaseException):
    pass


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
    monkeypatch.setattr(removal, "_AT_ONCE", 1)


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Two minutes pass: whoever has written a marker and not since, is dead."""
    return lambda: monkeypatch.setattr(removal, "_DEAD_SECONDS", 0.0)


def lake_on(store: Store) -> Lake:
    lake = Lake(store.root)
    lake.storage = store
    return lake


def objects(lake: Lake, name: Name) -> set[str]:
    prefix = f"{name.schema}/{name.identifier}/"
    return {entry.path.removeprefix(prefix) for entry in lake.storage.list(prefix.rstrip("/"))}


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
    place = "s3://bucket/elsewhere"
    monkeypatch.setattr("penstock.locations.check_removable", lambda lake, relation: None)

    def opened(root: str, options: dict[str, str] | None = None) -> Storage:
        return Store(root, memory, life) if root == place else Storage(root, options)

    for life in range(len(OBJECTS) + 1):
        for module in ("lake", "removal"):
            monkeypatch.setattr(f"penstock.{module}.Storage", opened)
        for path in OBJECTS:
            Store(place, memory).write(path, b"")
        lake = penstock.connect(str(tmp_path / str(life)))
        lake.link(ORDERS, Link(place))
        lake.links[ORDERS] = Link(place)
        if life < len(OBJECTS):
            with pytest.raises(Killed):
                lake.drop(ORDERS, owns_location=True)
            assert lake.find(ORDERS) is None
            life = 100
            assert lake.location_of(ORDERS) == place
        else:
            lake.drop(ORDERS, owns_location=True)
        assert list(Store(place, memory).list("")) == []
        assert lake.kept_link(ORDERS) is None


# On a disk


@pytest.fixture
def disk(tmp_path: Path) -> Lake:
    lake = penstock.connect(str(tmp_path / "lake"))
    for path in OBJECTS:
        lake.storage.write(f"silver/orders/{path}", b"")
    return lake


def hidden(lake: Lake) -> list[str]:
    return [path.name for path in Path(lake.root).glob("*/.*")]


@pytest.mark.parametrize(("step", "there"), [("drop", True), ("dropped", False)])
def test_a_drop_on_a_disk_is_whole_or_gone(disk: Lake, step: str, there: bool) -> None:
    def die(name: str) -> None:
        if name == step:
            raise Killed

    with pytest.raises(Killed):
        disk.drop(ORDERS, step=die)
    other = penstock.connect(disk.root)
    assert bool(hidden(disk)) != there
    assert (other.find(ORDERS) is not None) == there
    assert objects(other, ORDERS) == (OBJECTS if there else set())
    other.create_schema("silver")
    assert hidden(disk) == []


def test_a_listing_sweeps_and_lists_nothing_hidden(disk: Lake) -> None:
    dropped = Path(disk.root) / "silver" / f".penstock-dropped-{'0' * 32}"
    (Path(disk.root) / "silver" / "orders").rename(dropped)
    theirs = Path(disk.root) / "silver" / ".penstock-dropped-by-me"
    theirs.mkdir()
    assert penstock.connect(disk.root, read_only=True).tables() == []
    assert dropped.exists(), "one that only reads removes nothing"
    assert disk.tables() == []
    assert not dropped.exists()
    assert theirs.exists()


def test_a_link_to_a_tables_folder_is_removed_alone(disk: Lake, tmp_path: Path) -> None:
    behind = tmp_path / "behind"
    (Path(disk.root) / "silver" / "orders").rename(behind)
    (Path(disk.root) / "silver" / "orders").symlink_to(behind)
    assert disk.find(ORDERS) is not None
    disk.drop(ORDERS)
    assert disk.find(ORDERS) is None
    assert not os.path.lexists(Path(disk.root) / "silver" / "orders")
    assert {str(path.relative_to(behind)) for path in behind.rglob("*") if path.is_file()} == OBJECTS


def test_a_link_inside_of_a_table_is_not_followed(disk: Lake, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "keep").write_text("")
    (Path(disk.root) / "silver" / "orders" / "linked").symlink_to(tmp_path / "theirs")
    disk.drop(ORDERS)
    assert (tmp_path / "theirs" / "keep").exists()
    assert hidden(disk) == []


def test_a_schema_that_is_a_link_is_emptied_and_the_link_goes(disk: Lake, tmp_path: Path) -> None:
    (Path(disk.root) / "silver").rename(tmp_path / "behind")
    (Path(disk.root) / "silver").symlink_to(tmp_path / "behind")
    disk.drop_schema("silver")
    assert disk.schemas() == []
    assert list((tmp_path / "behind").iterdir()) == []


def test_a_folder_that_cant_be_renamed_is_left_and_named(disk: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(removal.os, "rename", refuse)
    with pytest.raises(PenstockError, match=r"Permission denied .*silver/orders.* Nothing was changed"):
        disk.drop(ORDERS)
    assert objects(disk, ORDERS) == OBJECTS


def test_a_folder_that_cant_be_deleted_is_dropped_and_named(
    disk: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "part-0.parquet":
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        disk.drop(ORDERS)
    assert disk.find(ORDERS) is None
    assert "was dropped, and could not be deleted" in caplog.text
    assert len(hidden(disk)) == 1
    disk.create_schema("silver")
    assert hidden(disk) == []


def test_a_rename_onto_what_is_no_relation_is_refused(disk: Lake) -> None:
    (Path(disk.root) / "gold" / "moved").mkdir(parents=True)
    (Path(disk.root) / "gold" / "moved" / "notes.txt").write_text("keep me")
    with pytest.raises(PenstockError, match="Nothing was changed"):
        disk.rename(ORDERS, MOVED)
    assert objects(disk, ORDERS) == OBJECTS
    with pytest.raises(NotFound):
        disk.drop(MOVED)


def test_a_staged_folder_takes_a_path_and_the_old_one_goes(tmp_path: Path) -> None:
    target = tmp_path / "t"
    for content in ("first", "second"):
        with removal.Staging(str(target)) as staging:
            Path(staging.made).mkdir()
            (Path(staging.made) / content).write_text("")
            removal.replace_folder(staging.made, str(target))
        assert [path.name for path in target.iterdir()] == [content]
        assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("step", ["replace", "between"])
def test_a_replacement_that_is_killed_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """On a disk that can't exchange two folders in one step."""
    monkeypatch.setattr(removal, "_exchanged", lambda one, other: False)
    target = tmp_path / "t"
    target.mkdir()
    (target / "old").write_text("")

    def die(name: str) -> None:
        if name == step:
            raise Killed

    staging = removal.Staging(str(target)).__enter__()
    Path(staging.made).mkdir()
    with pytest.raises(Killed):
        removal.replace_folder(staging.made, str(target), die)
    removal.sweep(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == (2 if step == "replace" else 1), "its process lives"
    assert staging._lock is not None
    staging._lock.release()
    removal.sweep(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert [path.name for path in target.iterdir()] == ["old"]


def test_what_is_being_made_is_not_swept(tmp_path: Path) -> None:
    with removal.Staging(str(tmp_path / "t")) as staging:
        Path(staging.made).mkdir()
        removal.sweep(str(tmp_path))
        assert Path(staging.made).exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("unlocked", "seconds", "goes"), [(False, 30, False), (False, 90, True), (True, 3600, False), (True, 90000, True)]
)
def test_what_was_made_without_a_lock_is_swept_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlocked: bool, seconds: int, goes: bool
) -> None:
    """On a disk without locks; or it was swept, and a JVM that outlived its Python made some of it again."""
    if unlocked:
        monkeypatch.setattr(Lock, "hold", lambda folder: None)
    staging = removal.Staging(str(tmp_path / "t")).__enter__()
    folder = Path(staging.made).parent
    (folder / "lock").unlink(missing_ok=True)
    for path in (*folder.iterdir(), folder):
        os.utime(path, (path.stat().st_mtime - seconds,) * 2)
    removal.sweep(str(tmp_path))
    assert folder.exists() != goes


def test_a_lock_is_taken_once(tmp_path: Path) -> None:
    held = Lock.hold(tmp_path)
    assert held is not None
    assert Lock.take(tmp_path) is None
    held.release()
    taken = Lock.take(tmp_path)
    assert taken is not None
    taken.release()


def test_objects_of_a_store_on_disk_are_dropped_too(tmp_path: Path) -> None:
    """A store whose listing is a disk's: nothing of the order rests on the memory store."""
    store = Store()
    store._opened = LocalStore(tmp_path)
    for path in OBJECTS:
        store.write(f"silver/orders/{path}", b"")
    lake_on(store).drop(ORDERS)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
