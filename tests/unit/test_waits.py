"""Whoever waits for another process waits for so long and no longer."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path

import pytest

import penstock
from penstock.config.session_settings import Repository
from penstock.errors import PenstockError
from penstock.spark.startup import jars, launch
from penstock.spark.startup.launch import Jvm


def test_a_jvm_that_never_tells_its_port_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch, "_SECONDS_TO_START", 0.3)
    with (tmp_path / "said").open("wb") as said:
        jvm = Jvm(["sleep", "1000"], str(tmp_path), str(tmp_path), said)
        with pytest.raises(PenstockError, match="The JVM said nothing for"):
            jvm.gateway()
    assert jvm._process.poll() is not None


def test_jars_that_do_not_arrive_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\nexec sleep 1000\n")
    java.chmod(0o755)
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "_SECONDS_TO_FETCH", 0.3)
    begun = time.monotonic()
    with pytest.raises(PenstockError, match=r"jars did not arrive within .* \(https://mirror\)\. Check the network"):
        jars.delta_jars(str(tmp_path), str(java), (Repository("https://mirror"),))
    assert time.monotonic() - begun < 30
    assert not [name for _, folders, _ in os.walk(tmp_path) for name in folders if name.startswith("fetch-")]


_ENDS = {
    # Work of this process in other threads: each ends, or is cancelled, as the work itself does.
    ("files/source.py", "result"),
    ("files/source.py", "wait"),
    ("files/batch.py", "result"),
    ("files/batch.py", "exception"),
    ("spark/internals/transaction.py", "result"),
    ("spark/merge.py", "result"),
    # The thread that has claimed the pack closes it however it ends.
    ("windows/meeting.py", "wait"),
    # After a kill.
    ("spark/startup/launch.py", "wait"),
    ("spark/startup/end.py", "wait"),
}
"""Waits without a limit, each with its reason."""
_WAITS = {"wait", "result", "exception", "communicate", "run", "check_output", "check_call", "call"}


def test_waits_without_a_limit_are_known() -> None:
    source = Path(penstock.__file__).parent
    found = set()
    for path in source.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name not in _WAITS:
                continue
            owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
            if name in ("run", "check_output", "check_call", "call") and owner != "subprocess":
                continue
            if name == "exception" and owner != "future":
                continue
            limited = any(word.arg == "timeout" for word in node.keywords)
            if not limited and not (name == "wait" and node.args and owner):
                found.add((path.relative_to(source).as_posix(), name))
    assert found == _ENDS
