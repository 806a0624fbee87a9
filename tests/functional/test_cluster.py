"""Spark on a cluster: every kind of model, and what the executors must not need of the driver's machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import patch_microbatch_end_time, run_dbt, write_file

import penstock
from penstock.errors import PenstockError
from penstock.spark.session import stop
from penstock.spark.shared_disk import SharedDisks
from tests.conftest import SESSION
from tests.places.cluster import Cluster, command_line
from tests.places.place import Place

pytestmark = pytest.mark.not_on("local", "s3", reason="it is about a cluster")

PEOPLE = "id,name,team\n1,Ada,a\n2,Bob,b\n3,Cy,b\n"
MODELS = {
    "seen.sql": "select * from {{ ref('people') }} where id > 0",
    "counted.sql": "{{ config(materialized='table') }} select team, count(*) as people from {{ ref('seen') }} group by team",
    "merged.sql": "{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }} "
    "select id, upper(name) as name from {{ ref('seen') }}",
    "followed.sql": "{{ config(materialized='incremental', incremental_strategy='cdf_merge', unique_key='id') }} "
    "select id, concat(name, '!') as name from {{ ref('people') }} where team = 'b'",
    "landed.sql": "{{ config(materialized='incremental', source_roots=[var('landing')], max_files_per_trigger=2, "
    "safety_buffer_seconds=0) }} select id, source_file_uri from @data",
    "events.sql": "{{ config(materialized='table', event_time='at') }} "
    "select id, timestamp '2026-03-30 00:00:00' + make_interval(0, 0, 0, cast(id as int)) as at from range(4)",
    "windowed.sql": "{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', "
    "batch_size='day', begin='2026-03-30', days_per_batch=2) }} select id, at from {{ ref('events') }}",
    "shouted.py": """
import pandas as pd
from pyspark.sql.functions import pandas_udf, udf

def model(dbt, spark):
    dbt.config(materialized="table")
    shout = udf(lambda name: name.upper() + "!", "string")
    @pandas_udf("bigint")
    def double(id: pd.Series) -> pd.Series:
        return id * 2
    return dbt.ref("merged").select(double("id").alias("id"), shout("name").alias("name"))
""",
    "seeds.yml": "seeds: [{name: people, config: {change_data_feed: true, column_types: {id: bigint}}}]",
}
SNAPSHOT = """
{% snapshot kept %}
{{ config(unique_key='id', strategy='check', check_cols='all') }} select id, name from {{ ref('merged') }}
{% endsnapshot %}
"""


class TestEveryKindOfModel:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"people.csv": PEOPLE}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"kept.sql": SNAPSHOT}

    def rows(self, project: Any, model: str, columns: str = "*") -> list[tuple[Any, ...]]:
        found = project.run_sql(f"select {columns} from {project.test_schema}.{model}", fetch="all")
        return sorted(tuple(row) for row in found)

    def build(self, project: Any, place: Place, landing: Path) -> None:
        arguments = ["build", "--vars", json.dumps({"landing": place.location(landing)})]
        with patch_microbatch_end_time("2026-04-03 00:00:00"):
            assert len(run_dbt(arguments)) == 10

    def test_all_of_them_twice(self, project: Any, place: Place, tmp_path: Path) -> None:
        landing = tmp_path / "landing"
        landing.mkdir()
        for id in range(3):
            (landing / f"{id}.json").write_text(json.dumps({"id": id}))
        self.build(project, place, landing)
        assert project.adapter.lake.spark.sparkContext.master.startswith("spark://")
        assert self.rows(project, "counted") == [("a", 1), ("b", 2)]
        assert self.rows(project, "followed") == [(2, "Bob!"), (3, "Cy!")]
        assert self.rows(project, "shouted") == [(2, "ADA!"), (4, "BOB!"), (6, "CY!")]

        write_file(
            PEOPLE.replace("Bob", "Bea").replace("3,Cy,b\n", "4,Di,a\n"), project.project_root, "seeds", "people.csv"
        )
        (landing / "3.json").write_text(json.dumps({"id": 3}))
        self.build(project, place, landing)
        assert self.rows(project, "seen", "id, name") == [(1, "Ada"), (2, "Bea"), (4, "Di")]
        assert self.rows(project, "counted") == [("a", 2), ("b", 1)]
        assert self.rows(project, "merged") == [(1, "ADA"), (2, "BEA"), (3, "CY"), (4, "DI")]
        assert self.rows(project, "followed") == [(2, "Bea!")]
        assert self.rows(project, "landed", "id") == [(0,), (1,), (2,), (3,)]
        assert self.rows(project, "windowed", "id") == [(0,), (1,), (2,), (3,)]
        assert self.rows(project, "shouted") == [(2, "ADA!"), (4, "BEA!"), (6, "CY!"), (8, "DI!")]
        assert self.rows(project, "kept", "id, name, dbt_valid_to is null") == [
            (1, "ADA", True),
            (2, "BEA", True),
            (2, "BOB", False),
            (3, "CY", True),
            (4, "DI", True),
        ]


def test_an_executor_is_killed_between_two_statements(place: Place, tmp_path: Path) -> None:
    """Its work is done again by the next one, and no row is in twice."""
    assert isinstance(place.compute, Cluster)
    lake = penstock.connect(place.location(tmp_path / "lake"), **place.connection(SESSION))
    lake.sql("create table s.t as select id from range(0, 100, 1, 4)")
    os.kill(place.compute.executors()[0], 9)
    lake.sql("insert into s.t select id + 100 from s.t")
    assert lake.sql("select count(*), count(distinct id) from s.t").collect() == [(200, 200)]


@pytest.mark.local_disk("the lake is on a disk that executors do not see")
def test_a_disk_that_the_executors_do_not_see(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`/proc/self/cwd` is another folder in each process, as a disk of its own is on each machine."""
    spark = penstock.connect(str(tmp_path / "lake"), **place.connection(SESSION)).spark
    folder = Path("/proc/self/cwd", f"lake-{os.getpid()}")
    try:
        with pytest.raises(PenstockError, match="do not see the lake's folder of this machine") as error:
            SharedDisks().check(spark, str(folder))
        assert list(folder.iterdir()) == []
    finally:
        folder.rmdir()
    assert "`root: s3://…`" in str(error.value)
    shared = tmp_path / "shared"
    SharedDisks().check(spark, str(shared))
    assert list(shared.iterdir()) == []


CHILD = """
import json, sys
import penstock
from penstock.errors import from_spark
from penstock.spark.facts import facts
from penstock.spark.internals.executors import executor_count
from pyspark.sql.functions import udf

orders = json.loads(sys.argv[1])
lake = penstock.connect(orders["root"], **orders["connection"])
conf = lake.spark.conf
told = {key: conf.get(key) for key in orders["keys"]}
told["canary"] = lake.spark.sparkContext.getConf().get(orders["canary"])
told["executors"] = executor_count(lake.spark.sparkContext)
lake.sql("create table s.t as select id from range(4)")
told["rows"] = lake.sql("select count(*) from s.t").first()[0]
told["facts"] = [call.name for call in facts(lake.sql("select sum(id) from s.t")).aggregates]
try:
    lake.sql("select * from s.t").select(udf(lambda id: id + 1, "bigint")("id")).collect()
except Exception as error:
    told["error"] = str(from_spark(error))
folder = lake.spark._jvm.java.lang.System.getProperty("java.io.tmpdir")
told["scratch"] = lake.spark._jvm.org.apache.spark.util.Utils.getConfiguredLocalDirs(lake.spark._jsc.sc().conf())[0]
told["temporary"] = folder
print(json.dumps(told))
"""
CANARY, SECRET = "spark.hadoop.fs.s3a.secret.key", "canary-9f3c17"
SHUFFLE, STATE = "spark.sql.shuffle.partitions", "spark.databricks.delta.snapshotPartitions"


@pytest.mark.parametrize(
    ("python", "said"),
    [("/no/such/python", "An executor has no Python at /no/such/python: "), ("other", "The executors run Python ")],
)
def test_a_user_of_a_cluster(place: Place, tmp_path: Path, python: str, said: str) -> None:
    """Partitions by the cores, secrets on no command line, and executors whose Python is another one."""
    assert isinstance(place.compute, Cluster)
    if python == "other":
        python = other_python()
    session = place.session({"memory": "1g", "spark_config": {}})
    session["spark_config"] |= {CANARY: SECRET, "spark.pyspark.python": python}
    orders = {
        "root": place.location(tmp_path / "lake"),
        "connection": {**place.connection({}), "session": session},
        "keys": [SHUFFLE, STATE],
        "canary": CANARY,
    }
    with (tmp_path / "out").open("w") as out, (tmp_path / "err").open("w") as err:
        stop()  # this process's Spark has the cores
        child = subprocess.Popen([sys.executable, "-c", CHILD, json.dumps(orders)], stdout=out, stderr=err)
        shown = watch_command_lines(child)
    assert child.returncode == 0, (tmp_path / "err").read_text()
    told = json.loads((tmp_path / "out").read_text().splitlines()[-1])
    assert (told["rows"], told["executors"], told["canary"], told["facts"]) == (4, 2, SECRET, ["sum"])
    assert (told[SHUFFLE], told[STATE]) == ("4", "2")
    assert told["error"].startswith(said), told["error"]
    assert "`spark.pyspark.python`" in told["error"]
    assert "PYSPARK_PYTHON" in told["error"]
    assert Path(told["temporary"]).name.startswith(f"penstock-{child.pid}-")
    assert told["scratch"].startswith(told["temporary"])
    assert not Path(told["temporary"]).exists()
    assert any("CoarseGrainedExecutorBackend" in line for line in shown)
    # The orders of the child are this test's own.
    assert not [line for line in shown if SECRET in line and CHILD not in line]


def watch_command_lines(child: subprocess.Popen[str]) -> set[str]:
    """The command lines of all processes of the machine while this one lives."""
    shown: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.05):
            for process in os.listdir("/proc"):
                if process.isdigit():
                    shown.add("\0".join(command_line(int(process))))

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        child.wait(300)
    finally:
        ended.set()
        watching.join()
    return shown


def other_python() -> str:
    """A Python of another minor version; the test is skipped where there is none."""
    asked = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    ours = ".".join(map(str, sys.version_info[:2]))
    found = [*Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.*/bin/python")]
    found += [path for folder in os.get_exec_path() for path in Path(folder).glob("python3.1?")]
    for path in found:
        version = subprocess.run([path, "-c", asked], capture_output=True, text=True, timeout=60)
        if version.returncode == 0 and version.stdout.strip() in {"3.10", "3.11", "3.12", "3.13"} - {ours}:
            return str(path)
    pytest.skip("there is one version of Python here")
