"""Microbatch runs killed between and inside windows: run again, with the backfill that is reported, it is one clean run."""

from __future__ import annotations

import collections
import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from deltalake import DeltaTable

from penstock.api import connect
from tests.conftest import SESSION, SHORT_SESSION

CHILD = str(Path(__file__).with_name("windows_child.py"))
ADDED = {"delete_before_insert": False}
WHOLE = ["2026-04-01", "2026-04-06"]
LAST = ["2026-04-04", "2026-04-06"]
_BACKFILL = re.compile(r"--event-time-start (\S+) --event-time-end ([^`\s]+)")


class Windows:
    """A source of five days, and processes that bring it into a table by windows."""

    def __init__(self, folder: Path, gateway: tuple[int, str]) -> None:
        self.root = folder / "lake"
        schema = f"w_{uuid.uuid4().hex[:8]}"
        self.name, self.source = f"{schema}.events", f"{schema}.raw"
        self.table = self.root / schema / "events"
        self.gateway = gateway
        lake = connect(str(self.root), session=SESSION)
        lake.sql(f"create schema {schema}")
        lake.sql(
            f"create table {self.source} as "
            "select id, date_add(date '2026-04-01', cast(id % 5 as int)) as at from range(50)"
        )

    def start(self, windows: list[str], **orders: object) -> subprocess.Popen[str]:
        told = {
            "root": str(self.root),
            "session": SHORT_SESSION,
            "name": self.name,
            "source": self.source,
            "windows": windows,
            "gateway": self.gateway,
            **orders,
        }
        return subprocess.Popen(
            [sys.executable, CHILD, json.dumps(told)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])},
        )

    def run(self, windows: list[str], **orders: object) -> list[str]:
        process = self.start(windows, **orders)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return list(json.loads(out.splitlines()[-1]))

    def killed(self, windows: list[str], **orders: object) -> None:
        process = self.start(windows, **orders)
        _, err = process.communicate(timeout=300)
        assert process.returncode == -signal.SIGKILL, err
        self.check_so_far()

    def recover(self, config: dict[str, object]) -> None:
        """What a user does: run it again, and what it says."""
        for said in self.run(LAST, config=config):
            found = _BACKFILL.search(said)
            assert found is not None
            self.run(list(found.groups()), named=True, config=config)

    def rows(self) -> collections.Counter[int]:
        if not any((self.table / "_delta_log").glob("*.json")):
            return collections.Counter()
        return collections.Counter(DeltaTable(str(self.table)).to_pyarrow_table()["id"].to_pylist())

    def check_so_far(self) -> None:
        assert all(times == 1 for times in self.rows().values())

    def check(self) -> None:
        assert self.rows() == collections.Counter(range(50))


@pytest.fixture
def windows(tmp_path: Path, gateway: tuple[int, str]) -> Windows:
    return Windows(tmp_path, gateway)


@pytest.mark.parametrize("config", [{}, ADDED], ids=["replaced", "added"])
def test_killed_between_and_inside_windows(windows: Windows, config: dict[str, object]) -> None:
    """A first run, a full refresh and runs after them, each killed at another step."""
    windows.killed(WHOLE, config=config, kill="committed", nth=3)
    windows.recover(config)
    windows.check()
    windows.killed(WHOLE, config=config, full_refresh=True, kill="planned")
    windows.check()
    windows.killed(WHOLE, config=config, full_refresh=True, kill="write", nth=4)
    windows.killed(LAST, config=config, kill="write", nth=2 if not config else 1)
    windows.recover(config)
    windows.check()


def test_killed_while_a_window_is_written(windows: Windows, chance, kills: int) -> None:
    """The JVM is another process's, so that what the killed one was writing may still be committed, later."""
    windows.run(WHOLE)
    for config in [{"days_per_batch": 3}, {}] * max(1, kills // 20) if kills > 20 else [{}]:
        process = windows.start(WHOLE, config=config, full_refresh=True, ready=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(1, 5))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        time.sleep(3)
        windows.check_so_far()
    windows.recover({})
    windows.check()


@pytest.mark.parametrize("partitioned", [True, False])
def test_four_threads_make_the_same_table(windows: Windows, partitioned: bool) -> None:
    windows.run(WHOLE, threads=4, partitioned=partitioned)
    windows.check()
    assert windows.run(WHOLE, threads=4, named=True) == []
    windows.check()
