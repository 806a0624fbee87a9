"""Listed files on an object store: what they are called, whether they changed, and a root without any."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.files.source import FILES, Listings, list_root
from penstock.files.status import changed
from tests.s3_server import S3, serve

ODD = ["10%3A00.json", "a#b.json", "q?r=1.json", "p+q.json", "s p.json", "ü 文.json", "day=1/[x].json"]
AT = 1_700_000_000.123


@pytest.fixture
def s3() -> Iterator[S3]:
    with serve() as server:
        yield server


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


@pytest.mark.parametrize("roots", [["s3://bucket/in"], ["s3://bucket/in", "s3://bucket/in/day=1"], []])
def test_seconds_of_one_object_are_milliseconds_of_a_listing(roots: list[str], s3: S3) -> None:
    for name in ODD:
        s3.put(f"in/{name}", b"12", AT)
    files = list_root("s3://bucket/in", s3.options)
    assert changed(files, roots, s3.options) == {}
    assert s3.requests["HEAD"] == len(ODD)


def test_what_changed_and_what_vanished_on_a_store(s3: S3) -> None:
    for name in ("same", "touched", "grown", "gone#1"):
        s3.put(f"in/{name}", b"12", AT)
    files = list_root("s3://bucket/in", s3.options)
    s3.put("in/touched", b"12", AT + 1)
    s3.put("in/grown", b"123", AT)
    del s3.objects["in/gone#1"]
    assert changed(files, ["s3://bucket/in"], s3.options) == {
        "s3://bucket/in/touched": "changed",
        "s3://bucket/in/grown": "changed",
        "s3://bucket/in/gone#1": "vanished",
    }


def test_a_store_that_does_not_answer_has_lost_no_file(s3: S3) -> None:
    s3.put("in/a", b"12", AT)
    files = list_root("s3://bucket/in", s3.options)
    s3.fail("HEAD", status=403)
    with pytest.raises(PenstockError, match="s3://bucket/in/a"):
        changed(files, ["s3://bucket/in"], s3.options)


def test_the_disk_is_asked_to_the_millisecond(tmp_path: Path) -> None:
    for name in ("same", "touched", "grown", "new\nline", "gone"):
        (tmp_path / name).write_text("12")
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    files = list_root(str(tmp_path))
    os.utime(tmp_path / "touched", (1_700_000_000.5, 1_700_000_000.5))
    (tmp_path / "grown").write_text("123")
    os.utime(tmp_path / "grown", (1_700_000_000, 1_700_000_000))
    (tmp_path / "gone").unlink()
    assert changed(files, [str(tmp_path)]) == {
        str(tmp_path / "touched"): "changed",
        str(tmp_path / "grown"): "changed",
        str(tmp_path / "gone"): "vanished",
    }


def test_nothing_is_asked_of_nothing() -> None:
    assert changed(pa.Table.from_batches([], FILES), ["s3://nowhere"]) == {}


def test_a_root_without_any_object_is_told_from_one_without_files(s3: S3, tmp_path: Path) -> None:
    s3.put("in/_hidden")
    s3.put("full/a")
    s3.put("inner")
    listings = Listings(s3.options)
    found = {root: listings.is_empty_store_root(f"s3://bucket/{root}") for root in ("in", "full", "inn", "inner")}
    assert found == {"in": False, "full": False, "inn": True, "inner": True}
    assert not listings.is_empty_store_root(str(tmp_path))
