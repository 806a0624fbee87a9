"""Models that the engine runs by itself: new files, windows and row-level changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

from dbt.adapters.base import available
from dbt.adapters.contracts.macros import MacroResolverProtocol

from dbt.adapters.penstock import change_model, file_model
from dbt.adapters.penstock.connections import PenstockAdapterResponse
from dbt.adapters.penstock.engine import EngineAdapter
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.relation import PenstockRelation
from penstock.sql.names import Name
from penstock.sql.tokens import bind

if TYPE_CHECKING:
    from penstock.files import FileSource, Listings
    from penstock.windows import FileSelect, Target, WindowRun, WindowRuns

Contract = Callable[[str], None] | None


class IngestionAdapter(EngineAdapter):
    """What the macros call for such models."""

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._beginning = threading.Lock()
        self._run_listings: Listings | None = None
        self._run_windows: WindowRuns | None = None

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        """A project was parsed: what an earlier run of this process has listed and begun is not this one's."""
        super().set_macro_resolver(macro_resolver)
        self._run_listings = None
        self._run_windows = None

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
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], replace: bool, contract: Contract = None
    ) -> PenstockAdapterResponse:
        """Bring a file model's new files in; nothing new starts no Spark. `contract` is dbt's macro that asserts one."""
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
                table=self.layout(model),
                listings=self._listings,
                on_batch=lambda batch: logger.info(f"{relation.name_in_lake}: {batch}"),
                warn=logger.warning,
                contract=contract,
            )
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
        self,
        relation: PenstockRelation,
        sql: str,
        model: Mapping[str, Any],
        full_refresh: bool,
        contract: Contract = None,
    ) -> PenstockAdapterResponse:
        """Bring in the window that dbt has come to, with others where they are packed; or tell why not."""
        from dbt.adapters.penstock import window_model
        from penstock.windows import TableSelect

        with self.connections.exception_handler(sql):
            run = self._window_run(relation, model, full_refresh)
            target = replace(self._window_target(relation, model), contract=contract)
            window = window_model.window_of(model)
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
        return Target(self.lake, relation.name_in_lake, settings, self.layout(model), self.runner)

    def _file_source(self, model: Mapping[str, Any]) -> FileSource:
        return file_model.file_source(
            model["config"], self._macro_resolver, self.connections.project_root, str(model["unique_id"])
        )

    @available.parse(lambda *a, **k: False)
    def follows_changes(self, model: Mapping[str, Any]) -> bool:
        return bool(model["config"].get("incremental_strategy") == change_model.STRATEGY)

    @available.parse(lambda *a, **k: PenstockAdapterResponse(_message="OK"))
    def merge_changes(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], replace: bool, contract: Contract = None
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
                table=self.layout(model),
                on_range=lambda merged: logger.info(f"{relation.name_in_lake}: {merged}"),
                warn=logger.warning,
                contract=contract,
            )
        return change_model.response(report)
