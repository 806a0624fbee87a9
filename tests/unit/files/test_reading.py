"""A store that gives nothing out makes no file bad."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.errors import NotFound, PenstockError
from penstock.files.config import FileSource
from penstock.files.query import Model
from penstock.files.reading.reader import Reader
from penstock.sql.names import Name


def fail(path: str) -> None:
    raise ValueError(f"{path} is broken")


@pytest.fixture
def reader() -> Reader:
    runner = SimpleNamespace(check_alive=lambda: None)
    source = FileSource.from_mapping({"source_roots": ["/landing"]})
    return Reader(Name("a", "b"), source, Model.read("select * from @data"), runner, {})  # type: ignore[arg-type]


def test_a_file_whose_bytes_can_be_had_is_bad(reader: Reader, tmp_path: Path) -> None:
    path = tmp_path / "new\nline.json"
    path.write_text("x")
    assert list(reader._probe(fail, [str(path)])) == [str(path)]


def test_a_file_that_is_gone_is_not_bad(reader: Reader, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        reader._probe(fail, [str(tmp_path / "gone.json")])


def test_a_file_that_the_disk_does_not_give_out_is_not_bad(reader: Reader, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(PenstockError, match="could not be read"):
        reader._probe(fail, [str(tmp_path / "folder")])


def test_a_spark_that_does_nothing_makes_no_file_bad(reader: Reader, tmp_path: Path) -> None:
    def dead() -> None:
        raise PenstockError("Spark is gone")

    reader._spark.check_alive = dead  # type: ignore[method-assign]
    (tmp_path / "good.json").write_text("x")
    with pytest.raises(PenstockError, match="Spark is gone"):
        reader._probe(fail, [str(tmp_path / "good.json")])
