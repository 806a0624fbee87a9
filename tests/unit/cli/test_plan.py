"""`penstock plan` in a dbt project. Without a Java on the path, every start of Spark would fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dbt.adapters.penstock.cli.command import penstock
from tests.unit.cli.conftest import SCHEMAS, check
from tests.unit.inspection.conftest import History
from tests.unit.inspection.test_planned import everything

MODELS = {
    "events.sql": """
{{ config(materialized='incremental', schema='bronze', source_roots=['landing'], safety_buffer_seconds=0) }}
select id from @data""",
    "copy.sql": """
{{ config(materialized='incremental', incremental_strategy='cdf_merge', unique_key='id') }}
select id from {{ ref('events') }}""",
    "days.sql": """
{{ config(materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
          begin=(modules.datetime.date.today() - modules.datetime.timedelta(days=2)) | string) }}
select id, current_timestamp() as at from {{ ref('events') }}""",
    "plain.sql": "{{ config(materialized='table') }} select 1 as id",
    "wrong.sql": "{{ config(materialized='table', max_files_per_triger=5) }} select 1 as id",
    "asks.sql": """
{{ config(materialized='incremental', incremental_strategy='cdf_merge', unique_key='id') }}
{% if execute %}{% do run_query('select 1') %}{% endif %} select id from {{ ref('events') }}""",
}
MACRO = """
{% macro generate_schema_name(custom, node) %}{{ custom or target.schema }}{% endmacro %}"""


@pytest.fixture
def project(shop: History, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> History:
    (tmp_path / "dbt_project.yml").write_text(
        "name: p\nversion: '1.0'\nprofile: p\nflags: {send_anonymous_usage_stats: false}\n"
    )
    (tmp_path / "profiles.yml").write_text(
        "p: {target: dev, outputs: {dev: {type: penstock, root: lake, schema: s, threads: 1}}}\n"
    )
    for folder, files in (("models", MODELS), ("macros", {"schema.sql": MACRO})):
        (tmp_path / folder).mkdir()
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    shop.land()
    shop.run()
    shop.land()
    return shop


def run(shop: History, *arguments: str, exits: int) -> Result:
    before = everything(shop.lake.root)
    result = CliRunner().invoke(penstock, ["plan", *arguments])
    assert result.exit_code == exits, (result.output, result.exception)
    assert everything(shop.lake.root) == before
    return result


def models(result: Result) -> dict[str, dict[str, Any]]:
    document = json.loads(result.stdout)
    check(document, json.loads((SCHEMAS / "plan.json").read_text()), "$")
    return {one["model"]: one for one in document["models"]}


def test_every_model_that_comes_in_steps_and_every_wrong_config(project: History) -> None:
    found = models(run(project, "--json", exits=1))
    assert set(found) == {"events", "copy", "days", "wrong", "asks"}
    assert (found["events"]["files"]["files"], found["events"]["files"]["creates"]) == (1, False)
    assert "change data feed" in found["copy"]["error"]
    assert len(found["days"]["windows"]["windows"]) == 3
    assert "max_files_per_trigger" in found["wrong"]["error"]
    assert "decided at run" in found["asks"]["note"]


def test_a_selection_and_its_exit_codes(project: History) -> None:
    shown = run(project, "-s", "events", exits=0).output
    assert "1 file in 1 batch" in shown
    assert "Plan: 1 of 1 models have work, 0 with errors" in shown
    run(project, "-s", "events", "--detailed-exitcode", exits=2)
    assert models(run(project, "-s", "events", "--full-refresh", "--json", exits=0))["events"]["files"]["files"] == 2
    project.run()
    run(project, "-s", "events", "--detailed-exitcode", exits=0)
    assert "nothing to do" in run(project, "-s", "events", exits=0).output


def test_a_project_that_does_not_parse(project: History) -> None:
    Path("models/broken.sql").write_text("select * from {{ ref('nothing') }}")
    assert "nothing" in run(project, exits=2).stderr
    run(project, "--detailed-exitcode", exits=1)


def test_a_root_has_no_models(project: History) -> None:
    assert CliRunner().invoke(penstock, ["--root", "lake", "plan"]).exit_code == 2


def test_a_model_whose_table_gets_rows_in_the_same_run_is_decided_then() -> None:
    from types import SimpleNamespace

    from dbt.adapters.penstock.cli.project import PlannedModel, Project
    from penstock.inspection.planned import AT_RUN, PlannedChanges, PlannedFiles

    def node(*above: str) -> Any:
        return SimpleNamespace(depends_on=SimpleNamespace(nodes=list(above)))

    project = object.__new__(Project)
    project._manifest = SimpleNamespace(nodes={"files": node(), "view": node("files"), "copy": node("view")})
    nothing = PlannedChanges(False, None, (), False, AT_RUN, "")
    copy = PlannedModel("copy", "s.copy", "cdf_merge", nothing)
    for files, note in ((3, "once s.files has run: decided at run"), (0, None)):
        planned = PlannedFiles(False, None, files, 1, 1, None, None, 0, 0)
        found = {"files": PlannedModel("files", "s.files", "incremental over @data", planned), "copy": copy}
        assert project._after("copy", copy, found).note == note
