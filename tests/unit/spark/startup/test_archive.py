"""The class archive's folder: no JVM."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from penstock.spark.startup.archive import ClassArchive

DAY = 24 * 3600


@pytest.fixture
def spark_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path))
    (tmp_path / "java").touch()
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    return tmp_path / "spark"


def archive_of(spark_home: Path) -> ClassArchive:
    return ClassArchive(str(spark_home.parent / "java"), str(spark_home), ["a.jar"])


def test_of_a_short_life_only(spark_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = archive_of(spark_home)
    assert archive.is_due
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 301)
    assert not archive.is_due


def test_other_jars_have_another(spark_home: Path) -> None:
    before = archive_of(spark_home).path
    os.utime(spark_home / "jars", (1, 1))
    assert archive_of(spark_home).path != before


def test_what_is_not_used_goes(spark_home: Path) -> None:
    archive = archive_of(spark_home)
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
    assert not archive.is_due
