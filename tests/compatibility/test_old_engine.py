"""The engine of 0.1.0 refuses a lake that the current code has gone on with, and changes nothing in it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compatibility.lake_0_1_0 import DATA, OldLake


def content(folder: Path) -> dict[str, str]:
    """All files below a folder, each with a digest: data, logs and ledgers."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def run_old_engine(place: Path) -> dict[str, Any]:
    """Run every model once, in a process that has 0.1.0 in place of the current code."""
    done = subprocess.run(
        [sys.executable, str(DATA / "run.py"), str(place)],
        env={**os.environ, "PYTHONPATH": str(DATA / "engine.zip")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_0_1_0_refuses_what_this_version_wrote(gone_on: OldLake) -> None:
    tables = [name for models in gone_on.models.values() for name in models]
    formats = {name: gone_on.plan(name)["format_version"] for name in tables}
    if set(formats.values()) == {1}:
        pytest.skip("this version writes plans of format 1, as 0.1.0 does")
    assert set(formats.values()) == {2}, formats
    # Something new for every table, so that 0.1.0 would have work to do.
    for folder in ("events", "orders", "payments"):
        gone_on.land(f"{folder}/901.json", {"id": 901, "kind": "newer", "amount": 1})
    gone_on.lake.sql("update silver.customers set balance = balance + 1 where id = 1")
    gone_on.land_day(9)
    lake = gone_on.place / "lake"
    before = content(lake)
    told = run_old_engine(gone_on.place)
    assert told["engine"].startswith(str(DATA / "engine.zip"))
    assert sorted(told["said"]) == sorted(tables)
    for name, (error, message) in told["said"].items():
        assert error == "PenstockError", (name, message)
        assert "format 2" in message, (name, message)
        assert str(gone_on.table(name)) in message, (name, message)
    assert not told["spark"]
    assert content(lake) == before
    # The refusal leaves nothing behind that would keep the current code from going on.
    gone_on.run_all("2026-04-09", "2026-04-10")
    for folder in ("events", "orders", "payments"):
        ids = [row["id"] for row in gone_on.rows(f"bronze.{folder}")]
        assert sorted(ids) == sorted(row["id"] for row in gone_on.landed(folder))
    for name in ("silver.readings", "silver.added_readings"):
        ids = [row["id"] for row in gone_on.rows(name)]
        assert sorted(ids) == sorted(row["id"] for row in gone_on.landed("readings"))
