"""Two Spark drivers, and delta-rs beside them, on one table on S3: every commit that was acknowledged is kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import penstock
from tests.conftest import SESSION, SHORT_SESSION, delta_rows
from tests.places.s3 import S3

ROUNDS = int(os.environ.get("PENSTOCK_ROUNDS", "1"))
COMMITS = int(os.environ.get("PENSTOCK_COMMITS", "12"))
"""How many commits each writer makes in a round."""
SECONDS = 600
CHILD = """
import json, sys, time
from pathlib import Path
import penstock
root, options, session, first, count, folder = sys.argv[1], *map(json.loads, sys.argv[2:6]), Path(sys.argv[6])
lake = penstock.connect(root, session=session, storage_options=options)
lake.sql("select * from s.t").collect()
(folder / f"ready-{first}").touch()
while not (folder / "go").exists():
    time.sleep(0.01)
for number in range(first, first + count):
    lake.sql(f"insert into s.t values ({number})")
    print(number, flush=True)
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[S3, Path]]:
    folder = tmp_path_factory.mktemp("store")
    with S3.open(folder) as store:
        yield store, folder


@pytest.mark.parametrize("with_delta_rs", [False, True], ids=["two drivers", "two drivers and delta-rs"])
@pytest.mark.parametrize("number", range(ROUNDS))
def test_every_acknowledged_commit_is_kept(store: tuple[S3, Path], number: int, with_delta_rs: bool) -> None:
    served, base = store
    folder = base / f"lake-{number}-{with_delta_rs}"
    folder.mkdir()
    root, options = served.location(folder), served.storage_options
    penstock.connect(root, session=SESSION, storage_options=options).sql("create table s.t as select 0 as id")
    given = [root, json.dumps(options), json.dumps({**SHORT_SESSION, "memory": "1g"})]
    drivers = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, *given, str(first), str(COMMITS), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for first in (1000, 2000)
    ]
    _wait_for(folder, drivers)
    acknowledged = [0]
    (folder / "go").touch()
    if with_delta_rs:
        for number in range(3000, 3000 + COMMITS):
            rows = pa.table({"id": pa.array([number], pa.int32())})
            write_deltalake(f"{root}/s/t", rows, mode="append", storage_options=options)
            acknowledged.append(number)
    for driver in drivers:
        said, errors = driver.communicate(timeout=SECONDS)
        acknowledged += map(int, said.split())
        assert driver.returncode == 0, errors[-2000:]
    have = Counter(row["id"] for row in delta_rows(folder / "s" / "t"))
    assert have == Counter(acknowledged)
    assert len(acknowledged) == 1 + COMMITS * (3 if with_delta_rs else 2)
    assert DeltaTable(str(folder / "s" / "t")).version() == len(acknowledged) - 1


def _wait_for(folder: Path, drivers: list[subprocess.Popen[str]]) -> None:
    until = time.monotonic() + SECONDS
    while len(list(folder.glob("ready-*"))) < len(drivers):
        for driver in drivers:
            assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
