"""The adapter as dbt knows it: its capabilities and its parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.base.impl import ConstraintSupport
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt_common.contracts.constraints import ConstraintType

from dbt.adapters.penstock import python_model
from dbt.adapters.penstock.checks import Checks
from dbt.adapters.penstock.column import PenstockColumn
from dbt.adapters.penstock.columns import Columns
from dbt.adapters.penstock.config import PenstockConfig
from dbt.adapters.penstock.docs_catalog import DocsCatalog
from dbt.adapters.penstock.layout import Layouts
from dbt.adapters.penstock.models.changes import ChangeModels
from dbt.adapters.penstock.models.windows import WindowModels
from dbt.adapters.penstock.relation import PenstockRelation
from dbt.adapters.penstock.relations import Relations
from dbt.adapters.penstock.response import PenstockAdapterResponse
from dbt.adapters.penstock.seed import Seeds
from penstock import config
from penstock.sql import quoting

if TYPE_CHECKING:
    import agate

_FULL = CapabilitySupport(support=Support.Full)


class PenstockAdapter(Checks, Relations, Columns, Layouts, Seeds, DocsCatalog, WindowModels, ChangeModels):
    Relation = PenstockRelation
    Column = PenstockColumn
    AdapterSpecificConfigs = PenstockConfig

    CONSTRAINT_SUPPORT = {  # noqa: RUF012 - dbt declares it as an attribute of instances
        ConstraintType.check: ConstraintSupport.ENFORCED,
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        {
            Capability.SchemaMetadataByRelations: _FULL,
            Capability.TableLastModifiedMetadata: _FULL,
            Capability.TableLastModifiedMetadataBatch: _FULL,
            Capability.GetCatalogForSingleRelation: _FULL,
            Capability.MicrobatchConcurrency: _FULL,
        }
    )

    @classmethod
    def date_function(cls) -> str:
        return "current_timestamp()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        return quoting.quote(identifier)

    def debug_query(self) -> None:
        with self.connections.exception_handler("debug"):
            self.lake.storage.check_root(writable=True)

    def validate_sql(self, sql: str) -> AdapterResponse:
        with self.connections.exception_handler(sql):
            self.runner.columns_of(sql)
        return PenstockAdapterResponse.of(None)

    def valid_incremental_strategies(self) -> list[str]:
        return list(config.STRATEGIES)

    @available.parse_none
    def incremental_strategy(self, model_config: Any) -> str:
        """The strategy that the config names. Without one: merge if there is a key, otherwise append."""
        return config.strategy(model_config)

    @available
    def literal(self, text: Any) -> str:
        """A text as a SQL literal."""
        return quoting.literal(str(text))

    @available.parse_none
    def next_statement_conf(self, conf: Mapping[str, str]) -> None:
        """Set Spark settings for the next statement only."""
        self.handle.set_conf(dict(conf))

    @available.parse(lambda *a, **k: "")
    def python_query(self, model: Mapping[str, Any], compiled_code: str) -> str:
        """Run a Python model; returns the query that reads its DataFrame."""
        with self.connections.exception_handler(f"python model {model['name']}"):
            return python_model.query(self.runner, model, compiled_code)

    def standardize_grants_dict(self, grants_table: agate.Table) -> dict[str, list[str]]:
        return {}

    def run_sql_for_tests(self, sql: str, fetch: str, conn: Any) -> Any:
        cursor = conn.handle.cursor()
        cursor.execute(sql)
        if fetch == "one":
            return cursor.fetchone()
        if fetch == "all":
            return cursor.fetchall()
        cursor.drain()
        return None
