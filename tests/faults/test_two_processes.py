"""Real processes on one lake at the same time."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

import penstock
from tests.conftest import SESSION, SHORT_SESSION

# Spark is started first, so that all of them run the model at the same moment.
CHILD = """
import json, sys, time
from pathlib import Path
from dbt.cli.main import dbtRunner
import penstock
project, me, others = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(",")
penstock.connect(str(project / "lake"), session=json.loads(sys.argv[4])).spark
(project / f"ready-{me}").touch()
while not all((project / f"ready-{other}").exists() for other in others):
    time.sleep(0.05)
done = dbtRunner().invoke(["run", "--project-dir", str(project), "--profiles-dir", str(project),
                           "--target-path", f"target-{me}", "--log-path", f"logs-{me}"])
sys.exit(0 if done.success else 1)
"""
PROFILE = """
shop:
  target: dev
  outputs:
    dev: {type: penstock, root: ./lake, schema: main, threads: 2, session: {memory: 1g}}
"""
# Each row takes its time, so that both processes have read the table before either has written.
SLOW_APPEND = """
{{ config(materialized='incremental', incremental_strategy='append') }}
select id from {{ source('main', 'src') }}
where coalesce(java_method('java.lang.Thread', 'sleep', 2000L), '') <> 'awake'
{% if is_incremental() %} and id not in (select id from {{ this }}) {% endif %}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "models").mkdir()
    (tmp_path / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\nprofile: shop\n")
    (tmp_path / "profiles.yml").write_text(PROFILE)
    (tmp_path / "models" / "sources.yml").write_text("sources: [{name: main, schema: main, tables: [{name: src}]}]\n")
    return tmp_path


def start(project: Path, me: str, others: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(project), me, others, json.dumps(SHORT_SESSION)],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_an_append_that_reads_itself_never_doubles(project: Path) -> None:
    lake = penstock.connect(str(project / "lake"), session=SESSION)
    lake.sql("create table main.src as select 1L as id")
    lake.sql("create table main.sums as select 0L as id")
    (project / "models" / "sums.sql").write_text(SLOW_APPEND)
    children = [start(project, me, "a,b") for me in ("a", "b")]
    said = [child.communicate(timeout=300)[0] for child in children]
    assert [child.returncode for child in children] == [0, 0], said
    assert sorted(row.id for row in lake.table("main.sums").collect()) == [0, 1]


def test_what_one_process_makes_the_next_one_reads(project: Path) -> None:
    lake = penstock.connect(str(project / "lake"), session=SESSION)
    lake.sql("create table main.src as select id from range(3)")
    lake.sql("create view main.v as select id * 2 as double from main.src")
    (project / "models" / "over.sql").write_text("{{ config(materialized='table') }} select double from main.v")
    (project / "models" / "shown.sql").write_text("select * from {{ ref('over') }}")
    child = start(project, "a", "a")
    said = child.communicate(timeout=300)[0]
    assert child.returncode == 0, said
    assert sorted(row.double for row in lake.table("main.shown").collect()) == [0, 2, 4]
    # Its JVM is ended without ceremony: that may neither be heard nor leave anything.
    assert "Traceback" not in said
    assert not list(Path(tempfile.gettempdir()).glob(f"penstock-{child.pid}-*"))
    litter = {path.name for path in project.iterdir()} - {
        "models",
        "dbt_project.yml",
        "profiles.yml",
        "lake",
        "target-a",
        "logs-a",
        "ready-a",
        ".user.yml",
    }
    assert not litter


def test_an_interrupt_ends_the_job_and_the_process(project: Path) -> None:
    (project / "models" / "endless.sql").write_text(
        "{{ config(materialized='table') }}\n"
        "select id from range(100) where coalesce(java_method('java.lang.Thread', 'sleep', 600000L), '') <> 'awake'"
    )
    child = start(project, "a", "a")
    try:
        deadline = time.monotonic() + 120
        log = project / "logs-a" / "dbt.log"
        while "create or replace table" not in (log.read_text() if log.exists() else ""):
            assert time.monotonic() < deadline
            assert child.poll() is None
            time.sleep(0.2)
        time.sleep(2)
        jvms = [pid for pid in _children(child.pid) if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()]
        assert jvms
        child.send_signal(signal.SIGINT)
        began = time.monotonic()
        child.wait(timeout=60)
        while any(map(_is_running, jvms)) and time.monotonic() - began < 20:
            time.sleep(0.2)
        assert time.monotonic() - began < 20
    finally:
        if child.poll() is None:
            child.kill()


def _children(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(child) for child in (task / "children").read_text().split()]
    return found


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
