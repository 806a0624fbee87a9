from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from penstock.api import Lake, connect
from tests.conftest import USERS_SESSION


class Landing:
    """A landing folder, a lake, and a table that the one goes into; the JVM is this process's."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "landing"
        self.root.mkdir()
        self.lake: Lake = connect(str(folder / "lake"), session=USERS_SESSION)
        self.schema = f"bronze_{uuid.uuid4().hex[:8]}"
        self.name = f"{self.schema}.events"
        self.table = folder / "lake" / self.schema / "events"

    def json(self, name: str, *rows: dict[str, Any], at: float | None = None) -> Path:
        return self.text(name, "".join(json.dumps(row) + "\n" for row in rows), at=at)

    def text(self, name: str, text: str, *, at: float | None = None) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        if at is not None:
            os.utime(path, (at, at))
        return path

    def ingest(self, select: str = "select * from @data", **keys: Any):
        return self.lake.ingest(
            self.name, select=select, **{"roots": [str(self.root)], "safety_buffer_seconds": 0, **keys}
        )

    def rows(self, select: str = "*") -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.lake.sql(f"select {select} from {self.name}").collect()), key=str)


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    return Landing(tmp_path)
