"""Sweeps take the leftovers of the dead, and nothing of the living."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.lake import disk, leftovers
from penstock.lake.lock import Lock


def test_what_is_being_made_is_not_swept(tmp_path: Path) -> None:
    with disk.Staging(str(tmp_path / "t")) as staging:
        Path(staging.path).mkdir()
        leftovers.sweep(str(tmp_path))
        assert Path(staging.path).exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("unlocked", "seconds", "goes"), [(False, 30, False), (False, 90, True), (True, 3600, False), (True, 90000, True)]
)
def test_what_was_made_without_a_lock_is_swept_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unlocked: bool, seconds: int, goes: bool
) -> None:
    """On a disk without locks; or it was swept, and a JVM that outlived its Python made some of it again."""
    if unlocked:
        monkeypatch.setattr(Lock, "hold", lambda folder: None)
    staging = disk.Staging(str(tmp_path / "t")).__enter__()
    folder = Path(staging.path).parent
    (folder / "lock").unlink(missing_ok=True)
    for path in (*folder.iterdir(), folder):
        os.utime(path, (path.stat().st_mtime - seconds,) * 2)
    leftovers.sweep(str(tmp_path))
    assert folder.exists() != goes


def test_a_lock_is_taken_once(tmp_path: Path) -> None:
    held = Lock.hold(tmp_path)
    assert held is not None
    assert Lock.take(tmp_path) is None
    held.release()
    taken = Lock.take(tmp_path)
    assert taken is not None
    taken.release()
