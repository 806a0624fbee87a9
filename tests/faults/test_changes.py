"""Models that follow changes, killed at every step and run at once: the table is what a full refresh would build."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from penstock.api import Lake, connect
from tests.conftest import SESSION, SHORT_SESSION, delta_rows
from tests.faults.conftest import CHILD

STEPS = ["plan", "planned", "write", "written", "committed", "summary"]


class ChangeWorld:
    """A source that changes, and processes that bring its changes into a table."""

    def __init__(self, folder: Path, gateway: tuple[int, str]) -> None:
        self.root = folder / "lake"
        self.gateway = gateway
        self.schema = f"s_{uuid.uuid4().hex[:8]}"
        self.lake: Lake = connect(str(self.root), session=SESSION)
        self.select = f"select id, name, n from {self.schema}.a where n <> 3"
        self.lake.sql(
            f"create table {self.schema}.a tblproperties ('delta.enableChangeDataFeed' = 'true') as "
            "select id, concat('n', id) as name, id % 5 as n from range(20)"
        )
        self._turn = 0

    def change(self) -> None:
        """Some rows leave, some come back with another key, some change."""
        self._turn += 1
        turn = self._turn
        self.lake.sql(
            f"merge into {self.schema}.a t using (select id from range(30)) s on t.id = s.id "
            f"when matched and s.id % 7 = {turn % 7} then delete "
            f"when matched and s.id % 3 = {turn % 3} then update set name = 'turn {turn}', n = {turn % 5} "
            f"when not matched and s.id % 2 = {turn % 2} then insert (id, name, n) values (s.id, 'new {turn}', s.id % 5)"
        )

    def start(self, **orders: object) -> subprocess.Popen[str]:
        told = {
            "root": str(self.root),
            "session": SHORT_SESSION,
            "name": f"{self.schema}.target",
            "select": self.select,
            "changes": {"unique_key": "id"},
            "gateway": self.gateway,
            **orders,
        }
        return subprocess.Popen(
            [sys.executable, CHILD, json.dumps(told)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def killed(self, **orders: object) -> None:
        process = self.start(**orders)
        _, err = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, err

    def finish(self, **keys: object) -> None:
        self.lake.merge_changes(f"{self.schema}.target", key="id", select=self.select, **keys)

    def check(self) -> None:
        have = delta_rows(self.root / self.schema / "target")
        want = [row.asDict() for row in self.lake.sql(self.select).collect()]
        assert sorted(map(repr, have)) == sorted(map(repr, want))


@pytest.fixture
def changing(tmp_path: Path, gateway: tuple[int, str]) -> ChangeWorld:
    return ChangeWorld(tmp_path, gateway)


def test_killed_at_every_step(changing):
    """The first run too; each finds what the killed one before it left, while the source goes on."""
    changing.killed(kill="planned")
    changing.change()
    changing.killed(kill="write")
    changing.finish()
    changing.check()
    for step in STEPS:
        changing.change()
        changing.killed(kill=step)
    changing.killed(kill="write", full_refresh=True)
    changing.finish()
    changing.check()


def test_killed_at_random_moments(changing, kills, chance):
    """The JVM is another process's, so that what the killed one was merging may still be committed, later."""
    changing.finish()
    for _ in range(max(2, kills // 10)):
        changing.change()
        process = changing.start(ready=True, full_refresh=chance.random() < 0.1)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 3))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    changing.finish()
    changing.check()


def test_several_at_once_and_a_full_refresh_among_them(changing):
    changing.finish()
    changing.change()
    changing.change()
    at = time.time() + 6
    running = [changing.start(ready=True, at=at, full_refresh=refresh) for refresh in (False, False, True)]
    for process in running:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
    changing.check()
    changing.change()
    changing.finish()
    changing.check()
