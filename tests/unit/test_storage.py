from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import NotFound, PenstockError
from penstock.storage import Storage, files_at, normalize


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("file:///data/my%20lake/", "/data/my lake"),
        ("/data/lake/", "/data/lake"),
        ("lake", "/project/lake"),
        ("./a/../lake", "/project/lake"),
        ("s3://bucket/lake/", "s3://bucket/lake"),
        ("abfss://c@account.dfs.core.windows.net/lake", "abfss://c@account.dfs.core.windows.net/lake"),
    ],
)
def test_locations_are_kept_in_one_form(given: str, kept: str) -> None:
    assert normalize(given, "/project") == kept


def test_objects_are_written_read_and_deleted(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path / "lake"))
    storage.write("a/b.json", b"1")
    storage.write("a/b.json", b"2")
    assert storage.read("a/b.json") == b"2"
    assert [entry.path for entry in storage.list("a")] == ["a/b.json"]
    storage.delete("a/b.json")
    storage.delete("a/b.json")
    assert not storage.exists("a/b.json")


def test_write_new_has_one_winner(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    assert storage.write_new("plan", b"mine")
    assert not storage.write_new("plan", b"theirs")
    assert storage.read("plan") == b"mine"


def test_not_there_is_said_and_is_not_empty(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        Storage(str(tmp_path)).read("nothing")


def test_a_listing_that_fails_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(f"no: {path}")

    monkeypatch.setattr("penstock.storage.os.scandir", refuse)
    with pytest.raises(PenstockError, match="could not be listed"):
        Storage(str(tmp_path)).folders("")


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    with pytest.raises(PenstockError, match="root is a file"):
        Storage(str(tmp_path / "lake")).check_root(writable=True)


def test_a_root_that_cannot_be_used_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr("penstock.storage.os.access", lambda path, mode: not mode & os.W_OK)
    storage = Storage(str(tmp_path / "lake"))
    storage.check_root(writable=False)
    with pytest.raises(PenstockError, match="can't be written"):
        storage.check_root(writable=True)
    monkeypatch.setattr("penstock.storage.os.access", lambda path, mode: False)
    with pytest.raises(PenstockError, match="can't be read"):
        storage.check_root(writable=False)


@pytest.mark.parametrize("given", ["file://./lake", "file://lake", "file://host/data/lake"])
def test_a_file_uri_with_a_host_is_refused(given: str) -> None:
    with pytest.raises(PenstockError, match="file:///"):
        normalize(given, "/project")


@pytest.mark.parametrize(
    "look", [lambda s: s.head("a/b"), lambda s: list(s.list("a")), lambda s: s.has_folder("a"), lambda s: s.read("a/b")]
)
def test_what_may_not_be_looked_at_is_not_missing(
    look: Callable[[Storage], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    storage = Storage(str(tmp_path))
    monkeypatch.setattr("penstock.storage.os.stat", refuse)
    with pytest.raises(PenstockError, match="Permission denied"):
        look(storage)


def test_below_a_file_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    storage = Storage(str(tmp_path))
    assert storage.head("a/b") is None
    assert list(storage.list("a")) == []
    assert storage.folders("a") == []
    with pytest.raises(PenstockError, match=rf"below a file, {tmp_path}/a"):
        Storage(str(tmp_path / "a" / "lake")).check_root(writable=True)


def test_a_store_that_is_not_known_is_said_in_one_line_and_without_its_password() -> None:
    with pytest.raises(PenstockError, match="s3://") as caught:
        Storage("foo://user:hunter2@host/lake").folders("")
    assert "hunter2" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("", {"one.csv", "day=1/two.csv", "other/three.csv"}),
        ("/one.csv", {"one.csv"}),
        ("/day=1", {"two.csv"}),
        ("/*.csv", {"one.csv"}),
        ("/day=[0-9]", {"day=1/two.csv"}),
        ("/{one,none}.csv", {"one.csv"}),
        ("/o*", {"one.csv", "other/three.csv"}),
        ("/none.csv", set()),
    ],
)
def test_the_files_at_a_location(location: str, expected: set[str], tmp_path: Path) -> None:
    for name in ("one.csv", "day=1/two.csv", "other/three.csv", "_SUCCESS", ".one.csv.crc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    assert {entry.path for entry in files_at(f"{tmp_path}{location}")} == expected
