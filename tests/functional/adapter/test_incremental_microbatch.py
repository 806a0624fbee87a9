from __future__ import annotations

from dbt.tests.adapter.incremental.test_incremental_microbatch import BaseMicrobatch


class TestMicrobatch(BaseMicrobatch):
    pass
