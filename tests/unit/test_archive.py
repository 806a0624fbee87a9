"""The class archive's folder: no JVM."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from penstock.archive import ClassArchive

DAY = 24 * 3600


def test_what_is_not_used_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    java = tmp_path / "java"
    java.touch()
    archive = ClassArchive(str(java), ["a.jar"])
    assert archive.java_option() == f"-XX:ArchiveClassesAtExit={archive.path.with_suffix(f'.{os.getpid()}')}"
    folder = archive.path.parent
    ages = {"old.jsa": 31, "old.json": 31, "used.jsa": 29, "killed.4711": 2, "running.4712": 0, "local-disk-1.jar": 99}
    for name, days in ages.items():
        (folder / name).touch()
        os.utime(folder / name, (time.time() - days * DAY,) * 2)
    archive.path.with_suffix(f".{os.getpid()}").touch()
    archive.keep()
    assert {path.name for path in folder.iterdir()} == {
        archive.path.name,
        "used.jsa",
        "running.4712",
        "local-disk-1.jar",
    }
    assert archive.java_option() == f"-XX:SharedArchiveFile={archive.path}"
