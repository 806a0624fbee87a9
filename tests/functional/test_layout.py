"""Partitions, clustering, properties and location: at creation and on change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file


def _incremental(**config: object) -> str:
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items())
    return f"{{{{ config(materialized='incremental', {settings}) }}}} select 1 as id, 'a' as day"


def _snapshot(retention: str) -> str:
    return f"""{{% snapshot kept %}}
    {{{{ config(unique_key='id', strategy='check', check_cols='all',
               table_properties={{'delta.logRetentionDuration': '{retention}'}}) }}}}
    select 1 as id
    {{% endsnapshot %}}"""


FEATURES = {"delta.feature.timestampNtz": "supported"}


class TestLayout:
    @pytest.fixture(scope="class")
    def models(self):
        retention = {"delta.logRetentionDuration": "interval 60 days"}
        return {
            "partitioned.sql": _incremental(partition_by="day", tblproperties=retention),
            "clustered.sql": _incremental(cluster_by=["id"], scope_settings=retention),
            "fed.sql": _incremental(table_properties={"delta.enableChangeDataFeed": True}),
            "unclustered.sql": _incremental(cluster_by=["id"]),
            "moved.sql": _incremental(partition_by="day"),
            "featured.sql": _incremental(table_properties=FEATURES),
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {"kept.sql": _snapshot("interval 60 days")}

    def _table(self, project, name):
        return project.adapter.lake.log_of(f"{project.test_schema}.{name}")

    def test_creation_and_change(self, project):
        run_dbt(["build"])
        partitioned, clustered = self._table(project, "partitioned"), self._table(project, "clustered")
        assert partitioned.partition_columns == ["day"]
        assert partitioned.properties["delta.logRetentionDuration"] == "interval 60 days"
        assert clustered.clustering_columns == ["id"]
        assert clustered.properties["delta.logRetentionDuration"] == "interval 60 days"
        assert self._table(project, "fed").properties["delta.enableChangeDataFeed"] == "true"

        retention = {"delta.logRetentionDuration": "interval 90 days"}
        write_file(_incremental(cluster_by=["day"], table_properties=retention), "models", "clustered.sql")
        write_file(_incremental(table_properties={}), "models", "unclustered.sql")
        write_file(_incremental(cluster_by=["id"]), "models", "moved.sql")
        write_file(_snapshot("interval 90 days"), "snapshots", "kept.sql")
        _, said = run_dbt_and_capture(["build", "--exclude", "partitioned", "fed"])
        clustered = self._table(project, "clustered")
        assert clustered.clustering_columns == ["day"]
        assert clustered.properties["delta.logRetentionDuration"] == "interval 90 days"
        assert self._table(project, "kept").properties["delta.logRetentionDuration"] == "interval 90 days"
        assert self._table(project, "unclustered").clustering_columns == []
        assert "is partitioned by ['day'], and its config says `cluster_by` ['id']" in said
        assert [commit["operation"] for commit in self._table(project, "featured").history()] == [
            "WRITE",
            "CREATE TABLE AS SELECT",
        ]


class TestOldLog:
    """A table whose first commits were cleaned up is laid out as its checkpoint says: no run alters it again."""

    @pytest.fixture(scope="class")
    def models(self):
        every_second = {"delta.checkpointInterval": 2}
        by_name = {**every_second, "delta.checkpointPolicy": "v2"}
        return {
            "classic.sql": _incremental(cluster_by=["id"], table_properties=every_second),
            "named.sql": _incremental(cluster_by=["id"], table_properties=by_name),
        }

    def test_clustering_is_the_checkpoints(self, project, dbt_profile_target):
        run_dbt(["run"])
        for name in ("classic", "named"):
            table = f"{project.test_schema}.{name}"
            for columns in ("(day)", "(id)"):
                project.run_sql(f"alter table {table} cluster by {columns}")
            log = Path(dbt_profile_target["root"], project.test_schema, name, "_delta_log")
            assert list(log.glob("*2.checkpoint*"))
            for version in (0, 1):
                (log / f"{version:020}.json").unlink()
            assert project.adapter.lake.log_of(table).clustering_columns == ["id"]
        run_dbt(["run"])
        for name in ("classic", "named"):
            table = project.adapter.lake.log_of(f"{project.test_schema}.{name}")
            assert (table.version, table.history(1)[0]["operation"]) == (3, "WRITE")


CONTRACT = """
models:
  - name: {name}
    config: {{contract: {{enforced: true}}}}
    columns:
      - {{name: id, data_type: int, constraints: [{constraint}]}}
      - {{name: day, data_type: string}}
"""


class TestChecks:
    """The constraints of a contract are in the commit that makes the table; later ones are told of."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "checked.sql": _incremental(on_schema_change="append_new_columns"),
            "checked.yml": CONTRACT.format(name="checked", constraint="{type: not_null}"),
        }

    def test_a_constraint_that_came_later_is_warned_about(self, project):
        run_dbt(["run"])
        assert "does not enforce" not in run_dbt_and_capture(["run"])[1]
        positive = "{type: check, name: Positive, expression: 'id > 0'}"
        write_file(CONTRACT.format(name="checked", constraint=positive), "models", "checked.yml")
        assert "does not enforce Positive of its contract" in run_dbt_and_capture(["run"])[1]
        run_dbt(["run", "--full-refresh"])
        assert "does not enforce" not in run_dbt_and_capture(["run"])[1]
        table = project.adapter.lake.log_of(f"{project.test_schema}.checked")
        assert table.properties["delta.constraints.Positive"] == "id > 0"


class TestLocation:
    """A model outside of the root exists there: its second run appends."""

    @pytest.fixture(scope="class")
    def elsewhere(self, tmp_path_factory) -> Path:
        return tmp_path_factory.mktemp("elsewhere")

    @pytest.fixture(scope="class")
    def models(self, elsewhere):
        return {
            "by_location.sql": _incremental(location=str(elsewhere / "first")),
            "by_alias.sql": _incremental(delta_location=str(elsewhere / "second")),
            "reader.sql": "select count(*) as n from {{ ref('by_location') }}",
        }

    def test_second_run_appends(self, project, elsewhere, dbt_profile_target):
        run_dbt(["run"])
        run_dbt(["run"])
        for name, folder in (("by_location", "first"), ("by_alias", "second")):
            assert (elsewhere / folder / "_delta_log").is_dir()
            count = project.run_sql(f"select count(*) from {project.test_schema}.{name}", fetch="one")
            assert count[0] == 2
            link = Path(dbt_profile_target["root"], project.test_schema, name, "_link.json")
            assert json.loads(link.read_text())["location"] == str(elsewhere / folder)
        assert project.run_sql(f"select n from {project.test_schema}.reader", fetch="one")[0] == 2

    def test_a_location_is_one_models(self, project, elsewhere):
        write_file(_incremental(location=str(elsewhere / "first")), "models", "intruder.sql")
        result = run_dbt(["run", "--select", "intruder"], expect_pass=False)[0]
        assert "model.test.intruder and model.test.by_location have the same `location`" in result.message
        count = project.run_sql(f"select count(*) from {project.test_schema}.by_location", fetch="one")
        assert count[0] == 2
