"""A lake on HDFS, by Hadoop's mini-cluster: `make test-hdfs`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import penstock
from penstock.errors import PenstockError
from penstock.sql.names import Name
from penstock.storage import Storage
from tests.conftest import SESSION
from tests.stores import checks, minicluster

EVENTS = Name("bronze", "events")


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with minicluster.serve(tmp_path_factory.mktemp("hdfs")) as uri:
        yield uri


def test_objects(hdfs: str) -> None:
    checks.objects(hdfs, {})


def test_put_if_absent_has_one_winner(hdfs: str) -> None:
    checks.put_if_absent(hdfs, {}, rounds=10)


def test_relations(hdfs: str) -> None:
    checks.relations(hdfs, {})


def test_no_commit_of_delta_rs_is_lost(hdfs: str) -> None:
    """Spark's commits and Delta's own log store on HDFS rename too; these are those of delta-rs."""
    location, writers, commits = f"{hdfs}/races/table", 4, 4
    write_deltalake(location, pa.table({"id": [-1]}))

    def append(writer: int) -> None:
        for number in range(commits):
            write_deltalake(location, pa.table({"id": [writer * commits + number]}), mode="append")

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(append, range(writers)))
    table = DeltaTable(location)
    assert table.version() == writers * commits
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == list(range(-1, writers * commits))


def test_spark_loads_files_once_and_a_run_without_new_files_starts_no_jvm(hdfs: str) -> None:
    lake = penstock.connect(f"{hdfs}/ingest", session=SESSION)

    def ingest() -> int:
        given = {"roots": [f"{hdfs}/landing"], "safety_buffer_seconds": 0, "max_files_per_trigger": 3}
        return lake.ingest(str(EVENTS), select="select id, day from @data", **given).files

    checks.land(hdfs, {}, range(5))
    assert ingest() == 5
    assert checks.ids(lake, EVENTS) == Counter(range(5))
    checks.land(hdfs, {}, range(5, 7))
    assert ingest() == 2
    assert ingest() == 0
    assert checks.ids(lake, EVENTS) == Counter(range(7))
    lake.sql("create table silver.sums as select day, sum(id) as total from bronze.events group by day")
    lake.sql("merge into silver.sums t using (select 0 as day) s on t.day = s.day when matched then delete")
    assert [tuple(row) for row in lake.table("silver.sums").collect()] == [(1, 1 + 3 + 5)]
    told = json.dumps({"root": f"{hdfs}/ingest", "landing": f"{hdfs}/landing"})
    code = """
import json, sys, penstock
told = json.loads(sys.argv[1])
lake = penstock.connect(told["root"])
report = lake.ingest("bronze.events", select="select id, day from @data", roots=[told["landing"]], safety_buffer_seconds=0)
assert report.nothing_new and "pyspark" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code, told], check=True, timeout=120)


def test_a_folder_of_another_user_is_an_error_that_says_so(hdfs: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Storage(f"{hdfs}/mine").write("a", b"1")
    monkeypatch.setenv("HADOOP_USER_NAME", "somebody-else")
    with pytest.raises(PenstockError, match=r"HDFS refuses this: Permission denied.*HADOOP_USER_NAME"):
        Storage(f"{hdfs}/mine").write("b", b"1")


def test_a_name_node_that_is_down() -> None:
    started = time.monotonic()
    with pytest.raises(PenstockError, match="Nothing listens"):
        Storage("hdfs://127.0.0.1:1/lake").head("a")
    assert time.monotonic() - started < 60


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    with pytest.raises(PenstockError, match=r"pip install 'dbt-penstock\[hdfs\]'"):
        Storage("hdfs://name/lake").head("a")
