"""The jar of our two Java classes: when it can't be made, and what a cluster gets of it."""

from __future__ import annotations

import logging
import zipfile
from pathlib import Path

import pytest

from penstock.spark.startup import local_disk


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))


def test_a_jar_that_cant_be_made_is_warned_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Without it, two processes that commit at once may lose a commit."""

    def fail(*arguments: object) -> None:
        raise ModuleNotFoundError("org.codehaus.janino is not here\nat com.example.Frame")

    monkeypatch.setattr(local_disk, "_compile", fail)
    with caplog.at_level(logging.WARNING, "penstock.local_disk"):
        assert local_disk.local_disk_jar("/spark", "java", [], str(tmp_path)) is None
    (record,) = caplog.records
    assert "org.codehaus.janino is not here" in record.getMessage()
    assert "one commit may be lost" in record.getMessage()
    assert "com.example.Frame" not in record.getMessage()


@pytest.mark.parametrize(
    ("local", "held"),
    [
        (
            True,
            [
                "penstock/LocalFiles.class",
                "penstock/LocalLog.class",
                "penstock/PlanNodes.class",
                "penstock/S3Log.class",
                "yarn-default.xml",
            ],
        ),
        (False, ["penstock/LocalLog.class", "penstock/PlanNodes.class", "penstock/S3Log.class"]),
    ],
)
def test_a_cluster_gets_what_its_driver_uses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, local: bool, held: list[str]
) -> None:
    def compiled(work: str, *arguments: object) -> None:
        (Path(work) / "penstock").mkdir()
        for source in Path(work).glob("*.java"):
            (Path(work) / "penstock" / f"{source.stem}.class").write_bytes(b"")

    monkeypatch.setattr(local_disk, "_compile", compiled)
    jar = local_disk.local_disk_jar("/spark", "java", [], str(tmp_path), local=local)
    assert jar is not None
    with zipfile.ZipFile(jar) as content:
        assert content.namelist() == held


def test_without_shortcuts_hadoop_finds_its_own_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_disk, "_compile", lambda *_: None)
    jar = local_disk.local_disk_jar("/spark", "java", [], str(tmp_path), fast=False)
    assert jar is not None
    with zipfile.ZipFile(jar) as content:
        assert content.namelist() == []
