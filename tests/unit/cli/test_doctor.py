from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.conftest import Penstock

Ask = Callable[..., dict[str, Any]]


def test_doctor(ask: Ask, run: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    verdicts = {check["name"]: check["verdict"] for check in ask("doctor")["checks"]}
    assert verdicts["store"] == "ok"
    assert "jars of Delta" in run("doctor").output
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert "there is none" in " ".join(run("doctor", exits=1).output.split())
