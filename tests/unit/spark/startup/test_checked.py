"""The check of Spark's and Delta's versions is remembered."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.spark.startup import checked

SPARK: Any = SimpleNamespace(version="4.2.0")


@pytest.fixture
def checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The versions that were checked."""
    found: list[str] = []
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(checked, "check_signatures", lambda spark: found.append(spark.version))
    return found


def test_the_same_jars_are_checked_once(checks: list[str]) -> None:
    checked.check_supported(SPARK, "jars")
    checked.check_supported(SPARK, "jars")
    assert checks == ["4.2.0"]


def test_other_jars_and_other_versions_are_checked(checks: list[str]) -> None:
    checked.check_supported(SPARK, "jars")
    checked.check_supported(SPARK, "others")
    checked.check_supported(SimpleNamespace(version="4.1.4"), "jars")  # type: ignore[arg-type]
    assert checks == ["4.2.0", "4.2.0", "4.1.4"]


def test_other_expectations_are_checked(checks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    checked.check_supported(SPARK, "jars")
    monkeypatch.setattr(checked, "EXPECTED", {"a.B": ("c()",)})
    checked.check_supported(SPARK, "jars")
    assert len(checks) == 2


def test_a_failure_is_not_remembered(checks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(spark: object) -> None:
        raise PenstockError("not supported")

    with monkeypatch.context() as patch:
        patch.setattr(checked, "check_signatures", fail)
        with pytest.raises(PenstockError):
            checked.check_supported(SPARK, "jars")
    checked.check_supported(SPARK, "jars")
    assert checks == ["4.2.0"]


def test_without_a_cache_each_start_checks(checks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "file"))
    checked.check_supported(SPARK, "jars")
    checked.check_supported(SPARK, "jars")
    assert checks == ["4.2.0", "4.2.0"]
