"""A dated path below a folder whose name looks like a pattern."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.errors import NotFound
from penstock.files import Listings
from penstock.windows import DatedPath, Window

DAY = Window.of("2026-04-01", "2026-04-02")


def found(path: str) -> list[str]:
    return sorted(name for dated in DatedPath(path).files(DAY, Listings()) for name in dated.files["path"].to_pylist())


def test_a_folder_that_is_there_by_this_name_is_no_pattern(tmp_path: Path) -> None:
    for folder in ("r[1]", "r1", "r2"):
        (tmp_path / folder / "in/2026/04/01").mkdir(parents=True)
        (tmp_path / folder / "in/2026/04/01/[a] *.json").write_text("{}")
    own = DatedPath(f"{tmp_path}/r[1]/in/%Y/%m/%d/*.json")
    assert own.root == f"{tmp_path}/r[1]/in"
    assert [folder for _, folder, _ in own.folders(DAY)] == [f"{tmp_path}/r[1]/in/2026/04/01"]
    assert found(own.text) == [f"{tmp_path}/r[1]/in/2026/04/01/[a] *.json"]
    assert found(f"{tmp_path}/r[2]/in/%Y/%m/%d/*.json") == [f"{tmp_path}/r2/in/2026/04/01/[a] *.json"]


def test_a_folder_like_a_pattern_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "r[1]").mkdir()
    with pytest.raises(NotFound):
        found(f"{tmp_path}/r[1]/in/%Y/%m/%d/*.json")
