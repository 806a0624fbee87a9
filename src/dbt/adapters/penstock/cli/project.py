"""The dbt project of the current folder: parsed and compiled by dbt itself, and the plan of each model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from dbt.adapters.factory import get_adapter_by_type
from dbt.cli.main import dbtRunner
from dbt_common.exceptions import DbtBaseException

from dbt.adapters.penstock.checks import errors_of
from dbt.adapters.penstock.cli.lake import ConfigError, Given
from dbt.adapters.penstock.config import kind_of
from dbt.adapters.penstock.connections import PenstockConnectionManager
from dbt.adapters.penstock.models import changes, files, windows
from penstock.config.kinds import INGESTED, WINDOWS, Kind
from penstock.errors import NotFound, PenstockError
from penstock.secrets import redact
from penstock.sql.names import Name

if TYPE_CHECKING:
    from penstock.inspection.planned import Planned
    from penstock.inspection.verification import Verification

# Nothing is printed or written, except dbt's own cache of the parsed project.
_QUIET = ("--quiet", "--log-level", "none", "--log-level-file", "none", "--no-write-json", "--no-use-colors")
_COMPILED = (*WINDOWS, Kind.CDF_MERGE)
_PLANNED = (*INGESTED, *_COMPILED)


@contextmanager
def _no_statement() -> Iterator[None]:
    """Refuse the statements that macros run while dbt compiles."""
    PenstockConnectionManager.refuses = "`penstock plan` compiles models and runs nothing"
    try:
        yield
    finally:
        PenstockConnectionManager.refuses = ""


@dataclass(frozen=True)
class PlannedModel:
    """What a run would do with one model."""

    model: str
    """Its name in the project."""
    relation: str
    kind: str
    planned: Planned | None = None
    note: str | None = None
    """Why nothing can be said before the run."""
    error: str | None = None
    """Why the run of this model would fail: a wrong config, or what planning found."""


class Project:
    """A project that dbt has parsed."""

    def __init__(self, given: Given, *, full_refresh: bool = False) -> None:
        given.credentials  # noqa: B018 - an error of the profile has the exit code of the config
        self._given = given
        self._full_refresh = full_refresh
        self._manifest = self._dbt("parse")

    def _dbt(self, *command: str, manifest: Any = None) -> Any:
        done = dbtRunner(manifest=manifest).invoke([*command, *_QUIET, *self._given.arguments()])
        if done.exception is not None:
            raise ConfigError(redact(" ".join(str(done.exception).split())))
        return done.result

    def select(self, selection: Sequence[str]) -> list[Any]:
        """The models of a selection, as the manifest has them; all models without one."""
        chosen = ["--select", *selection] if selection else []
        listed = self._dbt(
            "ls",
            "--resource-type",
            "model",
            "--output",
            "json",
            "--output-keys",
            "unique_id",
            *chosen,
            manifest=self._manifest,
        )
        names = [json.loads(line)["unique_id"] for line in listed or ()]
        return [self._manifest.nodes[name] for name in names]

    def plan(self, selection: Sequence[str]) -> list[PlannedModel]:
        """What a run would do with each model that comes in steps; and each other model whose config is wrong."""
        nodes = self.select(selection)
        with _no_statement():
            compiled = self._compiled([node for node in nodes if kind_of(node) in _COMPILED])
        planned = {
            node.unique_id: self._model(compiled.get(node.unique_id, node), node.unique_id in compiled)
            for node in nodes
        }
        found = {name: one for name, one in planned.items() if one is not None}
        return [self._after(name, one, found) for name, one in found.items()]

    def _after(self, name: str, one: PlannedModel, found: dict[str, PlannedModel]) -> PlannedModel:
        """The model, with a note if its tables have not changed yet, but will before it runs."""
        if one.planned is None or one.planned.has_work or one.kind != Kind.CDF_MERGE.value:
            return one
        waiting, seen, before = list(self._manifest.nodes[name].depends_on.nodes), set(), []
        while waiting:
            parent = waiting.pop()
            if parent in seen or parent not in self._manifest.nodes:
                continue
            seen.add(parent)
            waiting += self._manifest.nodes[parent].depends_on.nodes
            above = found.get(parent)
            if above is not None and above.planned is not None and above.planned.has_work:
                before.append(above.relation)
        return self._with(one, note=f"once {', '.join(sorted(before))} has run: decided at run") if before else one

    def verify(self, table: str) -> tuple[str, Verification]:
        """The table of a model, and its comparison with what the model computes; Spark starts."""
        from penstock.inspection.table_ledger import TableLedger
        from penstock.inspection.verification import verify_changes, verify_files

        wanted = Name.parse(table)
        models = (node for node in self._manifest.nodes.values() if node.resource_type == "model")
        node = next((node for node in models if Name(node.schema, node.identifier) == wanted), None)
        if node is None:
            raise PenstockError(f"No model of the project makes {wanted}", fix="Name a table as schema.identifier.")
        kind = kind_of(node)
        if kind not in (*INGESTED, Kind.CDF_MERGE):
            what = "another kind of model" if kind is None else kind.text
            raise PenstockError(
                f"{wanted} is {what}: its commits record no source versions, so there is nothing to compare with"
            )
        compiled = self._compiled([node]).get(node.unique_id)
        if compiled is None:
            raise PenstockError(f"dbt can't compile {node.name} without a query, so it can't be verified")
        adapter: Any = get_adapter_by_type("penstock")  # type: ignore[no-untyped-call]
        ledger, runner = TableLedger.open(adapter.lake, str(wanted)), adapter.lake.runner
        if kind is Kind.CDF_MERGE:
            source = changes.change_source(compiled.to_dict(), self._manifest)
            return str(wanted), verify_changes(ledger, source, compiled.compiled_code, runner)
        found = verify_files(ledger, adapter._file_source(node.to_dict()), compiled.compiled_code, runner)
        return str(wanted), found

    def _compiled(self, nodes: list[Any]) -> dict[str, Any]:
        """The models whose SQL dbt could compile without a query, by their ids."""
        if not nodes:
            return {}
        names = [".".join(node.fqn) for node in nodes]
        done = dbtRunner(manifest=self._manifest).invoke(
            ["compile", "--no-introspect", "--select", *names, *_QUIET, *self._given.arguments()]
        )
        if done.exception is not None and len(nodes) > 1:
            # dbt compiles nothing more after the first error.
            return {name: node for one in nodes for name, node in self._compiled([one]).items()}
        results = getattr(done.result, "results", None) or ()
        wanted = {node.unique_id for node in nodes}
        found = (result.node for result in results if str(result.status) == "success")
        return {node.unique_id: node for node in found if node.unique_id in wanted}

    def _model(self, node: Any, is_compiled: bool) -> PlannedModel | None:
        kind = kind_of(node)
        told = PlannedModel(node.name, str(Name(node.schema, node.identifier)), "other" if kind is None else kind.value)
        try:
            if errors := errors_of(node, self._manifest):
                return self._with(told, error="; ".join(errors))
            if kind not in _PLANNED:
                return None
            if kind in _COMPILED and not is_compiled:
                return self._with(told, note="its SQL needs a query to compile, so it is decided at run")
            return self._with(told, planned=self._planned(node, kind))
        except NotFound as error:
            # A table upstream that the same run would build first; or a folder that is missing.
            if kind is Kind.CDF_MERGE:
                return self._with(told, note=f"decided at run: {error.what}")
            return self._with(told, error=str(error))
        except (PenstockError, DbtBaseException) as error:
            return self._with(told, error=redact(" ".join(str(error).split())))

    @staticmethod
    def _with(told: PlannedModel, **values: Any) -> PlannedModel:
        return replace(told, **values)

    def _planned(self, node: Any, kind: Kind) -> Planned:
        from penstock.inspection.planned import planned_changes, planned_files

        adapter: Any = get_adapter_by_type("penstock")  # type: ignore[no-untyped-call]
        name, config = Name(node.schema, node.identifier), node.config.to_dict()
        refresh = bool(config.get("full_refresh")) if config.get("full_refresh") is not None else self._full_refresh
        if kind in INGESTED:
            source = adapter._file_source(node.to_dict())
            return planned_files(
                adapter.lake, name, source, adapter._listings, refresh=refresh or kind is Kind.FILE_TABLE
            )
        if kind is Kind.CDF_MERGE:
            source = changes.change_source(node.to_dict(), self._manifest)
            return planned_changes(adapter.lake, name, source, node.compiled_code, refresh=refresh)
        return self._windows(adapter, node, name, refresh)

    def _windows(self, adapter: Any, node: Any, name: Name, refresh: bool) -> Planned:
        from dbt.materializations.incremental.microbatch import MicrobatchBuilder

        from penstock.inspection.planned import planned_windows
        from penstock.windows import Target, Window, WindowSettings

        model = node.to_dict()
        settings = WindowSettings.from_config(model["config"], node.unique_id)
        relation = adapter.lake.find(name)
        incremental = relation is not None and relation.kind == "table" and not refresh
        builder = MicrobatchBuilder(node, incremental, None, None, datetime.now(timezone.utc))
        end = builder.build_end_time()
        start = builder.build_start_time(end)
        wanted = tuple(Window.of(*window) for window in builder.build_batches(start, end)) if start else ()
        select = None
        if files.is_file_model(model["config"]):
            target = Target(adapter.lake, name, settings, adapter.layout(model), adapter.lake.runner)
            select = adapter._window_files(target, node.compiled_code, model)
        packed = not windows.reads_batch(node, self._manifest)
        return planned_windows(adapter.lake, name, settings, wanted, select, refresh=refresh, packed=packed)
