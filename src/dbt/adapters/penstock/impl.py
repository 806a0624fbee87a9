"""dbt's contract, translated: what there is to compute is computed by the engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from copy import copy
from datetime import datetime, timezone
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.base import available
from dbt.adapters.base.impl import ConstraintSupport, FreshnessResponse
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.sql import SQLAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.penstock import catalog, change_model, constraints, file_model, python_model, seed
from dbt.adapters.penstock.column import PenstockColumn
from dbt.adapters.penstock.config import STRATEGIES, PenstockConfig, is_window_model, problems, resolved
from dbt.adapters.penstock.connections import Handle, PenstockAdapterResponse, PenstockConnectionManager
from dbt.adapters.penstock.credentials import DATABASE
from dbt.adapters.penstock.relation import PenstockRelation
from penstock import columns as table_columns
from penstock.errors import NotFound
from penstock.lake import Lake
from penstock.layout import Layout
from penstock.names import Name, check_part, quote
from penstock.relations import FILE_FORMATS, Link
from penstock.runner import Runner
from penstock.sql import bind, statements

if TYPE_CHECKING:
    import agate

    from penstock.files import FileSource, Listings
    from penstock.windows import FileSelect, Target, WindowRun, WindowRuns

logger = AdapterLogger("Penstock")
_FULL = CapabilitySupport(support=Support.Full)


class PenstockAdapter(SQLAdapter):
    Relation = PenstockRelation
    Column = PenstockColumn
    ConnectionManager = PenstockConnectionManager
    connections: PenstockConnectionManager
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

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._beginning = threading.Lock()
        self._run_listings: Listings | None = None
        self._run_windows: WindowRuns | None = None

    # The way to the engine

    @property
    def lake(self) -> Lake:
        return self.connections.lake

    @property
    def handle(self) -> Handle:
        handle = self.connections.get_thread_connection().handle
        assert isinstance(handle, Handle)
        return handle

    @property
    def runner(self) -> Runner:
        return self.handle.runner

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        super().set_macro_resolver(macro_resolver)
        self.connections.manifest = macro_resolver  # type: ignore[attr-defined]
        self.lake.links = self._links(macro_resolver)
        file_model.add_lineage(macro_resolver)
        self._run_listings = None
        self._run_windows = None

    def _links(self, manifest: Any) -> dict[Name, Link]:
        """Every model and source whose config says that its data lies elsewhere."""
        links = {}
        nodes = [*getattr(manifest, "nodes", {}).values(), *getattr(manifest, "sources", {}).values()]
        for node in nodes:
            config = resolved(_config_of(node))
            if not config.get("location") or not node.schema or not node.identifier:
                continue
            format = str(config.get("format") or "delta").lower()
            if format != "delta" and format not in FILE_FORMATS:
                raise DbtRuntimeError(
                    f"The source {node.unique_id} has the format {format!r}: use delta or one of "
                    + ", ".join(FILE_FORMATS)
                )
            options = {str(key): str(value) for key, value in (config.get("options") or {}).items()}
            location = self.connections.location(str(config["location"]))
            links[Name(node.schema, node.identifier)] = Link(location, format, options)
        return links

    def pre_model_hook(self, config: Any) -> None:
        """Before anything of a model runs: its whole config, all errors at once."""
        model = getattr(config, "model", None)
        # dbt shows no error of a window that is raised here: `check_window` raises it where it does.
        if model is not None and not is_window_model(model.config):
            self._check_config(model)

    def _check_config(self, model: Any) -> None:
        found = problems(model.config.to_dict(), getattr(model.config, "_extra", {}))
        if is_window_model(model.config):
            from dbt.adapters.penstock import window_model

            found += window_model.problems(model)
        if found:
            raise CompilationError("Wrong config: " + "; ".join(found), node=model)

    # Schemas and relations: on disk, no JVM

    @classmethod
    def date_function(cls) -> str:
        return "current_timestamp()"

    @classmethod
    def quote(cls, identifier: str) -> str:
        return quote(identifier)

    def debug_query(self) -> None:
        with self.connections.exception_handler("debug"):
            self.lake.storage.check_root(writable=True)

    @available.parse(lambda *a, **k: [])
    def list_schemas(self, database: str) -> list[str]:
        return self.lake.schemas()

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        return schema.lower() in (known.lower() for known in self.lake.schemas())

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
            self.runner.spark.catalog.dropTempView(str(relation.identifier))
            return
        with self.connections.exception_handler(f"drop {relation}"):
            self.lake.drop(relation.name_in_lake, missing_ok=True, owns_location=self._owns_location(relation))

    def _owns_location(self, relation: PenstockRelation) -> bool:
        """A model owns the location that its config names; a source never does."""
        nodes = getattr(self._macro_resolver, "nodes", {}).values()
        name = relation.name_in_lake
        return any(
            resolved(_config_of(node)).get("location")
            and (str(node.schema).lower(), str(node.identifier).lower()) == (name.schema, name.identifier)
            for node in nodes
        )

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
        return list(STRATEGIES)

    @available.parse_none
    def incremental_strategy(self, config: Any) -> str:
        """The strategy that the config names; else merge where there is a key, and append where there is none."""
        given = config.get("incremental_strategy")
        return str(given) if given else ("merge" if config.get("unique_key") else "append")

    @available.parse_none
    def check_unique_key(self, unique_key: str | list[str] | None, columns: list[PenstockColumn]) -> None:
        """Delta says of a key that is no column only that it has an internal error."""
        keys = [unique_key] if isinstance(unique_key, str) else unique_key or []
        known = {column.name.lower() for column in columns}
        unknown = [key for key in keys if key and key.strip("`").lower() not in known]
        if unknown:
            raise CompilationError(
                f"`unique_key` names {', '.join(unknown)}, and the table has no such column: it has "
                + ", ".join(column.name for column in columns)
            )

    @available.parse(lambda *a, **k: "")
    def table_clauses(self, model: Mapping[str, Any]) -> str:
        """What CREATE TABLE says between USING delta and AS."""
        return self._layout(model).clauses()

    def _layout(self, model: Mapping[str, Any]) -> Layout:
        config = resolved(model["config"])
        persist = (config.get("persist_docs") or {}).get("relation")
        checks = constraints.checks(model) if (config.get("contract") or {}).get("enforced") else {}
        for constraint in constraints.unsupported(model):
            self.process_parsed_constraint(constraint, lambda _: None)
        return Layout.from_config(config, comment=model.get("description") if persist else None, checks=checks)

    @available.parse(lambda *a, **k: [])
    def layout_changes(self, relation: PenstockRelation, model: Mapping[str, Any]) -> list[str]:
        """The statements that bring an existing table to its model's config."""
        with self.connections.exception_handler(f"layout of {relation}"):
            layout, table = self._layout(model), self.lake.log_of(relation.name_in_lake)
            if layout.differs_in_partitions(table):
                logger.warning(
                    f"{relation} is partitioned by {table.partition_columns or 'nothing'}, its config says "
                    f"{list(layout.partition_by)}: run it with --full-refresh to lay it out anew"
                )
            return layout.changes(table, relation.render())

    @available.parse_none
    def check_location(self, relation: PenstockRelation, query: str) -> None:
        """Before a first build: a location that holds another table of other columns is someone else's."""
        name = relation.name_in_lake
        link = self.lake.links.get(name)
        if link is None or self.lake.is_linked_on_disk(name) or self.lake.find(name) is None:
            return
        theirs = [column.name.lower() for column in self.lake.columns(name)]
        ours = [column.name.lower() for column in self.get_column_schema_from_query(query)]
        if sorted(theirs) != sorted(ours):
            raise DbtRuntimeError(
                f"The location {link.location} holds another table, with the columns {', '.join(theirs)}; "
                f"{name} has {', '.join(ours)}. Nothing was changed: give the model a location of its own."
            )

    @available.parse(lambda *a, **k: False)
    def view_is_current(self, relation: PenstockRelation, sql: str, model: Mapping[str, Any]) -> bool:
        with self.connections.exception_handler(sql):
            return self.lake.view_is_current(relation.name_in_lake, sql, **_view_docs(model))

    @available.parse_none
    def create_view(self, relation: PenstockRelation, sql: str, model: Mapping[str, Any]) -> None:
        with self.connections.exception_handler(sql):
            self.lake.create_view(relation.name_in_lake, sql, runner=self.runner, **_view_docs(model))

    @available.parse(lambda *a, **k: False)
    def is_there(self, relation: PenstockRelation) -> bool:
        """Whether a relation is on disk now, whatever dbt's cache says."""
        return self.lake.find(relation.name_in_lake) is not None

    @available.parse(lambda *a, **k: False)
    def samples(self) -> bool:
        """Whether dbt was given `--sample`, which Jinja's `flags` do not tell."""
        from dbt.flags import get_flags

        return getattr(get_flags(), "SAMPLE", None) is not None

    @available.parse(lambda *a, **k: False)
    def is_file_model(self, model: Mapping[str, Any]) -> bool:
        return file_model.is_file_model(model["config"])

    @available.parse(lambda *a, **k: PenstockAdapterResponse(_message="OK"))
    def ingest_files(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], replace: bool
    ) -> PenstockAdapterResponse:
        """Bring a file model's new files in; nothing new starts no Spark."""
        # Not imported above: pyarrow is for those who read files.
        from penstock import files

        with self.connections.exception_handler(sql):
            report = files.ingest(
                self.lake,
                relation.name_in_lake,
                self._file_source(model),
                sql,
                runner=self.runner,
                full_refresh=replace,
                max_batches=1 if self.samples() else None,
                table=self._layout(model),
                listings=self._listings,
                on_batch=lambda batch: logger.info(f"{relation.name_in_lake}: {batch}"),
            )
        for warning in report.warnings:
            logger.warning(warning)
        return file_model.response(report)

    @available.parse(lambda *a, **k: "")
    def preview_files(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], rows: int | None = None
    ) -> str:
        """A file model's query over one batch of its files; nothing comes in."""
        from penstock import files

        with self.connections.exception_handler(sql):
            if model["config"].get("source_path"):
                return self._window_files(self._window_target(relation, model), sql, model).preview()
            return files.preview(
                self.lake,
                relation.name_in_lake,
                self._file_source(model),
                sql,
                runner=self.runner,
                rows=rows,
                listings=self._listings,
            )

    @available.parse_none
    def given_data(self, test: Mapping[str, Any]) -> dict[str, Any] | None:
        """The rows that a unit test gives for `@data`, and the types of its columns; None where it is no such test."""
        from penstock import files

        model = file_model.tested(test, self._macro_resolver)
        if model is None:
            return None
        rows = file_model.given_rows(test, model, self._macro_resolver)
        with self.connections.exception_handler(f"unit test {test['name']}"):
            name, source = Name(model.schema, model.identifier), self._file_source(model.to_dict())
            types = files.data_columns(self.lake, name, source, runner=self.runner, listings=self._listings)
        return {"rows": rows, "types": {column.lower(): type for column, type in types.items()}}

    @available.parse(lambda *a, **k: "")
    def bind_data(self, sql: str, relation: str) -> str:
        """The text with a relation in place of `@data`."""
        return bind(sql, "data", relation)

    @property
    def _listings(self) -> Listings:
        """One listing a run and root, whichever models read it."""
        from penstock.files import Listings

        with self._beginning:
            if self._run_listings is None:
                self._run_listings = Listings(self.lake.storage_options)
            return self._run_listings

    @available.parse_none
    def check_window(self, model: Mapping[str, Any]) -> None:
        """Before anything of a window runs: the model's whole config, all errors at once."""
        node = copy(self._macro_resolver.nodes[model["unique_id"]])  # type: ignore[union-attr]
        node.compiled_code = model["compiled_code"]
        self._check_config(node)

    @available.parse(lambda *a, **k: False)
    def window_needs_spark(self, relation: PenstockRelation, model: Mapping[str, Any], full_refresh: bool) -> bool:
        """Whether a window that dbt has come to will be run."""
        from dbt.adapters.penstock import window_model

        with self.connections.exception_handler(f"windows of {relation}"):
            return self._window_run(relation, model, full_refresh).needs_spark(window_model.window_of(model))

    @available.parse(lambda *a, **k: PenstockAdapterResponse(_message="OK"))
    def run_window(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], full_refresh: bool
    ) -> PenstockAdapterResponse:
        """Bring in the window that dbt has come to, with others where they are packed; or tell why not."""
        from dbt.adapters.penstock import window_model
        from penstock.windows import TableSelect

        with self.connections.exception_handler(sql):
            run = self._window_run(relation, model, full_refresh)
            target, window = self._window_target(relation, model), window_model.window_of(model)
            if file_model.is_file_model(model["config"]):
                return window_model.response(run.run(window, target, self._window_files(target, sql, model)))
            select = TableSelect(self.lake, sql, window, fixed=not run.packed)
            return window_model.response(run.run(window, target, select))

    def _window_run(self, relation: PenstockRelation, model: Mapping[str, Any], full_refresh: bool) -> WindowRun:
        """This invocation's run of a model; the first of its windows to arrive begins it."""
        from dbt.adapters.penstock import window_model
        from penstock.windows import WindowRun, WindowRuns

        def begin() -> WindowRun:
            target = self._window_target(relation, model)
            request = window_model.request(model, self._macro_resolver, target.settings, full_refresh)
            return WindowRun(target, request, warn=logger.warning)

        with self._beginning:
            runs = self._run_windows = self._run_windows or WindowRuns()
        return runs.of(str(model["unique_id"]), begin)

    def _window_files(self, target: Target, sql: str, model: Mapping[str, Any]) -> FileSelect:
        from dbt.adapters.penstock import window_model

        base = self.connections.project_root
        return window_model.file_select(target, sql, self._file_source(model), base, self._listings)

    def _window_target(self, relation: PenstockRelation, model: Mapping[str, Any]) -> Target:
        from penstock.windows import Target, WindowSettings

        settings = WindowSettings.from_config(model["config"], str(model["unique_id"]))
        return Target(self.lake, relation.name_in_lake, settings, self._layout(model), self.runner)

    def _file_source(self, model: Mapping[str, Any]) -> FileSource:
        return file_model.file_source(
            model["config"], self._macro_resolver, self.connections.project_root, str(model["unique_id"])
        )

    @available.parse(lambda *a, **k: False)
    def follows_changes(self, model: Mapping[str, Any]) -> bool:
        return bool(model["config"].get("incremental_strategy") == change_model.STRATEGY)

    @available.parse(lambda *a, **k: PenstockAdapterResponse(_message="OK"))
    def merge_changes(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], replace: bool
    ) -> PenstockAdapterResponse:
        """Bring a model's table to its sources' current versions; no row changed starts no Spark."""
        from penstock import changes

        with self.connections.exception_handler(sql):
            report = changes.merge_changes(
                self.lake,
                relation.name_in_lake,
                change_model.change_source(model, self._macro_resolver),
                sql,
                runner=self.runner,
                full_refresh=replace,
                table=self._layout(model),
                on_window=lambda window: logger.info(f"{relation.name_in_lake}: {window}"),
            )
        for warning in report.warnings:
            logger.warning(warning)
        return change_model.response(report)

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


def _config_of(node: Any) -> Mapping[str, Any]:
    config = getattr(node, "config", None)
    if config is None:
        return {}
    return {**getattr(config, "_extra", {}), "location": config.get("location")}


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
