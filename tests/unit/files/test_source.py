"""Listings of folders and of object stores: which files count, and how often they are listed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from penstock import PenstockError
from penstock.errors import NotFound
from penstock.files import FileSource, Listings
from penstock.files import source as listing
from penstock.files.source import FILES, is_hidden, list_root, matching
from tests.s3_server import S3

ODD = ["10%3A00.json", "a#b.json", "q?r=1.json", "p+q.json", "s p.json", "ü 文.json", "day=1/[x].json"]
AT = 1_700_000_000.123


@pytest.mark.parametrize("name", [".a", "_SUCCESS", "_temporary", "a._COPYING_"])
def test_hidden_names(name):
    assert is_hidden(name)


@pytest.mark.parametrize("name", ["a", "a_b", "_day=1", "a.b"])
def test_names_that_are_read(name):
    assert not is_hidden(name)


def test_patterns_are_searched_below_the_root(tmp_path):
    rows = [
        {"path": path, "modificationTime": 1, "size": 1} for path in ("/json/a.csv", "/json/b.json", "/json/c.json")
    ]
    files = pa.Table.from_pylist(rows, schema=FILES)
    source = FileSource.from_mapping({"source_roots": ["/json"], "source_patterns": ["json"], "source_exclude": ["^c"]})
    assert matching(files, source)["path"].to_pylist() == ["/json/b.json"]


def test_a_root_is_listed_once_a_run(tmp_path: Path, monkeypatch):
    (tmp_path / "a").write_text("x")
    asked: list[str] = []
    monkeypatch.setattr(listing, "list_root", lambda root, options: asked.append(root) or list_root(root, options))
    listings = Listings()
    assert listings.of([str(tmp_path)]).num_rows == listings.of([str(tmp_path)]).num_rows == 1
    assert asked == [str(tmp_path)]
    listings.of([str(tmp_path)], fresh=True)
    assert len(asked) == 2


def test_a_file_below_two_roots_is_listed_once(tmp_path: Path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "a").write_text("x")
    assert Listings().of([str(tmp_path), str(tmp_path / "below")]).num_rows == 1


def test_a_root_must_be_a_folder(tmp_path: Path):
    with pytest.raises(NotFound, match="does not exist"):
        list_root(str(tmp_path / "none"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(PenstockError, match="is a file"):
        list_root(str(tmp_path / "file"))


def test_a_listing_has_milliseconds_and_the_names_as_they_are(s3: S3) -> None:
    for name in [*ODD, "_hidden", "day=1/.x", "_day=1/y.json"]:
        s3.put(f"_in/a#b/{name}", b"12", AT)
    root = "s3://bucket/_in/a#b"
    assert sorted(list_root(root, s3.options).to_pylist(), key=str) == sorted(
        [
            {"path": f"{root}/{name}", "modificationTime": 1_700_000_000_123, "size": 2}
            for name in [*ODD, "_day=1/y.json"]
        ],
        key=str,
    )


def test_a_listing_goes_on_after_its_first_page(s3: S3) -> None:
    s3.page = 3
    for index in range(10):
        s3.put(f"in/{index}")
    assert list_root("s3://bucket/in", s3.options).num_rows == 10


def test_a_store_that_does_not_list_is_an_error_and_not_empty(s3: S3) -> None:
    s3.put("in/a")
    s3.fail("LIST", status=403)
    with pytest.raises(PenstockError, match="could not be listed"):
        list_root("s3://bucket/in", s3.options)


def test_a_root_without_any_object_is_told_from_one_without_files(s3: S3, tmp_path: Path) -> None:
    s3.put("in/_hidden")
    s3.put("full/a")
    s3.put("inner")
    listings = Listings(s3.options)
    found = {root: listings.is_empty_store_root(f"s3://bucket/{root}") for root in ("in", "full", "inn", "inner")}
    assert found == {"in": False, "full": False, "inn": True, "inner": True}
    assert not listings.is_empty_store_root(str(tmp_path))
