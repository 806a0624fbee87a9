from __future__ import annotations

from pathlib import Path

import pytest

from penstock.windows import backlog
from tests.unit.windows.world import World


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path)
    monkeypatch.setattr(backlog, "now", lambda: world.clock)
    return world
