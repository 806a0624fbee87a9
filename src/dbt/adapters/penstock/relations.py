"""Schemas and relations: folders of the lake, found and changed without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import BaseRelation, available

from dbt.adapters.penstock import constraints
from dbt.adapters.penstock.credentials import DATABASE
from dbt.adapters.penstock.locations import Locations
from dbt.adapters.penstock.relation import PenstockRelation
from penstock.sql.names import check_part


class Relations(Locations):
    """Lists, creates, renames, clones and drops relations."""

    @available.parse(lambda *a, **k: [])
    def list_schemas(self, database: str) -> list[str]:
        with self.connections.exception_handler("list schemas"):
            return self.lake.schemas()

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        return schema.lower() in (known.lower() for known in self.list_schemas(database))

    def create_schema(self, relation: BaseRelation) -> None:
        with self.connections.exception_handler(f"create schema {relation.schema}"):
            self.lake.create_schema(str(relation.schema))

    def drop_schema(self, relation: BaseRelation) -> None:
        with self.connections.exception_handler(f"drop schema {relation.schema}"):
            self.lake.drop_schema(str(relation.schema))
        self.cache.drop_schema(relation.database, relation.schema)

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        with self.connections.exception_handler(f"list {schema_relation.schema}"):
            found = self.all_relations(check_part(str(schema_relation.schema), "schema"))
        return [PenstockRelation.of(relation, DATABASE) for relation in found]

    @available.parse(lambda *a, **k: False)
    def is_there(self, relation: PenstockRelation) -> bool:
        """Whether a relation is in the lake now. dbt's cache is not asked."""
        return self.lake.find(relation.name_in_lake) is not None

    def drop_relation(self, relation: PenstockRelation) -> None:
        """Drop a relation, and a table's data only where the lake or the model owns it."""
        self.cache_dropped(relation)
        if relation.is_temporary:
            for name in (str(relation.identifier), relation.arranged_identifier):
                self.runner.drop_view(name)
            return
        with self.connections.exception_handler(f"drop {relation}"):
            self.lake.drop(relation.name_in_lake, missing_ok=True, owns_location=self.owns_location(relation))

    def truncate_relation(self, relation: PenstockRelation) -> None:
        self.execute(f"delete from {relation}")

    def rename_relation(self, from_relation: PenstockRelation, to_relation: PenstockRelation) -> None:
        self.cache_renamed(from_relation, to_relation)
        with self.connections.exception_handler(f"rename {from_relation}"):
            self.lake.rename(from_relation.name_in_lake, to_relation.name_in_lake)

    @available.parse_none
    def clone_relation(self, source: PenstockRelation, target: PenstockRelation) -> None:
        """Make a shallow clone that has the source's ledger."""
        with self.connections.exception_handler(f"clone {source}"):
            self.lake.clone(source.name_in_lake, target.name_in_lake, self.runner)

    @available.parse(lambda *a, **k: False)
    def view_is_current(self, relation: PenstockRelation, sql: str, model: Mapping[str, Any]) -> bool:
        """Whether a view has this SQL and these docs already, and meets its contract. No JVM starts."""
        name = relation.name_in_lake
        with self.connections.exception_handler(sql):
            if not self.lake.view_is_current(name, sql, **_view_docs(model)):
                return False
            contract = model["config"].get("contract") or {}
            return not contract.get("enforced") or constraints.certainly_fits(model, self.lake.columns(name))

    @available.parse_none
    def create_view(self, relation: PenstockRelation, sql: str, model: Mapping[str, Any]) -> None:
        """Create or replace a view, after Spark has checked its SQL."""
        with self.connections.exception_handler(sql):
            self.lake.create_view(relation.name_in_lake, sql, runner=self.runner, **_view_docs(model))


def _view_docs(model: Mapping[str, Any]) -> dict[str, Any]:
    """The description and comments that `persist_docs` stores with a view."""
    persist = model["config"].get("persist_docs") or {}
    comments = {
        column["name"]: column["description"]
        for column in model.get("columns", {}).values()
        if persist.get("columns") and column.get("description")
    }
    return {
        "description": (model.get("description") or None) if persist.get("relation") else None,
        "comments": comments,
    }
