"""Every method of a storage, on a disk and on a store that fails in every way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.errors import NotFound, PenstockError
from penstock.storage import Storage
from tests.s3_server import AFTER, BEFORE, S3

ODD_KEYS = ["10%3A00.json", "a#b", "q?r=1", "p+q", "s p", "ü 文", "d/e&f<g>", "%41", "50%", "[x]{y}*", "a\\b", "~'\""]
NO_KEYS = ["a//b", "/a", "a/", ".", "a/../b", "../b", "a/./b", "new\nline", "\x7f"]


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

    monkeypatch.setattr("penstock.storage.objects.os.scandir", refuse)
    with pytest.raises(PenstockError, match="could not be listed"):
        Storage(str(tmp_path)).folders("")


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("")
    with pytest.raises(PenstockError, match="root is a file"):
        Storage(str(tmp_path / "lake")).check_root(writable=True)


def test_a_root_that_cannot_be_used_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    monkeypatch.setattr("penstock.storage.objects.os.access", lambda path, mode: not mode & os.W_OK)
    storage = Storage(str(tmp_path / "lake"))
    storage.check_root(writable=False)
    with pytest.raises(PenstockError, match="can't be written"):
        storage.check_root(writable=True)
    monkeypatch.setattr("penstock.storage.objects.os.access", lambda path, mode: False)
    with pytest.raises(PenstockError, match="can't be read"):
        storage.check_root(writable=False)


@pytest.mark.parametrize(
    "look", [lambda s: s.head("a/b"), lambda s: list(s.list("a")), lambda s: s.has_folder("a"), lambda s: s.read("a/b")]
)
def test_what_may_not_be_looked_at_is_not_missing(
    look: Callable[[Storage], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> None:
        raise PermissionError(13, "Permission denied", path)

    storage = Storage(str(tmp_path))
    monkeypatch.setattr("penstock.storage.objects.os.stat", refuse)
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


@pytest.mark.parametrize("prefix", ["", "/plain", "/a%3Ab/c#d?e f"])
def test_keys_are_taken_as_they_are_written(prefix: str, s3: S3) -> None:
    storage = Storage(f"s3://bucket{prefix}", s3.options)
    for key in ODD_KEYS:
        assert storage.write_new(key, key.encode())
        assert storage.read(key) == key.encode()
        assert storage.read_start(key) == key.encode()[:1]
        found = storage.head(key)
        assert found is not None
        assert (found.path, found.size) == (key, len(key.encode()))
    assert set(s3.objects) == {f"{prefix}/{key}".lstrip("/") for key in ODD_KEYS}
    assert {entry.path for entry in storage.list("")} == set(ODD_KEYS)
    assert {entry.path for entry in storage.list("d")} == {"d/e&f<g>"}
    assert storage.folders("") == ["d"]
    storage.copy("d/e&f<g>", "moved#1/e&f<g>")
    assert {entry.path for entry in storage.list("moved#1")} == {"moved#1/e&f<g>"}
    for key in ODD_KEYS:
        storage.delete(key)
    storage.delete_folder("moved#1")
    assert not s3.objects


@pytest.mark.parametrize("key", ODD_KEYS)
def test_keys_on_disk_are_taken_as_they_are_written(key: str, tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    storage.write(key, b"1")
    assert (tmp_path / key).read_bytes() == b"1"
    assert storage.read(key) == storage.read_start(key) == b"1"
    assert [entry.path for entry in storage.list("")] == [key]
    found = storage.head(key)
    assert found is not None
    assert found.path == key


@pytest.mark.parametrize("key", NO_KEYS)
@pytest.mark.parametrize("verb", ["head", "read", "read_start", "delete", "write", "write_new"])
def test_a_key_that_cannot_be_addressed_is_named_and_nothing_else_is_touched(verb: str, key: str, s3: S3) -> None:
    s3.put("p/a")
    arguments = (key, b"new") if verb.startswith("write") else (key,)
    with pytest.raises(PenstockError, match="can't be addressed") as caught:
        getattr(Storage("s3://bucket/p", s3.options), verb)(*arguments)
    assert repr(f"p/{key}") in str(caught.value)
    assert not s3.requests


def test_a_listing_names_a_key_that_cannot_be_addressed(s3: S3) -> None:
    s3.put("p/a//b")
    with pytest.raises(PenstockError, match="p/a//b"):
        list(Storage("s3://bucket/p", s3.options).list(""))


def test_a_put_whose_answer_was_lost_was_ours(s3: S3) -> None:
    storage = Storage("s3://bucket/lake", s3.options)
    s3.fail("PUT", AFTER)
    assert storage.write_new("plan", b"mine")
    assert s3.requests["PUT"] == 2  # the client tried again, and was told that the object exists
    assert not storage.write_new("plan", b"theirs")
    assert storage.read("plan") == b"mine"


def test_a_put_that_failed_is_tried_again(s3: S3) -> None:
    s3.fail("PUT", BEFORE)
    assert Storage("s3://bucket/lake", s3.options).write_new("plan", b"mine")
    assert s3.objects["lake/plan"].data == b"mine"


def test_a_put_that_succeeded_and_is_answered_by_an_error_was_ours(s3: S3) -> None:
    s3.fail("PUT", AFTER, status=400)
    assert Storage("s3://bucket/lake", s3.options).write_new("plan", b"mine")


def test_a_conflict_with_a_put_that_is_on_its_way_is_not_another_writer(s3: S3) -> None:
    storage = Storage("s3://bucket/lake", s3.options)
    s3.fail("PUT", status=409, times=3, code="ConditionalRequestConflict")
    assert storage.write_new("plan", b"mine")
    assert storage.read("plan") == b"mine"
    s3.fail("PUT", status=409, times=100, code="ConditionalRequestConflict")
    with pytest.raises(PenstockError, match=r"4 times.*s3://bucket/lake/other"):
        storage.write_new("other", b"mine")
    assert "lake/other" not in s3.objects


def test_a_put_that_failed_for_good_is_an_error(s3: S3) -> None:
    storage = Storage("s3://bucket/lake", s3.options)
    s3.fail("PUT", BEFORE, status=400)
    with pytest.raises(PenstockError, match=r"could not be written.*s3://bucket/lake/plan"):
        storage.write_new("plan", b"mine")
    s3.put("lake/plan", b"theirs")
    s3.fail("PUT", BEFORE, status=400)
    with pytest.raises(PenstockError, match="could not be written"):
        storage.write_new("plan", b"mine")


def test_a_failed_look_at_what_is_there_is_not_another_writer(s3: S3) -> None:
    s3.put("lake/plan", b"theirs")
    s3.fail("GET", status=403)
    with pytest.raises(PenstockError, match="could not be read"):
        Storage("s3://bucket/lake", s3.options).write_new("plan", b"mine")


@pytest.mark.parametrize("spelling", ["allow_http", "ALLOW_HTTP", "aws_allow_http", "AWS_ALLOW_HTTP"])
def test_options_of_the_http_client_may_stand_among_those_of_the_store(spelling: str, s3: S3) -> None:
    s3.put("a")
    options = {key: value for key, value in s3.options.items() if key != "allow_http"}
    assert Storage("s3://bucket", {**options, spelling: "true", "timeout": "30s"}).exists("a")


@pytest.mark.parametrize(("key", "value"), [("alow_http", "true"), ("timeout", "soon"), ("allow_http", "maybe")])
def test_an_option_that_is_wrong_is_one_clear_error(key: str, value: str, s3: S3) -> None:
    with pytest.raises(PenstockError, match="storage_options") as caught:
        Storage("s3://bucket", {**s3.options, key: value}).exists("a")
    assert "\n" not in str(caught.value)


def test_a_panic_of_the_store_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):
        pass

    def panic(*args: object, **options: object) -> None:
        raise PanicException("Expected config prefix")

    monkeypatch.setattr("penstock.storage.objects.from_url", panic)
    with pytest.raises(PenstockError, match="Expected config prefix"):
        Storage("s3://bucket").exists("a")


@pytest.mark.parametrize(
    "ask",
    [lambda s: list(s.list("")), lambda s: s.folders(""), lambda s: s.has_folder("a"), lambda s: s.write("a", b"")],
)
def test_a_bucket_that_is_not_there_is_an_error_and_not_empty(ask: Callable[[Storage], object], s3: S3) -> None:
    with pytest.raises(PenstockError, match="s3://other"):
        ask(Storage("s3://other/lake", s3.options))
