"""The signature: no JVM unless a statement needs Spark. A `java` that only counts stands in for the real one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt

WINDOWS = """
{%% set begin = modules.datetime.date.today() - modules.datetime.timedelta(days=2) %%}
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
          begin=begin | string, %s) }}
select id, at from {{ ref('events') }}
"""
CHILD = """
import json, sys
from dbt.cli.main import dbtRunner
results = {}
for command in json.loads(sys.argv[1]):
    results[" ".join(command)] = bool(dbtRunner().invoke([*command, "--quiet"]).success)
print(json.dumps(results))
"""


class TestNoJvm:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "people.csv": "id,name\n1,Ada\n2,Grace\n",
            "followed.csv": "id,name\n1,Ada\n2,Grace\n",
            "seeds.yml": "seeds: [{name: followed, config: {change_data_feed: true}}]",
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "staged.sql": "select id, upper(name) as name from {{ ref('people') }}",
            "over.sql": "select * from {{ ref('staged') }} where id > 0",
            "built.sql": "{{ config(materialized='table') }} select * from {{ ref('over') }}",
            "landed.sql": """
{{ config(materialized='incremental', source_roots=['landing'], safety_buffer_seconds=0) }}
select id, name from @data
""",
            "changed.sql": """
{{ config(materialized='incremental', incremental_strategy='cdf_merge', unique_key='id') }}
select id, upper(name) as name from {{ ref('followed') }}
""",
            "events.sql": """
{{ config(materialized='table', event_time='at') }}
select id, timestamp(date_sub(current_date(), cast(id as int))) as at from range(3)
""",
            "added.sql": WINDOWS % "delete_before_insert=false",
            "dated.sql": WINDOWS.replace("{{ ref('events') }}", "@data")
            % "source_path='dated/%Y/%m/%d/*.json', safety_buffer_seconds=0",
            "sources.yml": """
sources:
  - name: lake
    schema: "{{ target.schema }}"
    config: {freshness: {warn_after: {count: 1, period: day}}}
    tables: [{name: people}]
models:
  - name: over
    description: People over zero
    config: {persist_docs: {relation: true, columns: true}}
    columns: [{name: id, description: the key}]
""",
        }

    @pytest.fixture(scope="class")
    def java(self, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
        """A `java` that writes a line each time it is started, and fails."""
        home = tmp_path_factory.mktemp("java")
        count = home / "count"
        (home / "bin").mkdir()
        (home / "bin" / "java").write_text(f"#!/bin/sh\necho started >> {count}\nexit 1\n")
        (home / "bin" / "java").chmod(0o755)
        path = f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return count, {**os.environ, "JAVA_HOME": str(home), "PATH": path}

    def run(self, project, java: tuple[Path, dict[str, str]], *commands: list[str]) -> tuple[dict[str, bool], int]:
        count, environment = java
        count.unlink(missing_ok=True)
        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        given = json.dumps([[*command, *where] for command in commands])
        done = subprocess.run(
            [sys.executable, "-c", CHILD, given],
            env=environment,
            cwd=project.project_root,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        print(done.stdout)
        results = json.loads(done.stdout.splitlines()[-1])
        starts = len(count.read_text().splitlines()) if count.exists() else 0
        return {key.split(" --")[0]: value for key, value in results.items()}, starts

    def test_none_is_started_until_a_statement_needs_it(self, project, java) -> None:
        landing = Path(project.project_root) / "landing"
        landing.mkdir()
        (landing / "one.json").write_text('{"id": 1, "name": "Ada"}\n')
        # Windows that are in, and windows that have no files.
        begin = datetime.now(timezone.utc) - timedelta(days=2)
        dated = Path(project.project_root) / begin.strftime("dated/%Y/%m/%d/one.json")
        dated.parent.mkdir(parents=True)
        dated.write_text(json.dumps({"id": 1, "at": begin.strftime("%Y-%m-%d 12:00:00")}))
        run_dbt(["build"])
        results, starts = self.run(
            project,
            java,
            ["parse", "--no-partial-parse"],
            ["ls"],
            ["compile"],
            ["docs", "generate"],
            ["source", "freshness"],
            ["debug"],
            ["run", "-s", "staged", "over", "landed", "changed", "added", "dated"],
        )
        assert all(results.values()), results
        assert starts == 0

        catalog = json.loads((Path(project.project_root) / "target" / "catalog.json").read_text())
        people = catalog["nodes"]["seed.test.people"]
        assert people["stats"]["rows"]["value"] == 2
        assert list(people["columns"]) == ["id", "name"]
        over = catalog["nodes"]["model.test.over"]
        assert over["metadata"]["comment"] == "People over zero"
        assert over["columns"]["id"]["comment"] == "the key"

    def test_none_for_a_window_without_row_changes(self, project, java) -> None:
        run_dbt(["build", "-s", "+changed"])
        project.run_sql(f"optimize {project.test_schema}.followed")
        project.run_sql(f"alter table {project.test_schema}.followed set tblproperties ('note' = 'x')")
        before = project.adapter.lake.log_of(f"{project.test_schema}.changed").version
        results, starts = self.run(project, java, ["run", "-s", "changed"])
        assert (results, starts) == ({"run -s changed": True}, 0)
        assert project.adapter.lake.log_of(f"{project.test_schema}.changed").version == before + 1

    def test_one_is_started_where_a_statement_needs_it(self, project, java) -> None:
        """The control: the count above is not zero because nothing counts."""
        results, starts = self.run(project, java, ["run", "-s", "built"])
        assert results == {"run -s built": False}
        assert starts > 0

    def test_a_view_is_made_again_when_an_input_has_changed(self, project) -> None:
        run_dbt(["build"])
        unchanged = run_dbt(["run", "-s", "staged"])
        assert unchanged[0].adapter_response["_message"] == "OK unchanged"
        project.run_sql(f"alter table {project.test_schema}.people add columns (age int)")
        changed = run_dbt(["run", "-s", "staged"])
        assert changed[0].adapter_response["_message"] == "OK"
