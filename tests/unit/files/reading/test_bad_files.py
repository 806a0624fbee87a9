"""A file is bad only if the store returns its bytes and Spark is alive."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.errors import NotFound, PenstockError
from penstock.files.reading.bad_files import BadFiles, BadFileSearch


def fail(path: str) -> None:
    raise ValueError(f"{path} is broken")


def search(alive=lambda: None) -> BadFileSearch:
    return BadFileSearch(SimpleNamespace(check_alive=alive), ["/landing"], {})  # type: ignore[arg-type]


def test_a_file_whose_bytes_can_be_read_is_bad(tmp_path: Path) -> None:
    path = tmp_path / "new\nline.json"
    path.write_text("x")
    assert list(search().unreadable([str(path)], fail)) == [str(path)]


def test_a_file_that_is_read_is_not_bad(tmp_path: Path) -> None:
    assert search().unreadable([str(tmp_path / "a.json")], lambda path: None) == {}


def test_a_file_that_is_gone_is_not_bad(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        search().unreadable([str(tmp_path / "gone.json")], fail)


def test_a_file_that_the_disk_does_not_return_is_not_bad(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(PenstockError, match="could not be read"):
        search().unreadable([str(tmp_path / "folder")], fail)


def test_no_file_is_bad_if_spark_is_gone(tmp_path: Path) -> None:
    def dead() -> None:
        raise PenstockError("Spark is gone")

    (tmp_path / "good.json").write_text("x")
    with pytest.raises(PenstockError, match="Spark is gone"):
        search(dead).unreadable([str(tmp_path / "good.json")], fail)


def test_the_error_names_each_file_and_its_reason() -> None:
    assert str(BadFiles({"/a": "one", "/b": "two"})) == "/a can't be read: one; /b can't be read: two"
