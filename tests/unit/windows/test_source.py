"""A path with date tokens: the folders of a window, and the files in them."""

from __future__ import annotations

import os
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


def test_only_the_folders_of_a_window_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(1, 29):
        folder = tmp_path / f"in/2026/04/{day:02}/part=a"
        folder.mkdir(parents=True)
        (folder / "1.json").write_text("{}")
    listed, scandir = [], os.scandir

    def noted(path: str) -> object:
        listed.append(str(path))
        return scandir(path)

    monkeypatch.setattr("penstock.files.source.os.scandir", noted)
    assert found(f"{tmp_path}/in/%Y/%m/%d/*/*.json") == [f"{tmp_path}/in/2026/04/01/part=a/1.json"]
    assert sorted(listed) == [f"{tmp_path}/in/2026/04/01", f"{tmp_path}/in/2026/04/01/part=a"]


def window(start: str, end: str) -> Window:
    return Window.of(start, end)


class TestDatedPath:
    @pytest.mark.parametrize(
        ("path", "given", "folders"),
        [
            ("/l/%Y/%m/%d/*.json", ("2025-12-31", "2026-01-02"), ["/l/2025/12/31", "/l/2026/01/01"]),
            ("/l/%Y-%m/x.csv", ("2026-01-31", "2026-02-02"), ["/l/2026-01", "/l/2026-02"]),
            (
                "/l/day=%Y%m%d/hour=%H/*",
                ("2026-04-01T22:00:00", "2026-04-02"),
                ["/l/day=20260401/hour=22", "/l/day=20260401/hour=23"],
            ),
            ("/l/%Y/%j/*", ("2026-02-01", "2026-02-02"), ["/l/2026/032"]),
            ("/l/e-%Y%m%d-*.json", ("2026-04-01", "2026-04-02"), ["/l"]),
        ],
    )
    def test_a_window_s_folders(self, path: str, given: tuple[str, str], folders: list[str]) -> None:
        assert [folder for _, folder, _ in DatedPath(path).folders(window(*given))] == folders

    @pytest.mark.parametrize(
        ("path", "problem"),
        [
            ("landing/*.json", "lacks %Y"),
            ("landing/%Y/%q/*", "%q"),
            ("landing/%d", "lacks %Y"),
            ("landing/%Y/%d", "%d without %m"),
            ("", "is a path"),
            (7, "is a path"),
        ],
    )
    def test_what_is_wrong_with_a_path(self, path: object, problem: str) -> None:
        assert problem in " ".join(DatedPath.problems(path))

    def test_only_what_matches_is_a_file_of_the_window(self, tmp_path: Path) -> None:
        for name in ("2026/04/01/a.json", "2026/04/01/b.txt", "2026/04/01/sub/c.json", "2026/04/02/d.json"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("{}")

        def names(pattern: str, *given: str) -> list[str]:
            found = DatedPath(f"{tmp_path}/%Y/%m/%d/{pattern}").files(window(*given), Listings())
            return [Path(path).name for dated in found for path in dated.files["path"].to_pylist()]

        assert names("*.json", "2026-04-01", "2026-04-02") == ["a.json"]
        assert sorted(names("**/*.json", "2026-04-01", "2026-04-04")) == ["a.json", "c.json", "d.json"]
        assert names("[ab].t?t", "2026-04-01", "2026-04-02") == ["b.txt"]

    def test_a_root_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(NotFound):
            DatedPath(f"{tmp_path}/nowhere/%Y/*").files(window("2026-04-01", "2026-04-02"), Listings())
