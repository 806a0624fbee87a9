"""Whether files are still as they were listed, on stores and on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.files.source import FILES, list_root
from penstock.files.status import changed
from tests.s3_server import S3

ODD = ["10%3A00.json", "a#b.json", "q?r=1.json", "p+q.json", "s p.json", "ü 文.json", "day=1/[x].json"]
AT = 1_700_000_000.123


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
