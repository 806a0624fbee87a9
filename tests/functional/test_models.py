"""Contracts, docs, clones, hooks, Python models and retries: what dbt's own suite leaves open."""

from __future__ import annotations

import json
import shutil
from copy import deepcopy
from pathlib import Path

import pyarrow as pa
import pytest
from dbt.tests.util import run_dbt, write_file
from deltalake import DeltaTable, write_deltalake

from tests.conftest import delta_rows


class TestContract:
    """A row that breaks a CHECK: the table is whole, as it was."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "checked.sql": "{{ config(materialized='table') }} select 1 as id",
            "schema.yml": """
                models:
                  - name: checked
                    config: {contract: {enforced: true}}
                    columns:
                      - name: id
                        data_type: int
                        constraints: [{type: not_null}, {type: check, expression: id < 10, name: small}]
            """,
        }

    def test_the_old_table_stays(self, project):
        run_dbt(["run"])
        before = project.adapter.lake.log_of(f"{project.test_schema}.checked").version
        write_file("{{ config(materialized='table') }} select 11 as id", "models", "checked.sql")
        result = run_dbt(["run"], expect_pass=False)[0]
        assert "CHECK constraint small (id < 10) violated" in result.message
        assert project.adapter.lake.log_of(f"{project.test_schema}.checked").version == before
        assert project.run_sql(f"select id from {project.test_schema}.checked", fetch="one")[0] == 1
        with pytest.raises(Exception, match="small"):
            project.run_sql(f"insert into {project.test_schema}.checked values (12)")


class TestViewDocs:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "told.sql": "{{ config(persist_docs={'relation': true, 'columns': true}) }} select 1 as id, 2 as n",
            "schema.yml": """
                models:
                  - name: told
                    description: "It's a view"
                    columns: [{name: ID, description: "The key's own"}]
            """,
        }

    def test_they_are_kept_with_the_view(self, project, dbt_profile_target):
        run_dbt(["run"])
        view = json.loads(Path(dbt_profile_target["root"], project.test_schema, "told", "_view.json").read_text())
        assert view["description"] == "It's a view"
        assert {column["name"]: column["comment"] for column in view["columns"]} == {"id": "The key's own", "n": None}
        assert "unchanged" in run_dbt(["run"])[0].message


class TestViewContract:
    """One that comes to an unchanged view, or changes on it, is checked."""

    CONTRACT = """
        models:
          - name: promised
            config: {{contract: {{enforced: true}}}}
            columns: [{{name: id, data_type: {type}}}, {{name: n, data_type: "decimal(3, 1)"}}]
    """

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "promised.sql": "select 1 as id, cast(2 as decimal(3,1)) as n",
            "schema.yml": self.CONTRACT.format(type="int").replace("true", "false"),
        }

    def test_it_is_checked(self, project):
        run_dbt(["run"])
        write_file(self.CONTRACT.format(type="integer"), "models", "schema.yml")
        assert "unchanged" in run_dbt(["run"])[0].message
        write_file(self.CONTRACT.format(type="string"), "models", "schema.yml")
        assert "contract" in run_dbt(["run"], expect_pass=False)[0].message


class TestListagg:
    """Ordered and limited at once: sorted as the clause says, its literals as they are."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "listed.sql": """
                {{ config(materialized='table') }}
                select
                  {{ dbt.listagg('n', "'-'", 'order by n desc', 2) }} as greatest,
                  {{ dbt.listagg('t', "','", "order by case when t = 'B,' then 0 else 1 end, t", 2) }} as chosen
                from values (2, 'a'), (10, 'B,'), (3, 'c') as v(n, t)
            """
        }

    def test_order_and_limit(self, project):
        run_dbt(["run"])
        rows = project.run_sql(f"select * from {project.test_schema}.listed", fetch="all")
        assert [tuple(row) for row in rows] == [("10-3", "B,,a")]


@pytest.mark.reads_manifest
class TestClone:
    """A clone is a table of its own, over the files of the other."""

    @pytest.fixture(scope="class")
    def models(self):
        return {"kept.sql": "{{ config(materialized='incremental') }} select 1 as id"}

    @pytest.fixture(scope="class")
    def profiles_config_update(self, dbt_profile_target, unique_schema):
        other = deepcopy(dbt_profile_target) | {"schema": f"{unique_schema}_clone"}
        outputs = {"default": dbt_profile_target | {"schema": unique_schema}, "other": other}
        return {"test": {"outputs": outputs, "target": "default"}}

    def test_shallow(self, project):
        run_dbt(["run"])
        Path("state").mkdir()
        shutil.copy("target/manifest.json", "state/manifest.json")
        run_dbt(["clone", "--state", "state", "--target", "other"])
        clone = project.adapter.lake.get(f"{project.test_schema}_clone.kept")
        assert not list(Path(clone.location).glob("*.parquet"))
        run_dbt(["run", "--target", "other"])
        for schema, count in ((project.test_schema, 1), (f"{project.test_schema}_clone", 2)):
            assert project.run_sql(f"select count(*) from {schema}.kept", fetch="one")[0] == count


class TestHooks:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "failing.sql": "{{ config(materialized='table', pre_hook=\"select raise_error('not today')\") }} select 1 as id",
            "several.sql": """
                {{ config(materialized='table', post_hook="
                    insert into {{ this }} values (2); -- and; another
                    insert into {{ this }} select id + 2 from {{ this }}
                ") }}
                select 1 as id
            """,
        }

    def test_hooks_run(self, project):
        results = {result.node.name: result for result in run_dbt(["run"], expect_pass=False)}
        assert results["failing"].status == "error"
        assert "not today" in results["failing"].message
        assert (
            project.adapter.lake.find(
                project.adapter.Relation.create(
                    database=project.database, schema=project.test_schema, identifier="failing"
                ).name_in_lake
            )
            is None
        )
        rows = project.run_sql(f"select id from {project.test_schema}.several order by id", fetch="all")
        assert [row[0] for row in rows] == [1, 2, 3, 4]


class TestRetry:
    @pytest.fixture(scope="class")
    def models(self):
        return {"good.sql": "select 1 as id", "bad.sql": "{{ config(materialized='table') }} select 1 / 0 as id"}

    def test_only_what_failed_runs_again(self, project):
        run_dbt(["run"], expect_pass=False)
        write_file("{{ config(materialized='table') }} select 1 as id", "models", "bad.sql")
        assert [result.node.name for result in run_dbt(["retry"])] == ["bad"]


class TestPythonModels:
    @pytest.fixture(scope="class")
    def models(self):
        return {
            "grows.py": """
import pandas as pd

def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    if dbt.is_incremental:
        return pd.DataFrame({"id": [2, 3], "name": ["B", "C"]})
    return session.createDataFrame([(1, "a"), (2, "b")], "id long, name string")
""",
            "wrong.py": "def model(dbt, session):\n    return 5\n",
            "broken.py": "def model(dbt, session):\n    return 1 / 0\n",
        }

    def test_frames(self, project):
        run_dbt(["run", "--select", "grows"])
        run_dbt(["run", "--select", "grows"])
        rows = project.run_sql(f"select id, name from {project.test_schema}.grows order by id", fetch="all")
        assert [tuple(row) for row in rows] == [(1, "a"), (2, "B"), (3, "C")]

    def test_errors_name_the_model_and_line(self, project):
        results = {
            result.node.name: result.message for result in run_dbt(["run", "--exclude", "grows"], expect_pass=False)
        }
        assert "returned int: return a PySpark or pandas DataFrame" in results["wrong"]
        assert "ZeroDivisionError" in results["broken"]
        assert "line 2" in results["broken"]


_MODES = ("ignore", "append_new_columns", "sync_all_columns", "fail")


class TestForeignLocation:
    """A location that holds what is not the model's: one clear error, and nothing changes."""

    @pytest.fixture(scope="class")
    def models(self):
        return {
            "as_table.sql": "{{ config(materialized='table', location='./foreign/as_table') }} select 7 as mine",
            "as_files.sql": "{{ config(materialized='incremental', location='./foreign/as_files', "
            "source_roots=['./landing']) }} select * from @data",
            "at_root.sql": "{{ config(materialized='table', location=target.root) }} select 7 as mine",
            "at_files.sql": "{{ config(materialized='table', location='./landing') }} select 7 as mine",
        } | {
            f"as_{mode}.sql": "{{ config(materialized='incremental', "
            f"on_schema_change='{mode}', location='./foreign/as_{mode}') }}}} select 7 as mine"
            for mode in _MODES
        }

    @pytest.fixture(scope="class")
    def seeds(self):
        return {
            "as_seed.csv": "mine\n7\n",
            "seeds.yml": "seeds: [{name: as_seed, config: {location: ./foreign/as_seed}}]",
        }

    @pytest.fixture(scope="class")
    def snapshots(self):
        return {
            "as_snapshot.sql": "{% snapshot as_snapshot %} {{ config(unique_key='mine', strategy='check', "
            "check_cols='all', location='./foreign/as_snapshot') }} select 7 as mine {% endsnapshot %}"
        }

    def test_it_is_left_alone(self, project):
        names = ("as_table", "as_files", "as_seed", "as_snapshot", *(f"as_{mode}" for mode in _MODES))
        for name in names:
            write_deltalake(f"{project.project_root}/foreign/{name}", pa.table({"x": [1], "theirs": [2]}))
        landing = Path(project.project_root, "landing")
        landing.mkdir()
        (landing / "one.csv").write_text("id\n1\n")
        results = {result.node.name: result.message for result in run_dbt(["build"], expect_pass=False)}
        for name in names:
            assert "holds another table" in results[name], name
            assert DeltaTable(f"{project.project_root}/foreign/{name}").version() == 0, name
        assert "holds the lake itself" in results["at_root"]
        assert "one.csv" in results["at_files"]
        assert sorted(file.name for file in landing.iterdir()) == ["one.csv"]
        assert not Path(project.adapter.lake.root, "_delta_log").exists()


class TestOwnLocation:
    @pytest.fixture(scope="class")
    def models(self):
        return {"located.sql": self.model(location="./ext/located")}

    @staticmethod
    def model(**location: str) -> str:
        config = dict(materialized="table", pre_hook="drop table if exists {{ this }}", **location)
        return f"{{{{ config(**{config!r}) }}}} select {{{{ var('n', 1) }}}} as n{{{{ var('n', 1) }}}}"

    def test_a_hook_that_drops_it_does_not_move_it(self, project):
        for n in (1, 2):
            run_dbt(["run", "--vars", f"n: {n}"])
            assert delta_rows(Path(project.project_root, "ext/located")) == [{f"n{n}": n}]
        assert not Path(project.adapter.lake.root, project.test_schema, "located", "_delta_log").exists()

    def test_another_location_in_the_config_is_told(self, project):
        for location in ({}, {"location": "./ext/other"}):
            write_file(self.model(**location), "models", "located.sql")
            result = run_dbt(["run"], expect_pass=False)[0]
            assert f"Put `location: {project.project_root}/ext/located` back" in result.message
        assert not Path(project.project_root, "ext/other").exists()

    def test_a_table_of_the_same_columns_is_adopted(self, project):
        write_deltalake(f"{project.project_root}/ext/adopted", pa.table({"id": pa.array([1], pa.int32())}))
        config = "materialized='incremental', on_schema_change='append_new_columns', location='./ext/adopted'"
        for select in ("select 2 as id", "select 3 as id, 4 as more"):
            write_file(f"{{{{ config({config}) }}}} {select}", "models", "adopted.sql")
            run_dbt(["run", "-s", "adopted"])
        assert sorted(row["id"] for row in delta_rows(Path(project.project_root, "ext/adopted"))) == [1, 2, 3]
