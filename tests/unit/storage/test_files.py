"""The files that Spark would read at a location."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.storage import files_at
from tests.s3_server import S3


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


def test_the_files_at_a_location_of_a_store(s3: S3) -> None:
    for key in ("in/a#b/1%3A.csv", "in/a#b/2.csv", "in/a"):
        s3.put(key)
    found = {
        location: {entry.path for entry in files_at(f"s3://bucket/{location}", s3.options)}
        for location in ("in/a#b", "in/a#b/1%3A.csv", "in/a#b/*.csv")
    }
    assert found == {
        "in/a#b": {"1%3A.csv", "2.csv"},
        "in/a#b/1%3A.csv": {"1%3A.csv"},
        "in/a#b/*.csv": {"1%3A.csv", "2.csv"},
    }
