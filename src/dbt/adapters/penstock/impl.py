"""dbt's contract, translated: what there is to compute is computed by the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.base import available
from dbt.adapters.base.impl import ConstraintSupport, FreshnessResponse
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import CompilationError

from dbt.adapters.penstock import catalog, constraints, python_model, seed
from dbt.adapters.penstock.column import PenstockColumn
from dbt.adapters.penstock.config import PenstockConfig
from dbt.adapters.penstock.connections import PenstockAdapterResponse
from dbt.adapters.penstock.credentials import DATABASE
from dbt.adapters.penstock.ingestion import IngestionAdapter
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.relation import PenstockRelation
from penstock import config
from penstock.delta.schema_changes import Difference, fitted, with_new_fields
from penstock.delta.table import Column as TableColumn
from penstock.errors import NotFound
from penstock.lake import locations
from penstock.protocol import schema as table_columns
from penstock.sql import quoting
from penstock.sql.names import check_part
from penstock.sql.statement import statements

if TYPE_CHECKING:
    import agate

_FULL = CapabilitySupport(support=Support.Full)


class PenstockAdapter(IngestionAdapter):
    Relation = PenstockRelation
    Column = PenstockColumn
    AdapterSpecificConfigs = PenstockConfig

    CONSTRAINT_SUPPORT: ClassVar[dict[ConstraintType, ConstraintSupport]] = {
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

    # Schemas and relations: on disk, no JVM

    @classmethod
    def date_function(cls) -> str:
        return "current_timestamp()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        return quoting.quote(identifier)

    def debug_query(self) -> None:
        with self.connections.exception_handler("debug"):
            self.lake.storage.check_root(writable=True)

    @available.parse(lambda *a, **k: [])
    def list_schemas(self, database: str) -> list[str]:
        with self.connections.exception_handler("list schemas"):
            return self.lake.schemas()

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        return schema.lower() in (known.lower() for known in self.list_schemas(database))

    def create_schema(self, relation: PenstockRelation) -> None:
        with self.connections.exception_handler(f"create schema {relation.schema}"):
            self.lake.create_schema(str(relation.schema))

    def drop_schema(self, relation: PenstockRelation) -> None:
        with self.connections.exception_handler(f"drop schema {relation.schema}"):
            self.lake.drop_schema(str(relation.schema))
        self.cache.drop_schema(relation.database, relation.schema)

    def list_relations_without_caching(self, schema_relation: PenstockRelation) -> list[PenstockRelation]:
        with self.connections.exception_handler(f"list {schema_relation.schema}"):
            found = self.lake.relations(check_part(str(schema_relation.schema), "schema"))
        return [self.Relation.of(relation, DATABASE) for relation in found]

    def drop_relation(self, relation: PenstockRelation) -> None:
        self.cache_dropped(relation)
        if relation.is_temporary:
            for name in (str(relation.identifier), _arranged(relation)):
                self.runner.spark.catalog.dropTempView(name)
            return
        with self.connections.exception_handler(f"drop {relation}"):
            self.lake.drop(relation.name_in_lake, missing_ok=True, owns_location=self.owns_location(relation))

    def truncate_relation(self, relation: PenstockRelation) -> None:
        self.execute(f"delete from {relation}")

    def rename_relation(self, from_relation: PenstockRelation, to_relation: PenstockRelation) -> None:
        self.cache_renamed(from_relation, to_relation)
        with self.connections.exception_handler(f"rename {from_relation}"):
            self.lake.rename(from_relation.name_in_lake, to_relation.name_in_lake)

    @available.parse(lambda *a, **k: [])
    def get_columns_in_relation(self, relation: PenstockRelation) -> list[PenstockColumn]:
        with self.connections.exception_handler(f"columns of {relation}"):
            if relation.is_temporary:
                columns = self.runner.columns_of_relation(relation.render())
            else:
                try:
                    columns = self.lake.columns(relation.name_in_lake)
                except NotFound:
                    return []
        return [self.Column.of(column) for column in columns]

    @available.parse(lambda *a, **k: [])
    def get_column_schema_from_query(self, sql: str) -> list[PenstockColumn]:
        *header, query = statements(sql)
        with self.connections.exception_handler(sql):
            for statement in header:
                self.runner.run(statement)
            return [self.Column.of(column) for column in self.runner.columns_of(query)]

    def expand_column_types(self, goal: PenstockRelation, current: PenstockRelation) -> None:
        """A Delta string has no length to expand."""

    def validate_sql(self, sql: str) -> AdapterResponse:
        with self.connections.exception_handler(sql):
            self.runner.columns_of(sql)
        return PenstockAdapterResponse.of(None)

    # Catalog and freshness: from the Delta logs

    def _get_one_catalog(self, information_schema: Any, schemas: Any, used_schemas: Any) -> agate.Table:
        names = [relation.name for schema in schemas for relation in self.lake.relations(str(schema))]
        return self._catalog_filter_table(catalog.table(self.lake, names, DATABASE), used_schemas)

    def _get_one_catalog_by_relations(self, information_schema: Any, relations: Any, used_schemas: Any) -> agate.Table:
        names = [relation.name_in_lake for relation in relations]
        return self._catalog_filter_table(catalog.table(self.lake, names, DATABASE), used_schemas)

    def get_catalog_for_single_relation(self, relation: PenstockRelation) -> Any:
        with self.connections.exception_handler(f"catalog of {relation}"):
            return catalog.single(self.lake, relation.name_in_lake, DATABASE)

    def calculate_freshness_from_metadata_batch(
        self, sources: list[PenstockRelation], macro_resolver: MacroResolverProtocol | None = None
    ) -> tuple[list[AdapterResponse | None], dict[PenstockRelation, FreshnessResponse]]:
        now = datetime.now(timezone.utc)
        found = {}
        with self.connections.exception_handler("freshness"):
            for source in sources:
                modified = self.lake.last_modified(source.name_in_lake)
                found[source] = self._create_freshness_response(modified, now)
        return [], found

    # Types of seeds and literals

    @classmethod
    def convert_text_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "string"

    @classmethod
    def convert_number_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return seed.number_type(agate_table, col_idx)

    @classmethod
    def convert_integer_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return seed.integer_type(agate_table, col_idx)

    @classmethod
    def convert_datetime_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "timestamp"

    @classmethod
    def convert_time_type(cls, agate_table: agate.Table, col_idx: int) -> str:
        return "string"

    # What the macros call

    def valid_incremental_strategies(self) -> list[str]:
        return list(config.STRATEGIES)

    @available.parse_none
    def incremental_strategy(self, model_config: Any) -> str:
        """The strategy that the config names; else merge where there is a key, and append where there is none."""
        return config.strategy(model_config)

    @available.parse_none
    def check_unique_key(self, unique_key: str | list[str] | None, columns: list[PenstockColumn]) -> None:
        """Delta says of a key that is no column only that it has an internal error."""
        _check_names("unique_key", unique_key, columns)

    @available.parse_none
    def check_merge_columns(self, relation: PenstockRelation, config: Any, columns: list[PenstockColumn]) -> None:
        """The same of the columns to update, and of those to leave: the table may have more of these than the model."""
        _check_names("merge_update_columns", config.get("merge_update_columns"), columns)
        if excluded := config.get("merge_exclude_columns"):
            _check_names("merge_exclude_columns", excluded, [*columns, *self.get_columns_in_relation(relation)])

    @available.parse(lambda *a, **k: [])
    def quoted_names(self, names: str | list[str] | None, columns: list[PenstockColumn]) -> list[str]:
        """The columns, or fields of structs, that a config names, as SQL reads them."""
        known = [column.name for column in columns]
        return [quoting.column(name, known) for name in _names(names)]

    @available.parse(lambda *a, **k: [])
    def plain_names(self, names: str | list[str] | None) -> list[str]:
        """The columns that a config names, without quotes."""
        return [quoting.plain(name) for name in _names(names)]

    @available
    def literal(self, text: Any) -> str:
        """A text as a SQL string."""
        return quoting.literal(str(text))

    @available.parse(lambda *a, **k: [])
    def columns_to_fill(
        self, relation: PenstockRelation, query: PenstockRelation, evolves: bool | None
    ) -> list[PenstockColumn]:
        """With `on_schema_change: ignore`: all of the table's, or what the query returns where the MERGE adds columns."""
        made = self.get_columns_in_relation(query)
        if evolves:
            return made
        have = self.get_columns_in_relation(relation)
        names = {column.name.lower() for column in made}
        missing = [column.name for column in have if column.name.lower() not in names]
        if missing:
            raise CompilationError(
                f"The model does not return {', '.join(missing)}, and {relation} has it: with "
                "`on_schema_change: ignore` a model returns all columns of its table. Return it again, set "
                "`on_schema_change` to append_new_columns (it stays, new rows have null there) or to "
                "sync_all_columns (it is dropped), or run with --full-refresh."
            )
        return have

    @available.parse(lambda *a, **k: {})
    def schema_changes(self, query: PenstockRelation, relation: PenstockRelation) -> dict[str, Any]:
        """How a query's columns and a table's differ, in the words of dbt's `check_for_schema_changes`."""
        made, have = self.get_columns_in_relation(query), self.get_columns_in_relation(relation)
        difference = Difference(_in_engine(made), _in_engine(have))
        new, gone = {column.name for column in difference.new}, set(difference.gone)
        old = {column.name: column.data_type for column in have}
        return {
            "schema_changed": bool(difference),
            "source_not_in_target": [column for column in made if column.name in new],
            "target_not_in_source": [column for column in have if column.name in gone],
            "source_columns": made,
            "target_columns": have,
            "new_target_types": [
                {"column_name": name, "new_type": type, "old_type": old[name]}
                for name, type in difference.retyped.items()
            ],
        }

    @available.parse_none
    def adapt_columns(self, relation: PenstockRelation, columns: list[PenstockColumn], on_schema_change: str) -> None:
        """Give a table the columns and fields that `on_schema_change` asks for."""
        name = relation.name_in_lake
        with self.connections.exception_handler(f"columns of {relation}"):
            difference = Difference(_in_engine(columns), self.lake.columns(name))
            table_columns.adapt(
                self.lake, name, difference, on_schema_change, self.runner, note=None, warn=logger.warning
            )

    @available.parse(lambda self, relation, query, *a, **k: query)
    def arranged(
        self, relation: PenstockRelation, query: PenstockRelation, on_schema_change: str, evolves: bool = False
    ) -> PenstockRelation:
        """The relation to write a table from: the query, or a view of it with its structs laid out as the table's.

        Values that the table's types may change are warned about.
        """
        name = relation.name_in_lake
        with self.connections.exception_handler(f"columns of {relation}"):
            made, have = self.runner.columns_of_relation(query.render()), self.lake.columns(name)
            if evolves:
                have = with_new_fields(made, have)
            filled = fitted(made, have, str(name), on_schema_change, logger.warning)
            values = {
                column.name.lower(): column.value(quoting.quote(column.name), cast_plain=False) for column in filled
            }
            items = [
                (values.get(column.name.lower(), quoting.quote(column.name)), quoting.quote(column.name))
                for column in made
            ]
            if all(value.lower() == name.lower() for value, name in items):
                return query
            view = query.incorporate(path={"identifier": _arranged(query)})
            selected = ", ".join(f"{value} as {name}" for value, name in items)
            self.runner.run(
                f"create or replace temporary view {view.render()} as select {selected} from {query.render()}"
            )
        return view

    @available.parse(lambda *a, **k: "")
    def table_clauses(self, model: Mapping[str, Any]) -> str:
        """What CREATE TABLE says between USING delta and AS."""
        return self.layout(model).clauses()

    @available.parse(lambda *a, **k: [])
    def layout_changes(self, relation: PenstockRelation, model: Mapping[str, Any]) -> list[str]:
        """The statements that bring an existing table to its model's config."""
        with self.connections.exception_handler(f"layout of {relation}"):
            layout, table = self.layout(model), self.lake.log_of(relation.name_in_lake)
            if layout.differs_in_partitions(table):
                wanted = f"`cluster_by` {list(layout.cluster_by)}" if layout.cluster_by else list(layout.partition_by)
                logger.warning(
                    f"{relation} is partitioned by {table.partition_columns or 'nothing'}, its config says "
                    f"{wanted}: run it with --full-refresh to lay it out anew"
                )
            if unmet := layout.unmet_checks(table):
                logger.warning(
                    f"{relation} does not enforce {', '.join(unmet)}, which its contract names: the constraints are "
                    "those that it was made with; run it with --full-refresh"
                )
            return layout.changes(table, relation.render())

    @available.parse_none
    def check_location(self, relation: PenstockRelation, query: str, besides: Iterable[str] = ()) -> None:
        """Before a table is written: one at its location that is not ours is adopted if it has the same columns.

        Those are the query's, and what the materialization adds `besides`.
        """
        name = relation.name_in_lake
        with self.connections.exception_handler(f"location of {relation}"):
            link = self.lake.links.get(name)
            table = None if link is None else locations.foreign(self.lake, name, link.location)
            if link is None or table is None:
                return
            columns = [column.name for column in self.get_column_schema_from_query(query)]
            locations.check_adoptable(name, table, [*columns, *besides])
            self.lake.link(name, link)

    @available.parse(lambda *a, **k: False)
    def view_is_current(self, relation: PenstockRelation, sql: str, model: Mapping[str, Any]) -> bool:
        """Whether making it again would change nothing, and its contract, which may be new, holds."""
        name = relation.name_in_lake
        with self.connections.exception_handler(sql):
            if not self.lake.view_is_current(name, sql, **_view_docs(model)):
                return False
            contract = model["config"].get("contract") or {}
            return not contract.get("enforced") or constraints.certainly_fits(model, self.lake.columns(name))

    @available.parse_none
    def create_view(self, relation: PenstockRelation, sql: str, model: Mapping[str, Any]) -> None:
        with self.connections.exception_handler(sql):
            self.lake.create_view(relation.name_in_lake, sql, runner=self.runner, **_view_docs(model))

    @available.parse(lambda *a, **k: False)
    def is_there(self, relation: PenstockRelation) -> bool:
        """Whether a relation is on disk now, whatever dbt's cache says."""
        return self.lake.find(relation.name_in_lake) is not None

    @available.parse_none
    def clone_relation(self, source: PenstockRelation, target: PenstockRelation) -> None:
        with self.connections.exception_handler(f"clone {source}"):
            self.lake.clone(source.name_in_lake, target.name_in_lake, self.runner)

    @available.parse(lambda *a, **k: [])
    def comment_changes(self, relation: PenstockRelation, columns: Mapping[str, Any]) -> list[tuple[str, str]]:
        """The columns whose comment differs from the docs, with the text that it should have."""
        wanted = {name.lower(): (column.get("description") or "") for name, column in columns.items()}
        with self.connections.exception_handler(f"columns of {relation}"):
            have = self.lake.columns(relation.name_in_lake)
        return [
            (column.name, wanted[column.name.lower()])
            for column in have
            if column.name.lower() in wanted and (column.comment or "") != wanted[column.name.lower()]
        ]

    @available.parse_none
    def reshape(
        self,
        relation: PenstockRelation,
        add: Iterable[PenstockColumn] | None = None,
        remove: Iterable[PenstockColumn] | None = None,
        retype: Mapping[str, str] | None = None,
    ) -> None:
        """Add, remove and retype columns of a table in one commit."""
        with self.connections.exception_handler(f"columns of {relation}"):
            table_columns.reshape(
                self.lake,
                relation.name_in_lake,
                add={column.name: column.data_type for column in add or ()},
                remove=[column.name for column in remove or ()],
                retype=dict(retype or {}),
                runner=self.runner,
            )

    @available.parse_none
    def next_statement_conf(self, conf: Mapping[str, str]) -> None:
        """Spark settings for the next statement alone."""
        self.handle.set_conf(dict(conf))

    @available.parse(lambda *a, **k: "")
    def seed_query(
        self, agate_table: agate.Table, column_types: Mapping[str, str] | None, quote_columns: bool | None = None
    ) -> str:
        """A seed's rows as a temporary view; the query that reads them with their types."""
        with self.connections.exception_handler("seed"):
            return seed.query(self.runner, agate_table, self, column_types or {}, quote_columns)

    @available.parse(lambda *a, **k: "")
    def python_query(self, model: Mapping[str, Any], compiled_code: str) -> str:
        """A Python model's DataFrame as a temporary view; the query that reads it."""
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


def _arranged(relation: PenstockRelation) -> str:
    """The name of the view that `arranged` makes of a temporary relation."""
    return f"{relation.identifier}_arranged"


def _in_engine(columns: Iterable[PenstockColumn]) -> list[TableColumn]:
    return [TableColumn(column.name, column.data_type) for column in columns]


def _check_names(key: str, names: str | list[str] | None, columns: Iterable[PenstockColumn]) -> None:
    """That a config names columns; of a field of a struct, the column that it is in."""
    known = [column.name for column in columns]
    unknown = [name for name in _names(names) if quoting.head(name, known) is None]
    if unknown:
        raise CompilationError(
            f"`{key}` names {', '.join(unknown)}, and the table has no such column: it has " + ", ".join(known)
        )


def _names(names: str | list[str] | None) -> list[str]:
    return [name for name in ([names] if isinstance(names, str) else names or []) if name]


def _view_docs(model: Mapping[str, Any]) -> dict[str, Any]:
    """What `persist_docs` asks to keep with a view."""
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
