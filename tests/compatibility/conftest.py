from __future__ import annotations

from pathlib import Path

import pytest

from tests.compatibility.lake_0_1_0 import OldLake, unpack
from tests.conftest import SESSION


@pytest.fixture
def old(tmp_path: Path) -> OldLake:
    """The lake as 0.1.0 left it."""
    return unpack(tmp_path, SESSION)


@pytest.fixture(scope="session")
def gone_on(tmp_path_factory: pytest.TempPathFactory) -> OldLake:
    """The lake after the current code has brought something new into every table; nothing is left to do."""
    old = unpack(tmp_path_factory.mktemp("gone_on"), SESSION)
    for folder in ("events", "orders", "payments"):
        old.land(f"{folder}/900.json", {"id": 900, "kind": "new", "amount": 1})
    old.land_day(8)
    old.run_all("2026-04-06", "2026-04-09")
    # A window that replaces another writes a record and no plan; only a refresh of the table writes one.
    old.run_windows("silver.readings", "2026-04-01", "2026-04-09", full_refresh=True)
    return old
