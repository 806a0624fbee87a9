"""The layout of a table: clauses, properties, constraints and comments, from a model's config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import available

from dbt.adapters.penstock.engine import EngineAdapter
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.relation import PenstockRelation


class Layouts(EngineAdapter):
    """The layout that a model's config gives its table."""

    @available.parse(lambda *a, **k: "")
    def table_clauses(self, model: Mapping[str, Any]) -> str:
        """The clauses of CREATE TABLE between USING delta and AS."""
        return self.layout(model).clauses()

    @available.parse(lambda *a, **k: [])
    def layout_changes(self, relation: PenstockRelation, model: Mapping[str, Any]) -> list[str]:
        """The statements that change an existing table to its model's config. Warns of changes that need a full refresh."""
        with self.connections.exception_handler(f"layout of {relation}"):
            layout, table = self.layout(model), self.lake.log_of(relation.name_in_lake)
            if layout.differs_in_partitions(table):
                wanted = f"`cluster_by` {list(layout.cluster_by)}" if layout.cluster_by else list(layout.partition_by)
                logger.warning(
                    f"{relation} is partitioned by {table.partition_columns or 'nothing'}, and its config says "
                    f"{wanted}: run it with --full-refresh to change the layout"
                )
            if unmet := layout.unmet_checks(table):
                logger.warning(
                    f"{relation} does not enforce {', '.join(unmet)} of its contract, because a table keeps the "
                    "constraints that it was created with: run it with --full-refresh to add them"
                )
            return layout.changes(table, relation.render())

    @available.parse(lambda *a, **k: [])
    def comment_changes(self, relation: PenstockRelation, columns: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The columns whose comment differs from the docs, with the new comment."""
        wanted = {name.lower(): (column.get("description") or "") for name, column in columns.items()}
        with self.connections.exception_handler(f"columns of {relation}"):
            have = self.lake.columns(relation.name_in_lake)
        return [
            (column.name, wanted[column.name.lower()])
            for column in have
            if column.name.lower() in wanted and (column.comment or "") != wanted[column.name.lower()]
        ]
