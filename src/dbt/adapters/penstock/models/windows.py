"""Microbatch models: what dbt knows of their windows, and the calls that their macros make."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from multiprocessing.context import SpawnContext
from typing import TYPE_CHECKING, Any

import jinja2
from dbt.adapters.base import available
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt_common.exceptions import DbtRuntimeError
from jinja2 import nodes

from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.models.files import Contract, FileModels, is_file_model
from dbt.adapters.penstock.relation import PenstockRelation
from dbt.adapters.penstock.response import PenstockAdapterResponse
from penstock.sql import quoting
from penstock.storage import given_location

# The functions import penstock.files and penstock.windows, because these bring pyarrow.
if TYPE_CHECKING:
    from penstock.windows import FileSelect, Outcome, Request, Target, Window, WindowRun, WindowRuns, WindowSettings

_OF_THE_BATCH = "__dbt_internal_microbatch_event_time_"
_CORE = ("dbt", "dbt_spark", "dbt_penstock")


def problems(node: Any) -> list[str]:
    """All errors of a model's windows that are found without Spark."""
    from penstock.sql import tokens as sql
    from penstock.windows import WindowSettings

    config = node.config.to_dict()
    found = WindowSettings.problems(config)
    names = sql.selected(node.compiled_code or "")
    event_time = quoting.plain(str(config.get("event_time") or "")).lower()
    if names is not None and event_time and event_time not in names:
        found.append(f"`event_time` names {event_time}, which the model does not select: it selects {', '.join(names)}")
    return found


def window_of(model: Mapping[str, Any]) -> Window:
    """The window that dbt runs now."""
    from penstock.windows import Window

    batch = model.get("batch")
    if batch is None or model.get("language") == "python":
        raise DbtRuntimeError(
            f"{model['unique_id']} is a microbatch model, and dbt gives no batch for it: microbatch models are written in SQL"
        )
    return Window.of(batch["event_time_start"], batch["event_time_end"])


def request(model: Mapping[str, Any], manifest: Any, settings: WindowSettings, full_refresh: bool) -> Request:
    """The windows that this `dbt run` is to run. Called for the first window to arrive, which is the first in time."""
    from dbt.flags import get_flags
    from dbt.materializations.incremental.microbatch import MicrobatchBuilder
    from dbt_common.invocation import get_invocation_started_at

    from penstock.windows import Request, Window

    node, window, flags = manifest.nodes[model["unique_id"]], window_of(model), get_flags()
    sample = getattr(flags, "SAMPLE", None)
    start, end = getattr(flags, "EVENT_TIME_START", None), getattr(flags, "EVENT_TIME_END", None)
    if sample is not None:
        start, end = sample.start, sample.end
    before = node.previous_batch_results
    if before is not None:
        windows = tuple(sorted(Window.of(*batch) for batch in before.failed))
    else:
        builder = MicrobatchBuilder(node, True, start, end, get_invocation_started_at())
        last = builder.build_end_time()
        windows = tuple(Window.of(window.start, max(last, window.end)).steps(settings.batch_size))
    return Request(
        windows,
        named=start is not None and before is None,
        full_refresh=full_refresh,
        # The filter of a sample is narrower than its window.
        packed=sample is None and not reads_batch(node, manifest),
        empty=bool(getattr(flags, "EMPTY", False)),
    )


def reads_batch(node: Any, manifest: Any) -> bool:
    """Whether a model, or a macro that it calls, reads the window that it is compiled for."""
    return any(_looks_at_batch(code) for code in _codes(node, manifest))


def _codes(node: Any, manifest: Any) -> Iterator[str]:
    yield node.raw_code
    seen: set[str] = set()
    waiting = list(node.depends_on.macros)
    while waiting:
        macro = manifest.macros.get(waiting.pop())
        if macro is None or macro.unique_id in seen or macro.package_name in _CORE:
            continue
        seen.add(macro.unique_id)
        waiting += macro.depends_on.macros
        yield macro.macro_sql


def _looks_at_batch(code: str) -> bool:
    try:
        tree = jinja2.Environment(extensions=["jinja2.ext.do"]).parse(code)
    except jinja2.TemplateSyntaxError:
        # Tags of dbt (`{% materialization %}`, `{% snapshot %}`, …): a model calls none of them.
        return False
    attributes = any(found.attr == "batch" for found in tree.find_all(nodes.Getattr))
    constants = [found.value for found in tree.find_all(nodes.Const) if isinstance(found.value, str)]
    return attributes or any(value == "batch" or value.startswith(_OF_THE_BATCH) for value in constants)


def response(outcome: Outcome) -> PenstockAdapterResponse:
    """The result of a window, for `run_results.json`."""
    return PenstockAdapterResponse(
        _message=outcome.message,
        code="OK",
        rows_affected=outcome.rows,
        rows_inserted=outcome.rows,
        version=outcome.version,
        files=outcome.files,
        bytes=outcome.bytes,
    )


class WindowModels(FileModels):
    """The calls that macros make for microbatch models."""

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._run_windows: WindowRuns | None = None
        self._beginning = threading.Lock()

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        """A project was parsed: forget the windows of an earlier run in this process."""
        super().set_macro_resolver(macro_resolver)
        self._run_windows = None

    @available.parse(lambda *a, **k: "")
    def preview_files(
        self, relation: PenstockRelation, sql: str, model: Mapping[str, Any], rows: int | None = None
    ) -> str:
        """A file model's query over one batch, or over one window, of its files; nothing is ingested."""
        if not model["config"].get("source_path"):
            query: str = super().preview_files(relation, sql, model, rows)
            return query
        with self.connections.exception_handler(sql):
            return self._window_files(self._window_target(relation, model), sql, model).preview()

    @available.parse(lambda *a, **k: False)
    def window_needs_spark(self, relation: PenstockRelation, model: Mapping[str, Any], full_refresh: bool) -> bool:
        """Whether the window that dbt runs now needs Spark."""
        with self.connections.exception_handler(f"windows of {relation}"):
            return self._window_run(relation, model, full_refresh).needs_spark(window_of(model))

    @available.parse(lambda *a, **k: PenstockAdapterResponse(_message="OK"))
    def run_window(
        self,
        relation: PenstockRelation,
        sql: str,
        model: Mapping[str, Any],
        full_refresh: bool,
        contract: Contract = None,
    ) -> PenstockAdapterResponse:
        """Run the window that dbt is at, together with the others of its pack."""
        from penstock.windows import TableSelect

        with self.connections.exception_handler(sql):
            run = self._window_run(relation, model, full_refresh)
            target = replace(self._window_target(relation, model), contract=contract)
            window = window_of(model)
            if is_file_model(model["config"]):
                return response(run.run(window, target, self._window_files(target, sql, model)))
            select = TableSelect(self.lake, sql, window, fixed=not run.packed)
            return response(run.run(window, target, select))

    def _window_run(self, relation: PenstockRelation, model: Mapping[str, Any], full_refresh: bool) -> WindowRun:
        """The run of a model in this invocation; its first window begins the run."""
        from penstock.windows import WindowRun, WindowRuns

        def begin() -> WindowRun:
            target = self._window_target(relation, model)
            asked = request(model, self._macro_resolver, target.settings, full_refresh)
            return WindowRun(target, asked, warn=logger.warning)

        with self._beginning:
            runs = self._run_windows = self._run_windows or WindowRuns()
        return runs.of(str(model["unique_id"]), begin)

    def _window_files(self, target: Target, sql: str, model: Mapping[str, Any]) -> FileSelect:
        from penstock.files import FileQuery
        from penstock.windows import DatedPath, FileSelect

        given, base = target.settings.source_path, self.connections.project_root
        return FileSelect(
            target.lake,
            target.spark,
            FileQuery.read(sql, str(target.name)),
            self._file_source(model),
            None
            if given is None
            else DatedPath(given_location(given, base, key="source_path", options=target.lake.storage_options)),
            target.settings,
            self._listings,
        )

    def _window_target(self, relation: PenstockRelation, model: Mapping[str, Any]) -> Target:
        from penstock.windows import Target, WindowSettings

        settings = WindowSettings.from_config(model["config"], str(model["unique_id"]))
        return Target(self.lake, relation.name_in_lake, settings, self.layout(model), self.runner)
