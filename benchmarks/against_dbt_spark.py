"""The same dbt project here and on dbt-spark's session method, each run a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks.report import Measurement, show
from penstock.spark.startup.jars import delta_jars

PEER = "dbt-spark, session method"
_ROUNDS = 3
PROJECT = """
name: bench
version: "1.0"
profile: bench
models: {bench: {+file_format: delta}}
"""
OURS = """
bench:
  target: dev
  outputs:
    dev: {type: penstock, root: ./lake, schema: bench, threads: 4}
"""
_THEIRS = """
bench:
  target: dev
  outputs:
    dev:
      type: spark
      method: session
      host: none
      schema: bench
      threads: 4
      server_side_parameters:
        spark.jars: "%s"
        spark.driver.memory: 4g
        spark.sql.extensions: io.delta.sql.DeltaSparkSessionExtension
        spark.sql.catalog.spark_catalog: org.apache.spark.sql.delta.catalog.DeltaCatalog
"""
_MERGED = """
{{ config(materialized='incremental', incremental_strategy='merge', unique_key='id') }}
{% if is_incremental() %}
select id * 100 as id, concat('new ', id) as name, id % 7 as k from range(10000)
{% else %}
select id, concat('old ', id) as name, id % 7 as k from range(1000000)
{% endif %}
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        first, tiny, peer = [], [], peer_profile()
        for turn in range(_ROUNDS):
            ours = _project(Path(folder) / f"ours_{turn}", OURS)
            theirs = _project(Path(folder) / f"theirs_{turn}", peer)
            first.append(_compare("the first model of a cold start", ours, theirs, ["-s", "first"]))
            tiny.append(_compare("50 tiny table models", ours, theirs, ["-s", "tiny_*"], target=0.4))
        measurements = [
            _medians(first),
            _medians(tiny),
            _compare("the same 50 again, each replaced", ours, theirs, ["-s", "tiny_*"]),
            _unchanged(ours, theirs),
            _merge(ours, theirs),
        ]
    show("dbt-spark", "The same dbt project on dbt-spark", measurements)


def _medians(turns: list[Measurement]) -> Measurement:
    """Of turns with a new project each: one run alone differs from the next by a quarter."""
    ours, theirs = median(turn.ours for turn in turns), median(turn.theirs for turn in turns)
    return replace(turns[0], ours=ours, theirs=theirs, note=f"medians of {len(turns)}")


def _compare(work: str, ours: Path, theirs: Path, select: list[str], target: float | None = None) -> Measurement:
    return Measurement(work, run(ours, *select), PEER, run(theirs, *select), target)


def _unchanged(ours: Path, theirs: Path) -> Measurement:
    """Views that are as they were: nothing to do, and no JVM to start for it."""
    select = ["-s", "view_*"]
    for project in (ours, theirs):
        run(project, *select)
    return _compare("`dbt run` of 20 views with nothing to do", ours, theirs, select, target=0.2)


def _merge(ours: Path, theirs: Path) -> Measurement:
    for project in (ours, theirs):
        run(project, "-s", "merged")
    return _compare("merge of 1 % into 1 M rows", ours, theirs, ["-s", "merged"])


def run(project: Path, *select: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "run", *select, "--profiles-dir", "."],
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"},
    )
    took = time.perf_counter() - began
    if done.returncode != 0:
        raise SystemExit(f"{project.name} {select} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    print(f"  {project.name:6} dbt run {' '.join(select):20} {took:6.1f} s", flush=True)
    return took


def _project(folder: Path, profile: str) -> Path:
    models = folder / "models"
    models.mkdir(parents=True)
    (folder / "dbt_project.yml").write_text(PROJECT)
    (folder / "profiles.yml").write_text(profile)
    for name, number in [("first", 0), *((f"tiny_{number:02}", number) for number in range(50))]:
        (models / f"{name}.sql").write_text(
            f"{{{{ config(materialized='table') }}}} select id, {number} as n from range(10)"
        )
    for number in range(20):
        (models / f"view_{number:02}.sql").write_text(
            f"{{{{ config(materialized='view') }}}} select * from {{{{ ref('tiny_{number:02}') }}}}"
        )
    (models / "merged.sql").write_text(_MERGED)
    return folder


def peer_profile() -> str:
    import shutil

    import pyspark

    jars = delta_jars(str(Path(pyspark.__file__).parent), shutil.which("java") or "java")
    return _THEIRS % ",".join(jars)


if __name__ == "__main__":
    main()
