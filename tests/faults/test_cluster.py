"""An executor, a worker and the driver killed while files come in and while changes are merged: nothing lost, nothing doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import SHORT_SESSION, delta_rows
from tests.faults.conftest import CHILD
from tests.places.cluster import Cluster
from tests.places.place import Place

pytestmark = [
    pytest.mark.slow,
    pytest.mark.not_on("local", "s3", reason="it kills parts of a cluster"),
]

ROWS = 6
# A row takes a second of its core, so that a kill finds tasks that run.
SLOW = "aggregate(sequence(1L, 1500000L), 0L, (sum, n) -> sum + n % 7)"
FILES, CHANGES = "files", "changes"


class Load:
    """Rows that files or changes bring into a table, by processes with a driver of their own on one cluster."""

    def __init__(self, kind: str, place: Place, folder: Path) -> None:
        assert isinstance(place.compute, Cluster)
        self.kind, self.place, self.cluster = kind, place, place.compute
        self.folder, self.landing = folder, folder / "landing"
        self.landing.mkdir()
        self._made = 0

    @property
    def orders(self) -> dict[str, Any]:
        connection = self.place.connection(SHORT_SESSION)
        told = {"root": self.place.location(self.folder / "lake"), **connection, "name": "s.target", "tell": True}
        if self.kind == FILES:
            source = {"max_files_per_trigger": 4}
            select = f"select id, {SLOW} as n from @data"
            return told | {"landing": self.place.location(self.landing), "source": source, "select": select}
        return told | {"changes": {"unique_key": "id"}, "select": f"select id, {SLOW} + v as n from s.source"}

    def grow(self) -> None:
        """New rows to load; for changes also changed and deleted ones."""
        self._made += 1
        if self.kind == FILES:
            for number in range(self._made * ROWS, (self._made + 1) * ROWS):
                (self.landing / f"{number}.json").write_text(json.dumps({"id": number}))
        else:
            script = Path(__file__).with_name("cluster_source.py")
            orders = json.dumps(self.orders | {"turn": self._made, "rows": ROWS})
            subprocess.run([sys.executable, str(script), orders], check=True, timeout=300)

    def start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, CHILD, json.dumps(self.orders)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run_and(self, kill: Callable[[subprocess.Popen[str]], None], seconds: float) -> tuple[int, str]:
        """A run in which `kill` is called so many seconds after its first write began: its exit code and its errors."""
        process = self.start()
        assert process.stdout is not None
        told = iter(process.stdout.readline, "")
        alarm = threading.Timer(300, process.kill)
        alarm.start()
        try:
            if any(line.strip() == "step write" for line in told):
                time.sleep(seconds)
                kill(process)
            _, errors = process.communicate()
        finally:
            alarm.cancel()
        return process.returncode, errors

    def finish(self) -> None:
        """A run that nothing disturbs."""
        code, errors = self.run_and(lambda process: None, 0)
        assert code == 0, errors

    def rows(self) -> list[int]:
        options = self.place.storage_options or None
        table = self.place.location(self.folder / "lake" / "s" / "target")
        return sorted(row["id"] for row in delta_rows(table, options))

    def check(self) -> None:
        if self.kind == FILES:
            assert self.rows() == list(range(ROWS, (self._made + 1) * ROWS))
        else:
            options = self.place.storage_options or None
            found = {
                name: sorted((row["id"], row[column]) for row in delta_rows(self.place.location(table), options))
                for name, column in (("source", "v"), ("target", "n"))
                for table in [self.folder / "lake" / "s" / name]
            }
            slow = sum(n % 7 for n in range(1, 1_500_001))
            assert found["target"] == [(id, slow + v) for id, v in found["source"]]


@pytest.fixture(params=[FILES, CHANGES], scope="module")
def loaded(request: pytest.FixtureRequest, place: Place, tmp_path_factory: pytest.TempPathFactory) -> Load:
    """A table with its first rows: each driver takes half a minute to start, so the tests go on with one table."""
    load = Load(request.param, place, tmp_path_factory.mktemp(request.param))
    load.grow()
    load.finish()
    load.check()
    return load


@pytest.fixture
def load(loaded: Load) -> Iterator[Load]:
    """The same with new rows to load, and at the end the cluster is whole again."""
    loaded.grow()
    yield loaded
    while len(loaded.cluster.workers) < 2:
        loaded.cluster.start_worker()
    loaded.cluster.wait_for_workers(2)


def test_an_executor_is_killed(load: Load) -> None:
    """The run goes on with the next executor that the worker starts."""
    killed: list[int] = []

    def kill(process: subprocess.Popen[str]) -> None:
        killed.extend(load.cluster.executors()[:1])
        os.kill(killed[0], signal.SIGKILL)

    code, errors = load.run_and(kill, 0.7)
    assert killed
    assert code == 0, errors
    load.check()


def test_a_worker_is_killed_with_its_executor(load: Load) -> None:
    """The run goes on with the other worker."""

    def kill(process: subprocess.Popen[str]) -> None:
        load.cluster.kill_worker()

    code, errors = load.run_and(kill, 0.7)
    assert code == 0, errors
    load.check()


@pytest.mark.parametrize("seconds", [0.3, 1.5])
def test_the_driver_is_killed(load: Load, seconds: float) -> None:
    """Python and its JVM at once; the next run finds what is done, and does the rest."""

    def kill(process: subprocess.Popen[str]) -> None:
        os.killpg(process.pid, signal.SIGKILL)

    code, errors = load.run_and(kill, seconds)
    assert code == -signal.SIGKILL, errors
    found = load.rows()
    assert len(found) == len(set(found)), found
    load.finish()
    load.check()
