from __future__ import annotations

import collections
import uuid
from pathlib import Path
from typing import Any

import pytest

from penstock.api import Lake, connect
from penstock.changes import MergeReport
from penstock.delta.table import Table
from tests.conftest import delta_rows, session_of
from tests.places import Place

FEED = "tblproperties ('delta.enableChangeDataFeed' = 'true')"


class World:
    """A lake with sources whose changes are followed; `folder` has its files, wherever the lake is."""

    def __init__(self, folder: Path, session: dict[str, Any], place: Place) -> None:
        self.folder = folder / "lake"
        self.place = place
        self.lake: Lake = connect(place.location(self.folder), **place.connection(session))
        self.schema = f"s_{uuid.uuid4().hex[:8]}"
        self.target = f"{self.schema}.target"

    def sql(self, text: str) -> Any:
        return self.lake.sql(text.format(s=self.schema, feed=FEED))

    def merge(self, select: str, key: str | list[str] = "id", target: str | None = None, **keys: Any) -> MergeReport:
        return self.lake.merge_changes(target or self.target, key=key, select=select.format(s=self.schema), **keys)

    def rows(self, query: str) -> collections.Counter[str]:
        return collections.Counter(repr(_plain(row.asDict(recursive=True))) for row in self.sql(query).collect())

    def check(self, select: str, target: str | None = None) -> None:
        """The table is what a full refresh would build; delta-rs reads it in no time."""
        rows = delta_rows(self.folder.joinpath(*(target or self.target).split(".")))
        have = collections.Counter(repr(_plain(row)) for row in rows)
        want = self.rows(select)
        assert have == want, f"too many: {list(have - want)[:5]}, missing: {list(want - have)[:5]}"

    def log(self, name: str = "target") -> Table:
        return self.lake.log_of(f"{self.schema}.{name}")

    def path(self, name: str = "target") -> Path:
        return self.folder / self.schema / name


def _plain(value: Any) -> Any:
    """One form for what Spark and delta-rs hand out: a map is a dict here, and a list of pairs there."""
    if isinstance(value, dict):
        return _plain(list(value.items()))
    if isinstance(value, list):
        plain = tuple(_plain(item) for item in value)
        return tuple(sorted(plain, key=repr)) if all(isinstance(item, tuple) for item in value) else plain
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value


@pytest.fixture
def world(request: pytest.FixtureRequest, tmp_path: Path, place: Place) -> World:
    return World(tmp_path, session_of(request), place)
