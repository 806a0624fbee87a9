"""Config that would do nothing is refused before anything runs; what a folder or a package sets is let be. No Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from penstock.sql.names import Name

FILES = "materialized='incremental', source_roots=['landing'], safety_buffer_seconds=0"


def over_files(keys: str) -> str:
    return f"{{{{ config({FILES}, {keys}) }}}} select * from @data"


def said(model: str) -> str:
    return str(run_dbt(["run", "-s", model], expect_pass=False)[0].message)


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark may have been started by a test before; here nothing asks for it."""

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("Spark was asked for")

    monkeypatch.setattr("penstock.spark.runner.Runner.spark", property(refused))


class TestOverFiles:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "merged.sql": over_files("unique_key='id', incremental_strategy='merge'"),
            "keyed.sql": over_files("unique_key='id'"),
            "replaced.sql": over_files("incremental_strategy='delete+insert', unique_key='id'"),
            "overwritten.sql": over_files("incremental_strategy='insert_overwrite', partition_by='id'"),
            "conditional.sql": over_files("merge_update_columns=['id'], matched_condition='true', begin='2026-01-01'"),
            "predicates.sql": over_files("incremental_predicates=['id > 1'], lookback=3"),
            "near.sql": over_files("safety_buffer=5, source_retention=3, compaction_interval=4, owner='us'"),
            "in_yaml.sql": over_files("source_format='json'"),
            "models.yml": "models: [{name: in_yaml, config: {unique_key: id}}]",
        }

    @pytest.mark.parametrize(
        ("model", "parts"),
        [
            (
                "merged",
                ["must be append or microbatch on an incremental model over @data, not 'merge'", "`unique_key` has no"],
            ),
            (
                "keyed",
                ["`unique_key` has no effect on an incremental model over @data", "`incremental_strategy: cdf_merge`"],
            ),
            ("replaced", ["not 'delete+insert'", "`unique_key` has no effect"]),
            ("overwritten", ["not 'insert_overwrite'"]),
            ("conditional", ["`merge_update_columns` has no", "`matched_condition` has no", "`begin` has no effect"]),
            ("predicates", ["`incremental_predicates` has no effect", "`lookback` has no effect"]),
            ("near", ["`safety_buffer_seconds`?", "`source_retention_files`?", "`source_compaction_interval`?"]),
            ("in_yaml", ["`unique_key` has no effect"]),
        ],
    )
    def test_what_has_no_effect_is_refused_and_no_row_written(self, project, model: str, parts: list[str]) -> None:
        folder = Path(project.project_root) / "landing"
        folder.mkdir(exist_ok=True)
        (folder / "1.json").write_text(json.dumps({"id": 1}) + "\n" + json.dumps({"id": 1}) + "\n")
        message = said(model)
        for part in parts:
            assert part in message
        assert "owner" not in message
        assert project.adapter.lake.find(Name(project.test_schema, model)) is None


class TestFoldersAndPackages:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, object]:
        return {
            "models": {
                "+on_schema_change": "fail",
                "+file_format": "",
                "+tblproperties": {"delta.appendOnly": "false"},
                "+cluster_by": "id",
                "+change_data_feed": True,
                "+transient": True,
                "test": {
                    "merging": {"+incremental_strategy": "merge", "+incremental_predicates": ["id > 1"]},
                    "doubling": {"+unique_key": "id"},
                },
            }
        }

    @pytest.fixture(scope="class")
    def packages(self) -> dict[str, object]:
        return {"packages": [{"local": "theirs"}]}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, object]:
        view = "select 1 as id"
        return {
            "inherits.sql": view,
            "says.sql": "{{ config(cluster_by='id', incremental_strategy='append') }} " + view,
            "says_in_yaml.sql": view,
            "ephemeral_one.sql": "{{ config(materialized='ephemeral', partition_by='id') }} " + view,
            "reads_ephemeral.sql": "select * from {{ ref('ephemeral_one') }}",
            "mended.sql": "{{ config(materialized='incremental', incremental_strategy='upsert') }} " + view,
            "models.yml": "models: [{name: says_in_yaml, config: {unique_key: id}}]",
            "merging": {"files.sql": over_files("source_format='json'")},
            "doubling": {"keyed.sql": over_files("source_format='json'"), "a_view.sql": view},
        }

    @pytest.fixture(scope="class", autouse=True)
    def theirs(self, project_root: str) -> None:
        package = Path(project_root) / "theirs"
        (package / "models").mkdir(parents=True)
        (package / "dbt_project.yml").write_text("{name: theirs, version: 1.0.0, config-version: 2}")
        config = (
            "materialized='view', unique_key='id', cluster_by=['id'], partition_expiration_days=3, source_retention=1"
        )
        (package / "models" / "packaged.sql").write_text("{{ config(" + config + ") }} select 1 as id")

    @pytest.fixture(scope="class", autouse=True)
    def installed(self, project, theirs: None) -> None:
        run_dbt(["deps"])

    def problems(self, model: str) -> list[str]:
        message = said(model)
        return message.split("Wrong config: ")[1].split("; ") if "Wrong config: " in message else []

    @pytest.mark.parametrize("model", ["inherits", "packaged", "a_view", "files"])
    def test_what_a_folder_or_a_package_sets_is_no_error(self, project, model: str) -> None:
        (Path(project.project_root) / "landing").mkdir(exist_ok=True)
        _, log = run_dbt_and_capture(["--debug", "run", "-s", model], expect_pass=model == "files")
        assert "Wrong config" not in log
        if model in ("inherits", "packaged"):
            assert "`cluster_by` has no effect on a view" in log

    def test_what_a_model_says_is(self, project) -> None:
        assert [line.split(" ")[0] for line in self.problems("says")] == ["`cluster_by`", "`incremental_strategy`"]
        assert [line.split(" ")[0] for line in self.problems("says_in_yaml")] == ["`unique_key`"]
        assert "not 'upsert'" in self.problems("mended")[0]

    def test_an_ephemeral_model_is_told_of_by_who_reads_it(self, project) -> None:
        assert self.problems("reads_ephemeral")[0].startswith("ephemeral_one: `partition_by` has no effect on an eph")

    def test_a_folders_key_that_would_double_rows_is_an_error(self, project) -> None:
        assert "`unique_key` has no effect on an incremental model over @data" in self.problems("keyed")[0]
