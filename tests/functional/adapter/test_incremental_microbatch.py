from __future__ import annotations

import pytest
from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch, _microbatch_model_sql


class TestMicrobatch(BaseMicrobatch):
    pass


class TestMicrobatchPacked(BaseMicrobatch):
    @pytest.fixture(scope="class")
    def microbatch_model_sql(self) -> str:
        return _microbatch_model_sql.replace("unique_key='id'", "days_per_batch=2, partition_by='event_time'")


class TestMicrobatchAdded(BaseMicrobatch):
    """Each window is added once, whatever comes into it later."""

    @pytest.fixture(scope="class")
    def microbatch_model_sql(self) -> str:
        return _microbatch_model_sql.replace("unique_key='id'", "delete_before_insert=false")
