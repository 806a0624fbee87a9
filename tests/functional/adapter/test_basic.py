from __future__ import annotations

import pytest
from dbt.tests.adapter.basic.expected_catalog import base_expected_catalog, expected_references_catalog, no_stats
from dbt.tests.adapter.basic.test_adapter_methods import BaseAdapterMethod
from dbt.tests.adapter.basic.test_base import BaseSimpleMaterializations
from dbt.tests.adapter.basic.test_docs_generate import (
    BaseDocsGenerate,
    BaseDocsGenReferences,
)
from dbt.tests.adapter.basic.test_empty import BaseEmpty
from dbt.tests.adapter.basic.test_ephemeral import BaseEphemeral
from dbt.tests.adapter.basic.test_generic_tests import BaseGenericTests
from dbt.tests.adapter.basic.test_get_catalog_for_single_relation import BaseGetCatalogForSingleRelation
from dbt.tests.adapter.basic.test_incremental import (
    BaseIncremental,
    BaseIncrementalBadStrategy,
    BaseIncrementalNotSchemaChange,
)
from dbt.tests.adapter.basic.test_singular_tests import BaseSingularTests
from dbt.tests.adapter.basic.test_singular_tests_ephemeral import BaseSingularTestsEphemeral
from dbt.tests.adapter.basic.test_snapshot_check_cols import BaseSnapshotCheckCols
from dbt.tests.adapter.basic.test_snapshot_timestamp import BaseSnapshotTimestamp
from dbt.tests.adapter.basic.test_table_materialization import BaseTableMaterialization
from dbt.tests.adapter.basic.test_validate_connection import BaseValidateConnection
from dbt.tests.util import AnyInteger, AnyStringWith
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from dbt.adapters.penstock.docs_catalog import _STATISTICS


class TestAdapterMethod(BaseAdapterMethod):
    pass


class TestSimpleMaterializations(BaseSimpleMaterializations):
    pass


def _stats(values):
    """The statistics of a table, as its log tells them."""
    items = {
        key: {"id": key, "label": label, "value": values[key], "include": True, "description": description}
        for key, label, description in _STATISTICS
    }
    has = {"id": "has_stats", "label": "Has Stats?", "value": True, "include": False}
    return items | {"has_stats": has | {"description": "Indicates whether there are statistics for this table"}}


_SEED_STATS = _stats(
    {"bytes": AnyInteger(), "files": 1, "rows": 1, "version": 0, "last_modified": AnyStringWith(" UTC")}
)
_TYPES = {
    "role": None,
    "id_type": "bigint",
    "text_type": "string",
    "time_type": "timestamp",
    "view_type": "view",
    "table_type": "table",
    "model_stats": no_stats(),
}


@pytest.mark.reads_manifest
class TestDocsGenerate(BaseDocsGenerate):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return base_expected_catalog(project, **_TYPES, seed_stats=_SEED_STATS)


@pytest.mark.reads_manifest
class TestDocsGenReferences(BaseDocsGenReferences):
    @pytest.fixture(scope="class")
    def expected_catalog(self, project):
        return expected_references_catalog(
            project,
            **_TYPES | {"model_stats": _SEED_STATS},
            bigint_type="bigint",
            view_summary_stats=no_stats(),
        )


class TestEmpty(BaseEmpty):
    pass


class TestEphemeral(BaseEphemeral):
    pass


class TestGenericTests(BaseGenericTests):
    pass


class TestGetCatalogForSingleRelation(BaseGetCatalogForSingleRelation):
    @pytest.fixture(scope="class")
    def current_role(self):
        return None

    def _expected(self, project, name, kind, stats):
        columns = {"id": "bigint", "first_name": "string", "email": "string", "ip_address": "string"}
        return CatalogTable(
            metadata=TableMetadata(
                type=kind, schema=project.test_schema, name=name, database=project.database, comment=None, owner=None
            ),
            columns={
                column: ColumnMetadata(type=type, index=index, name=column, comment=None)
                for index, (column, type) in enumerate((columns | {"updated_at": "timestamp"}).items(), 1)
            },
            stats={key: StatsItem(**item) for key, item in stats.items()},
            unique_id=None,
        )

    @pytest.fixture(scope="class")
    def expected_catalog_my_seed(self, project):
        return self._expected(project, "my_seed", "table", _SEED_STATS)

    @pytest.fixture(scope="class")
    def expected_catalog_my_view_model(self, project):
        return self._expected(project, "my_view_model", "view", no_stats())


class TestIncremental(BaseIncremental):
    pass


class TestIncrementalBadStrategy(BaseIncrementalBadStrategy):
    pass


class TestIncrementalNotSchemaChange(BaseIncrementalNotSchemaChange):
    pass


class TestSingularTests(BaseSingularTests):
    pass


class TestSingularTestsEphemeral(BaseSingularTestsEphemeral):
    pass


class TestSnapshotCheckCols(BaseSnapshotCheckCols):
    pass


class TestSnapshotTimestamp(BaseSnapshotTimestamp):
    pass


class TestTableMaterialization(BaseTableMaterialization):
    pass


class TestValidateConnection(BaseValidateConnection):
    pass
