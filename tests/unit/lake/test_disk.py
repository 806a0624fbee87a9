"""Drops, renames and replacements on a disk that are killed: the folder is whole or gone, and later swept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import penstock
from penstock.api import Lake
from penstock.errors import NotFound, PenstockError
from penstock.lake import disk, leftovers
from tests.unit.lake.world import MOVED, OBJECTS, ORDERS, Killed, objects


@pytest.fixture
def on_disk(tmp_path: Path) -> Lake:
    lake = penstock.connect(str(tmp_path / "lake"))
    for path in OBJECTS:
        lake.storage.write(f"silver/orders/{path}", b"")
    return lake


def hidden(lake: Lake) -> list[str]:
    return [path.name for path in Path(lake.root).glob("*/.*")]


@pytest.mark.parametrize(("step", "there"), [("drop", True), ("dropped", False)])
def test_a_drop_on_a_disk_is_whole_or_gone(on_disk: Lake, step: str, there: bool) -> None:
    def die(name: str) -> None:
        if name == step:
            raise Killed

    with pytest.raises(Killed):
        on_disk.drop(ORDERS, step=die)
    other = penstock.connect(on_disk.root)
    assert bool(hidden(on_disk)) != there
    assert (other.find(ORDERS) is not None) == there
    assert objects(other, ORDERS) == (OBJECTS if there else set())
    other.create_schema("silver")
    assert hidden(on_disk) == []


def test_a_listing_sweeps_and_lists_nothing_hidden(on_disk: Lake) -> None:
    dropped = Path(on_disk.root) / "silver" / f".penstock-dropped-{'0' * 32}"
    (Path(on_disk.root) / "silver" / "orders").rename(dropped)
    theirs = Path(on_disk.root) / "silver" / ".penstock-dropped-by-me"
    theirs.mkdir()
    assert penstock.connect(on_disk.root, read_only=True).tables() == []
    assert dropped.exists(), "one that only reads removes nothing"
    assert on_disk.tables() == []
    assert not dropped.exists()
    assert theirs.exists()


def test_a_link_to_a_tables_folder_is_removed_alone(on_disk: Lake, tmp_path: Path) -> None:
    behind = tmp_path / "behind"
    (Path(on_disk.root) / "silver" / "orders").rename(behind)
    (Path(on_disk.root) / "silver" / "orders").symlink_to(behind)
    assert on_disk.find(ORDERS) is not None
    on_disk.drop(ORDERS)
    assert on_disk.find(ORDERS) is None
    assert not os.path.lexists(Path(on_disk.root) / "silver" / "orders")
    assert {str(path.relative_to(behind)) for path in behind.rglob("*") if path.is_file()} == OBJECTS


def test_a_link_inside_of_a_table_is_not_followed(on_disk: Lake, tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "keep").write_text("")
    (Path(on_disk.root) / "silver" / "orders" / "linked").symlink_to(tmp_path / "theirs")
    on_disk.drop(ORDERS)
    assert (tmp_path / "theirs" / "keep").exists()
    assert hidden(on_disk) == []


def test_a_schema_that_is_a_link_is_emptied_and_the_link_goes(on_disk: Lake, tmp_path: Path) -> None:
    (Path(on_disk.root) / "silver").rename(tmp_path / "behind")
    (Path(on_disk.root) / "silver").symlink_to(tmp_path / "behind")
    on_disk.drop_schema("silver")
    assert on_disk.schemas() == []
    assert list((tmp_path / "behind").iterdir()) == []


def test_a_folder_that_cant_be_renamed_is_left_and_named(on_disk: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*paths: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(disk.os, "rename", refuse)
    with pytest.raises(PenstockError, match=r"Permission denied .*silver/orders.* Nothing was changed"):
        on_disk.drop(ORDERS)
    assert objects(on_disk, ORDERS) == OBJECTS


def test_a_folder_that_cant_be_deleted_is_dropped_and_named(
    on_disk: Lake, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    unlink = Path.unlink

    def refuse(path: Path, missing_ok: bool = False) -> None:
        if path.name == "part-0.parquet":
            raise PermissionError(13, "Permission denied")
        unlink(path, missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        on_disk.drop(ORDERS)
    assert on_disk.find(ORDERS) is None
    assert "was dropped, but could not be deleted" in caplog.text
    assert len(hidden(on_disk)) == 1
    on_disk.create_schema("silver")
    assert hidden(on_disk) == []


def test_a_rename_onto_what_is_no_relation_is_refused(on_disk: Lake) -> None:
    (Path(on_disk.root) / "gold" / "moved").mkdir(parents=True)
    (Path(on_disk.root) / "gold" / "moved" / "notes.txt").write_text("keep me")
    with pytest.raises(PenstockError, match="Nothing was changed"):
        on_disk.rename(ORDERS, MOVED)
    assert objects(on_disk, ORDERS) == OBJECTS
    with pytest.raises(NotFound):
        on_disk.drop(MOVED)


def test_a_staged_folder_takes_a_path_and_the_old_one_goes(tmp_path: Path) -> None:
    target = tmp_path / "t"
    for content in ("first", "second"):
        with disk.Staging(str(target)) as staging:
            Path(staging.path).mkdir()
            (Path(staging.path) / content).write_text("")
            disk.replace_folder(staging.path, str(target))
        assert [path.name for path in target.iterdir()] == [content]
        assert [path.name for path in tmp_path.iterdir()] == ["t"]


@pytest.mark.parametrize("step", ["replace", "between"])
def test_a_replacement_that_is_killed_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """On a disk that can't exchange two folders in one step."""
    monkeypatch.setattr(disk, "_exchanged", lambda one, other: False)
    target = tmp_path / "t"
    target.mkdir()
    (target / "old").write_text("")

    def die(name: str) -> None:
        if name == step:
            raise Killed

    staging = disk.Staging(str(target)).__enter__()
    Path(staging.path).mkdir()
    with pytest.raises(Killed):
        disk.replace_folder(staging.path, str(target), die)
    leftovers.sweep(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == (2 if step == "replace" else 1), "its process lives"
    assert staging._lock is not None
    staging._lock.release()
    leftovers.sweep(str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["t"]
    assert [path.name for path in target.iterdir()] == ["old"]
