from __future__ import annotations

import pytest
from dbt.tests.adapter.aliases import fixtures
from dbt.tests.adapter.aliases.test_aliases import (
    BaseAliasErrors,
    BaseAliases,
    BaseSameAliasDifferentDatabases,
    BaseSameAliasDifferentSchemas,
)


class SparkStrings:
    @pytest.fixture(scope="class")
    def macros(self):
        return {
            "cast.sql": fixtures.MACROS__CAST_SQL.replace("::text", ""),
            "expect_value.sql": fixtures.MACROS__EXPECT_VALUE_SQL,
        }


class TestAliases(SparkStrings, BaseAliases):
    pass


class TestAliasErrors(SparkStrings, BaseAliasErrors):
    pass


class TestSameAliasDifferentSchemas(SparkStrings, BaseSameAliasDifferentSchemas):
    pass


class TestSameAliasDifferentDatabases(SparkStrings, BaseSameAliasDifferentDatabases):
    """By its name; what it tests are two schemas."""
