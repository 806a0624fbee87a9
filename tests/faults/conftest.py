from __future__ import annotations

import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from deltalake import DeltaTable

from penstock.api import Lake, connect
from tests.conftest import SESSION, SHORT_SESSION

CHILD = str(Path(__file__).with_name("child.py"))
KILLS = int(os.environ.get("PENSTOCK_KILLS", "20"))
"""How many times a process is killed in all; `make chaos` sets 200 or more."""


class World:
    """A landing folder whose files are known, a lake, and processes that bring the one into the other."""

    def __init__(self, folder: Path, gateway: tuple[int, str]) -> None:
        self.landing = folder / "landing"
        self.landing.mkdir(parents=True)
        self.root = folder / "lake"
        # The processes share a JVM and its catalog, but not what they know of it.
        self.name = f"bronze_{uuid.uuid4().hex[:8]}.events"
        self.table = self.root.joinpath(*self.name.split("."))
        self.gateway = gateway
        self.source = {"max_files_per_trigger": 2, "source_compaction_interval": 2, "source_retention_files": 3}
        self.expected: collections.Counter[int] = collections.Counter()
        self._made = 0

    def land(self, files: int, rows: int = 2) -> None:
        for _ in range(files):
            ids = range(self._made * 100, self._made * 100 + rows)
            text = "".join(json.dumps({"id": id}) + "\n" for id in ids)
            (self.landing / f"file {self._made:05}.json").write_text(text)
            self.expected.update(ids)
            self._made += 1

    def start(self, *, own_jvm: bool = False, **orders: object) -> subprocess.Popen[str]:
        told = {
            "root": str(self.root),
            "session": SHORT_SESSION,
            "name": self.name,
            "landing": str(self.landing),
            "source": self.source,
            "gateway": None if own_jvm else self.gateway,
            **orders,
        }
        return subprocess.Popen(
            [sys.executable, CHILD, json.dumps(told)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, **orders: object) -> subprocess.CompletedProcess[str]:
        process = self.start(**orders)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def killed(self, **orders: object) -> None:
        done = self.run(**orders)
        assert done.returncode == -signal.SIGKILL, done.stderr

    def finish(self, **keys: object) -> None:
        """An ordinary run, to the end."""
        self.lake.ingest(self.name, roots=[str(self.landing)], safety_buffer_seconds=0, **self.source, **keys)

    @property
    def lake(self) -> Lake:
        return connect(str(self.root), session=SESSION)

    def rows(self) -> collections.Counter[int]:
        if not any((self.table / "_delta_log").glob("*.json")):
            return collections.Counter()
        return collections.Counter(DeltaTable(str(self.table)).to_pyarrow_table()["id"].to_pylist())

    def check_so_far(self) -> None:
        """Nothing twice, nothing that is not in the files, no file half in."""
        rows = self.rows()
        assert all(times == 1 for times in rows.values()), [id for id, times in rows.items() if times > 1]
        assert rows.keys() <= self.expected.keys()

    def check(self) -> None:
        assert self.rows() == self.expected


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """The port and secret of this process's JVM."""
    connect(str(tmp_path_factory.mktemp("jvm")), session=SESSION).spark.sql("select 1").collect()
    from pyspark import SparkContext

    parameters = SparkContext._gateway.gateway_parameters
    return parameters.port, parameters.auth_token


@pytest.fixture
def world(tmp_path: Path, gateway: tuple[int, str]) -> World:
    return World(tmp_path, gateway)


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    seed = int(os.environ.get("PENSTOCK_SEED", time.time_ns() % 1_000_000))
    print(f"PENSTOCK_SEED={seed}")
    return random.Random(seed)


@pytest.fixture(scope="session")
def kills() -> int:
    return KILLS
