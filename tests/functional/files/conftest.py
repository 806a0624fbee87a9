from __future__ import annotations

import json
import os
import uuid
from pathlib import Path
from typing import Any

import pytest

from penstock.api import Lake, connect
from penstock.delta.table import Table
from tests.conftest import USERS_SESSION
from tests.places import Place


class Landing:
    """A landing folder, a lake, and a table that the one goes into; `root` and `table` are where their files are."""

    def __init__(self, folder: Path, place: Place) -> None:
        self.root = folder / "landing"
        self.root.mkdir()
        self.place = place
        self.lake: Lake = connect(place.location(folder / "lake"), **place.connection(USERS_SESSION))
        self.schema = f"bronze_{uuid.uuid4().hex[:8]}"
        self.name = f"{self.schema}.events"
        self.table = folder / "lake" / self.schema / "events"

    @property
    def source(self) -> str:
        """The landing folder, as a root."""
        return self.place.location(self.root)

    @property
    def location(self) -> str:
        """The table's location."""
        return self.place.location(self.table)

    def open(self) -> Table:
        """The table, by its log."""
        return Table.open(self.location, self.place.storage_options)

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
            self.name, select=select, **{"roots": [self.source], "safety_buffer_seconds": 0, **keys}
        )

    def rows(self, select: str = "*") -> list[tuple[Any, ...]]:
        return sorted((tuple(row) for row in self.lake.sql(f"select {select} from {self.name}").collect()), key=str)


@pytest.fixture
def landing(tmp_path: Path, place: Place) -> Landing:
    return Landing(tmp_path, place)
