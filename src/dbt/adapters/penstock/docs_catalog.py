"""`dbt docs generate` and freshness, from the Delta logs. No JVM starts."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import BaseRelation
from dbt.adapters.base.impl import FreshnessResponse
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol

from dbt.adapters.penstock.credentials import DATABASE
from dbt.adapters.penstock.engine import EngineAdapter
from penstock.api import Lake
from penstock.delta.table import Column
from penstock.errors import UnsupportedTable
from penstock.lake.relations import Relation
from penstock.lake.reserved import DESCRIPTIONS, SYSTEM_TABLE
from penstock.sql.names import Name

if TYPE_CHECKING:
    import agate
    from dbt_common.contracts.metadata import CatalogTable

_KINDS = {"table": "table", "view": "view", "files": "external", SYSTEM_TABLE: "view"}
_STATISTICS = (
    ("bytes", "Bytes", "Size of the table's files"),
    ("files", "Files", "Number of files"),
    ("rows", "Rows", "Number of rows, from the log's statistics"),
    ("version", "Version", "Delta version"),
    ("last_modified", "Last modified", "When the newest commit was made"),
)


def table(lake: Lake, names: Iterable[Name], database: str) -> agate.Table:
    """The catalog of some relations, a row per column."""
    from dbt_common.clients.agate_helper import table_from_data_flat

    rows = []
    for name in sorted(set(names), key=str):
        relation = lake.find(name)
        if relation is not None:
            rows += _rows(lake, relation, database)
    columns = list(rows[0]) if rows else list(_row(Name("a", "b"), "table", None, database, Column("c", "d"), 0, {}))
    return table_from_data_flat(rows, columns)


def single(lake: Lake, name: Name, database: str) -> CatalogTable | None:
    """The catalog of one relation, in dbt's classes; None if it does not exist."""
    from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

    relation = lake.find(name)
    if relation is None:
        return None
    comment, statistics = _facts(lake, relation)
    items = {
        key: StatsItem(id=key, label=label, value=statistics.get(key), include=key in statistics, description=text)
        for key, label, text in _STATISTICS
        if key in statistics
    }
    items["has_stats"] = StatsItem(
        id="has_stats",
        label="Has Stats?",
        value=bool(statistics),
        include=False,
        description="Indicates whether there are statistics for this table",
    )
    return CatalogTable(
        metadata=TableMetadata(
            type=_KINDS[relation.kind], schema=name.schema, name=name.identifier, database=database, comment=comment
        ),
        columns={
            column.name: ColumnMetadata(type=column.type, index=index, name=column.name, comment=column.comment)
            for index, column in enumerate(_columns(lake, relation), start=1)
        },
        stats=items,
    )


def _rows(lake: Lake, relation: Relation, database: str) -> list[dict[str, Any]]:
    comment, statistics = _facts(lake, relation)
    return [
        _row(relation.name, _KINDS[relation.kind], comment, database, column, index, statistics)
        for index, column in enumerate(_columns(lake, relation), start=1)
    ]


def _columns(lake: Lake, relation: Relation) -> list[Column]:
    # Only Spark knows the columns of raw files, and docs start no JVM.
    return [] if relation.kind == "files" else lake.columns(relation.name)


def _facts(lake: Lake, relation: Relation) -> tuple[str | None, dict[str, Any]]:
    if relation.kind == "view":
        return lake.view(relation).description, {}
    if relation.kind == SYSTEM_TABLE:
        return DESCRIPTIONS[relation.name], {}
    if relation.kind == "files":
        return None, {}
    try:
        log = lake.log_of(relation.name)
    except UnsupportedTable:
        return None, {}
    numbers = log.statistics()
    statistics: dict[str, Any] = {"bytes": numbers.bytes, "files": numbers.files, "version": log.version}
    if numbers.rows is not None:
        statistics["rows"] = numbers.rows
    statistics["last_modified"] = log.last_modified.strftime("%Y-%m-%d %H:%M:%S UTC")
    return log.description, statistics


def _row(
    name: Name, kind: str, comment: str | None, database: str, column: Column, index: int, statistics: dict[str, Any]
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "table_database": database,
        "table_schema": name.schema,
        "table_name": name.identifier,
        "table_type": kind,
        "table_comment": comment,
        "table_owner": None,
        "column_name": column.name,
        "column_index": index,
        "column_type": column.type,
        "column_comment": column.comment,
    }
    for key, label, text in _STATISTICS:
        row |= {
            f"stats:{key}:label": label,
            f"stats:{key}:value": statistics.get(key),
            f"stats:{key}:description": text,
            f"stats:{key}:include": key in statistics,
        }
    return row


def _name(relation: BaseRelation) -> Name:
    return Name(str(relation.schema), str(relation.identifier))


class DocsCatalog(EngineAdapter):
    """The calls of `dbt docs generate` and `dbt source freshness`."""

    def _get_one_catalog(self, information_schema: Any, schemas: Any, used_schemas: Any) -> agate.Table:
        names = [relation.name for schema in schemas for relation in self.all_relations(str(schema))]
        return self._catalog_filter_table(table(self.lake, names, DATABASE), used_schemas)

    def _get_one_catalog_by_relations(self, information_schema: Any, relations: Any, used_schemas: Any) -> agate.Table:
        names = [_name(relation) for relation in relations]
        return self._catalog_filter_table(table(self.lake, names, DATABASE), used_schemas)

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        with self.connections.exception_handler(f"catalog of {relation}"):
            return single(self.lake, _name(relation), DATABASE)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        now = datetime.now(timezone.utc)
        found = {}
        with self.connections.exception_handler("freshness"):
            for source in sources:
                modified = self.lake.last_modified(_name(source))
                found[source] = self._create_freshness_response(modified, now)
        return [], found
