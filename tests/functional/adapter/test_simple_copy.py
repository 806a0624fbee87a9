from __future__ import annotations

import pytest
from dbt.tests.adapter.simple_copy.test_copy_uppercase import BaseSimpleCopyUppercase
from dbt.tests.adapter.simple_copy.test_simple_copy import EmptyModelsArentRunBase, SimpleCopyBase
from dbt.tests.util import run_dbt


class TestSimpleCopyUppercase(BaseSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, penstock_target):
        return penstock_target


class TestSimpleCopy(SimpleCopyBase):
    def test_simple_copy_with_materialized_views(self, project):
        """Relations that dbt did not make are no trouble; a lake has no materialized views, so a view takes its place."""
        schema = project.test_schema
        project.run_sql(f"create table {schema}.unrelated_table (id int)")
        project.run_sql(f"create view {schema}.unrelated_upstream_view as (select * from {schema}.unrelated_table)")
        project.run_sql(f"create view {schema}.unrelated_view as (select * from {schema}.unrelated_upstream_view)")
        assert len(run_dbt(["seed"])) == 1
        assert len(run_dbt()) == 7


class TestEmptyModelsArentRun(EmptyModelsArentRunBase):
    pass
