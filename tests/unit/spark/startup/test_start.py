"""A start with the shortcuts of `session.fast_start`, and without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from penstock.config.session_settings import SessionSettings
from penstock.errors import PenstockError
from penstock.spark.startup import start as module
from penstock.spark.startup.archive import ClassArchive
from penstock.spark.startup.compiler_flags import COMPILE_LATER
from penstock.spark.startup.start import start


@pytest.fixture
def tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The configuration of each JVM that is asked for; none of them starts."""
    found: list[dict[str, Any]] = []

    def launched(self: Any, launch: Any, configuration: dict[str, str], *, fast: bool) -> Any:
        found.append({"fast": fast, **configuration})
        raise PenstockError("Spark did not start")

    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(module, "find_java", lambda: "/no/java")
    monkeypatch.setattr(module, "delta_jars", lambda *_: ["/delta.jar"])
    monkeypatch.setattr(module, "local_disk_jar", lambda *_, local, fast: f"/disk-{fast}.jar")
    monkeypatch.setattr(module._Start, "_launched", launched)
    return found


def options(configuration: dict[str, Any]) -> str:
    return str(configuration["spark.driver.extraJavaOptions"])


def test_a_jvm_that_does_not_start_starts_once_more_without_shortcuts(tries: list[dict[str, Any]]) -> None:
    with pytest.raises(PenstockError, match="Spark did not start"):
        start(SessionSettings())
    fast, plain = tries
    assert (fast["fast"], plain["fast"]) == (True, False)
    assert COMPILE_LATER in options(fast)
    assert "-XX:ArchiveClassesAtExit" in options(fast)
    assert "-XX" not in options(plain)
    assert "java.io.tmpdir" in options(plain)
    assert fast["spark.driver.extraClassPath"].endswith("/disk-True.jar")
    assert plain["spark.driver.extraClassPath"].endswith("/disk-False.jar")


def test_without_fast_start_no_shortcut_is_tried(tries: list[dict[str, Any]]) -> None:
    with pytest.raises(PenstockError, match="Spark did not start"):
        start(SessionSettings.from_mapping({"fast_start": False}))
    assert [one["fast"] for one in tries] == [False]


def test_a_jvm_that_did_start_is_not_started_again(
    tries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def launched(self: Any, *_: Any, fast: bool) -> Any:
        tries.append({"fast": fast})
        self.has_started = True
        raise PenstockError("Spark did not start: a wrong setting")

    monkeypatch.setattr(module._Start, "_launched", launched)
    with pytest.raises(PenstockError, match="a wrong setting"):
        start(SessionSettings())
    assert tries == [{"fast": True}]


def test_a_cluster_has_no_options_of_a_local_jvm(tries: list[dict[str, Any]]) -> None:
    with pytest.raises(PenstockError):
        start(SessionSettings(master="yarn", fast_start=False))
    assert "spark.driver.extraJavaOptions" not in tries[0]
    assert tries[0]["spark.jars"] == "/delta.jar,/disk-False.jar"


def test_an_archive_that_cannot_be_kept_is_left_out(
    tries: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ClassArchive, "java_option", lambda self: None)
    with pytest.raises(PenstockError):
        start(SessionSettings())
    assert "ArchiveClassesAtExit" not in options(tries[0])
    assert COMPILE_LATER in options(tries[0])
