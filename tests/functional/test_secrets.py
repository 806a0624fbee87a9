"""A canary: a marker in every secret that a project can hold, and a look at all that a run of dbt leaves or shows."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from penstock.spark.startup.cache import JARS, cache_folder
from tests.conftest import SHORT_SESSION
from tests.s3_server import S3, serve

RUN = """
import sys
from dbt.cli.main import dbtRunner
result = dbtRunner().invoke([*sys.argv[1:], "--log-level-file", "debug"])
sys.exit(0 if result.exception is None else 3)
"""
MODELS = {
    "bronze.sql": (
        "{{ config(materialized='incremental', source_roots=[var('landing')], safety_buffer_seconds=0) }}\n"
        "select * from @data"
    ),
    "silver.sql": (
        "{{ config(materialized='incremental', incremental_strategy='cdf_merge', unique_key='id') }}\n"
        "select id, name from {{ ref('bronze') }}"
    ),
    "counted.py": (
        "def model(dbt, session):\n"
        "    rows = session.sparkContext.parallelize([1, 2, 3], 1).map(lambda n: (n, str(n))).collect()\n"
        "    return session.createDataFrame(rows, 'id int, name string')"
    ),
    "told.py": (
        "def model(dbt, session):\n"
        "    import os\n"
        "    try:\n"
        "        raise OSError('at s3://me:' + os.environ['AWS_SECRET_ACCESS_KEY'] + '@bucket')\n"
        "    except OSError as error:\n"
        "        raise ValueError('with ' + os.environ['AWS_SECRET_ACCESS_KEY']) from error\n"
        "    return session.range(1)"
    ),
    "denied.sql": (
        "{{ config(materialized='incremental', source_roots=['s3://bucket/landing']) }}\nselect * from @data"
    ),
    "unknown.sql": "select * from {{ source('raw', 'elsewhere') }}",
    "sources.yml": (
        "sources: [{name: raw, tables: [{name: elsewhere, config: "
        "{meta: {}, location: 's3://bucket/elsewhere', format: csv}}]}]"
    ),
    "dbt_models.yml": "models: [{name: bronze, config: {table_properties: {delta.enableChangeDataFeed: 'true'}}}]",
}
ERRORS = {"model.canary.told", "model.canary.denied", "model.canary.unknown"}


class Project:
    """A project, a lake, a cache and a temporary folder of its own, with one marker in every secret."""

    def __init__(self, folder: Path, store: S3) -> None:
        self.marker = f"MaRk{uuid.uuid4().hex}"
        self.folder, self.lake, self.cache = folder / "project", folder / "lake", folder / "cache"
        self.temporary, landing = folder / "tmp", folder / "landing"
        for made in (self.folder / "models", self.temporary, landing):
            made.mkdir(parents=True)
        self.cache.mkdir(mode=0o700)
        if (cache_folder() / JARS).is_dir():
            shutil.copytree(cache_folder() / JARS, self.cache / JARS)
        for name, text in MODELS.items():
            (self.folder / "models" / name).write_text(text)
        (landing / "1.json").write_text('{"id": 1, "name": "a"}\n{"id": 2, "name": "b"}\n')
        project: dict[str, Any] = {"name": "canary", "profile": "canary", "vars": {"landing": str(landing)}}
        (self.folder / "dbt_project.yml").write_text(json.dumps(project))
        self.target: dict[str, Any] = {
            "type": "penstock",
            "root": str(self.lake),
            "schema": "s",
            "storage_options": {
                **store.options,
                "access_key_id": f"{self.marker}-id",
                "secret_access_key": "{{ env_var('CANARY_KEY') }}",
                "session_token": f"{self.marker}/+=",
                "azure_storage_account_key": f"{self.marker}==",
                "timeout": 30,
                "allow_http": True,
            },
            "session": {
                **SHORT_SESSION,
                "memory": "1g",
                "repositories": [{"url": "http://127.0.0.1:1/maven", "user": "me", "password": f"{self.marker}-maven"}],
                "spark_config": {
                    **SHORT_SESSION["spark_config"],
                    "spark.hadoop.fs.s3a.secret.key": f"{self.marker}-spark",
                    "spark.hadoop.fs.azure.account.key.a.dfs.core.windows.net": f"{self.marker}-azure",
                    "spark.driver.extraJavaOptions": (
                        f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djavax.net.ssl.trustStorePassword={self.marker}-java"
                    ),
                },
            },
        }
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PYSPARK", "SPARK"))},
            "AWS_SECRET_ACCESS_KEY": f"{self.marker}-environment",
            "CANARY_KEY": f"{self.marker}-key",
            "PENSTOCK_CACHE": str(self.cache),
            "TMPDIR": str(self.temporary),
            "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        }

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        # Where dbt looks for them by its own rules, and apart from what is searched.
        profiles = self.folder.parent / "profiles"
        profiles.mkdir(exist_ok=True)
        content = {"canary": {"target": "dev", "outputs": {"dev": self.target}}}
        (profiles / "profiles.yml").write_text(json.dumps(content))
        command = [sys.executable, "-c", RUN, *arguments, "--profiles-dir", str(profiles)]
        environment = {**self.environment, **environment}
        return subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)

    def shown_in(self, done: subprocess.CompletedProcess[str], *, but: str = "") -> list[str]:
        """Where the marker is: in what was printed, or in a file that was left."""
        found = ["output"] if self.marker in done.stdout + done.stderr else []
        for place in (self.folder, self.lake, self.cache, self.temporary):
            found += [str(path) for path in place.rglob("*") if path.is_file() and self._is_in(path)]
        return [place for place in found if not (but and Path(place).name == but)]

    def _is_in(self, path: Path) -> bool:
        if not path.stat().st_size:
            return False
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return content.find(self.marker.encode()) >= 0


@pytest.fixture
def canary(tmp_path: Path) -> Iterator[Project]:
    with serve() as store:
        store.put("elsewhere/a.csv", b"1\n")
        store.fail("LIST", status=403, times=1000)
        yield Project(tmp_path, store)


@contextmanager
def command_lines(marker: str, jvm: str) -> Iterator[None]:
    """No process that runs until the block ends, a JVM of this class among them, has the marker on its command line."""
    found: set[str] = set()
    seen: set[str] = set()
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for process in Path("/proc").iterdir():
                if process.name.isdigit():
                    try:
                        line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    except OSError:
                        continue
                    if marker in line:
                        found.add(line)
                    if jvm in line:
                        seen.add(line)
            over.wait(0.005)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert found == set()
    assert seen, "no such JVM was looked at"


def results(project: Project) -> dict[str, str]:
    told = json.loads((project.folder / "target" / "run_results.json").read_text())
    return {result["unique_id"]: result["status"] for result in told["results"]}


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks at processes in /proc")
def test_no_secret_is_shown_or_left(canary: Project) -> None:
    """Once by Spark's script, with settings in PYSPARK_SUBMIT_ARGS too, and once by the command that is kept."""
    theirs = f"--conf spark.hadoop.fs.s3a.session.token={canary.marker}-submit pyspark-shell"
    with command_lines(canary.marker, "org.apache.spark.deploy.SparkSubmit"):
        done = canary.run("run", PYSPARK_SUBMIT_ARGS=theirs)
    statuses = results(canary)
    assert {model for model, status in statuses.items() if status == "error"} == ERRORS, done.stdout
    assert len(statuses) == len(ERRORS) + 3
    assert canary.shown_in(done) == []
    assert "Python model failed" in done.stdout
    # How the JVM starts is kept by a first start without options of the user's own.
    options = canary.target["session"]["spark_config"].pop("spark.driver.extraJavaOptions")
    assert canary.run("run", "--select", "counted").returncode == 0
    canary.target["session"]["spark_config"]["spark.driver.extraJavaOptions"] = options
    # In JSON, dbt's log has the tracebacks of errors.
    with command_lines(canary.marker, "org.apache.spark.api.python.PythonGatewayServer"):
        done = canary.run("run", "--select", "counted", "told", "denied", "unknown", "--log-format-file", "json")
    assert {model for model, status in results(canary).items() if status == "error"} == ERRORS, done.stdout
    assert canary.shown_in(done) == []
    assert "Traceback" in (canary.folder / "logs" / "dbt.log").read_text()


@pytest.mark.parametrize("key", ["root", "repositories", "jars"])
def test_credentials_in_the_profile_are_refused(canary: Project, key: str) -> None:
    uri = f"https://me:{canary.marker}@example.com/a"
    (canary.target if key == "root" else canary.target["session"])[key] = uri if key == "root" else [uri]
    done = canary.run("debug")
    assert "holds credentials" in done.stdout
    assert canary.shown_in(done) == []


@pytest.mark.parametrize("key", ["location", "source_roots", "source_path"])
def test_credentials_in_a_model_are_refused(canary: Project, key: str) -> None:
    """The file with the model, and dbt's own files of the project, say what the user wrote; nothing else does."""
    uri = f"s3://me:{canary.marker}@bucket/%Y/a"
    window = "incremental_strategy='microbatch', event_time='t', begin='2026-01-01', batch_size='day', "
    options = window if key == "source_path" else ""
    text = f"{{{{ config(materialized='incremental', {options}{key}='{uri}') }}}}\nselect 1 as id, current_date() as t"
    (canary.folder / "models" / "wrong.sql").write_text(text + (" from @data" if key != "location" else ""))
    done = canary.run("run", "--select", "wrong", "--no-partial-parse")
    assert "holds credentials" in done.stdout
    shown = {Path(place).name for place in canary.shown_in(done)}
    assert shown <= {"wrong.sql", "manifest.json", "partial_parse.msgpack", "graph.gpickle"}, done.stdout
