from __future__ import annotations

from pathlib import Path

from dbt.tests.adapter.ephemeral.test_ephemeral import (
    BaseEphemeralErrorHandling,
    BaseEphemeralMulti,
    BaseEphemeralNested,
)
from dbt.tests.util import check_relations_equal, run_dbt


def _sql_run_for(model: str) -> str:
    return "".join(Path("target/run/test/models", f"{model}.sql").read_text().split())


class TestEphemeralErrorHandling(BaseEphemeralErrorHandling):
    pass


class TestEphemeralMulti(BaseEphemeralMulti):
    """The base has PostgreSQL's CREATE VIEW inside its test."""

    def test_ephemeral_multi(self, project):
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3
        for model in ("dependent", "double_dependent", "super_dependent"):
            check_relations_equal(project.adapter, ["seed", model])
        expected = (
            f"create or replace view `{project.test_schema}`.`double_dependent` as "
            "with __dbt__cte__base as ("
            f"select * from {project.test_schema}.seed"
            "),  __dbt__cte__base_copy as ("
            "select * from __dbt__cte__base"
            ")-- base_copy just pulls from base. Make sure the listed"
            "-- graph of CTEs all share the same dbt_cte__base cte"
            "select * from __dbt__cte__base where gender = 'Male'"
            "union all"
            "select * from __dbt__cte__base_copy where gender = 'Female'"
        )
        assert _sql_run_for("double_dependent") == "".join(expected.split())


class TestEphemeralNested(BaseEphemeralNested):
    """The base has PostgreSQL's CREATE VIEW inside its test."""

    def test_ephemeral_nested(self, project):
        assert len(run_dbt(["run"])) == 2
        expected = (
            f"create or replace view `{project.test_schema}`.`root_view` as "
            "with __dbt__cte__ephemeral_level_two as ("
            f"select * from `{project.test_schema}`.`source_table`"
            "),  __dbt__cte__ephemeral as ("
            "select * from __dbt__cte__ephemeral_level_two"
            ")select * from __dbt__cte__ephemeral"
        )
        assert _sql_run_for("root_view") == "".join(expected.split())
