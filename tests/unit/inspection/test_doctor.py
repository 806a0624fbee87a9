from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.api import connect
from penstock.config.session_settings import SessionSettings
from penstock.inspection.doctor import PROBE, Check, doctor
from penstock.storage import Storage
from tests.unit.inspection.conftest import History


def checks(shop: History, **settings: object) -> dict[str, Check]:
    return {check.name: check for check in doctor(shop.lake, SessionSettings.from_mapping(settings))}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def java(folder: Path, version: str | None) -> Path:
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    if version is not None:
        (folder / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize(
    ("version", "verdict"),
    [("17.0.15", "ok"), ("21", "ok"), ("11.0.2", "error"), ("1.8.0_392", "error"), (None, "warning")],
)
def test_java_is_not_started(
    shop: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None, verdict: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path / "java", version)))
    assert checks(shop)["java"].verdict == verdict


def test_no_java(shop: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/nowhere")
    found = checks(shop)["java"]
    assert found.verdict == "error"
    assert "openjdk-17" in (found.fix or "")


def test_a_heap_that_does_not_fit(shop: History) -> None:
    assert checks(shop, memory="9999g")["memory"].verdict == "error"
    assert checks(shop, memory="1g")["memory"].verdict != "error"


def test_a_cache_that_others_can_write(shop: History, own_cache: Path) -> None:
    assert checks(shop)["cache"].verdict == "ok"
    assert not own_cache.exists()
    own_cache.mkdir()
    own_cache.chmod(0o777)
    found = checks(shop)["cache"]
    assert found.verdict == "error"
    assert "may be written by others" in found.found
    own_cache.chmod(0o700)
    assert "mode 700" in checks(shop)["cache"].found


def test_jars_that_are_not_there_yet(shop: History, tmp_path: Path) -> None:
    found = checks(shop)["jars of Delta"]
    assert (found.verdict, "Maven Central" in found.found) == ("warning", True)
    assert "session.jars" in checks(shop, jars=[str(tmp_path / "no.jar")])["jars of Delta"].found


def test_the_store_is_written_and_left_as_it_was(shop: History) -> None:
    shop.lake.create_schema("bronze")
    assert checks(shop)["store"].verdict == "ok"
    assert [name for name in os.listdir(shop.lake.root) if name.startswith(PROBE)] == []
    assert checks(shop)["root"].found.endswith("1 schema")


def test_a_root_that_is_not_there_is_not_created(tmp_path: Path) -> None:
    lake = connect(str(tmp_path / "none" / "lake"))
    found = {check.name: check for check in doctor(lake, SessionSettings())}
    assert (found["root"].verdict, found["store"].verdict) == ("ok", "ok")
    assert not (tmp_path / "none").exists()


def test_a_root_that_is_a_file(tmp_path: Path) -> None:
    lake = connect(str(tmp_path / "lake"))
    (tmp_path / "lake").write_text("")
    found = {check.name: check for check in doctor(lake, SessionSettings())}
    assert found["root"].verdict == "error"


def test_a_store_that_ignores_conditions(shop: History, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.lake.create_schema("bronze")

    def write_new(self: Storage, path: str, data: bytes) -> bool:
        self.write(path, data)
        return True

    monkeypatch.setattr(Storage, "write_new", write_new)
    found = checks(shop)["store"]
    assert found.verdict == "error"
    assert "two writers" in found.found
    assert [name for name in os.listdir(shop.lake.root) if name.startswith(PROBE)] == []


def test_a_missing_package(shop: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.inspection.doctor._PACKAGES", ("pyspark", "no-such-package"))
    found = checks(shop)["packages"]
    assert (found.verdict, found.found) == ("error", "missing: no-such-package")
