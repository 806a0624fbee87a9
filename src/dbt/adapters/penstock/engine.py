"""The way from dbt to the engine: the lake, this thread's runner, and what a model's config says of its table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from multiprocessing.context import SpawnContext
from typing import Any

from dbt.adapters.base.meta import available_property
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.sql import SQLAdapter
from dbt_common.behavior_flags import Behavior, BehaviorFlag
from dbt_common.exceptions import CompilationError, DbtRuntimeError

from dbt.adapters.penstock import constraints, file_model
from dbt.adapters.penstock.config import is_window_model, kind_of, problems, resolved, source_problems
from dbt.adapters.penstock.connections import Handle, PenstockConnectionManager
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.relation import PenstockRelation
from penstock.api import Lake
from penstock.config.kinds import INGESTED, WINDOWS, Kind
from penstock.delta.layout import Layout
from penstock.errors import PenstockError
from penstock.lake import locations
from penstock.lake.relations import Link
from penstock.secrets import redact
from penstock.spark.runner import Runner
from penstock.sql.names import Name

_MADE_AS_TABLES = ("table", "incremental", "seed", "snapshot")


class EngineAdapter(SQLAdapter):
    """What every part of the adapter needs; no macro calls it."""

    ConnectionManager = PenstockConnectionManager
    connections: PenstockConnectionManager

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._located: dict[str, list[str]] = {}
        """Which models name a location as their table's."""

    @available_property
    def behavior(self) -> Behavior:
        """dbt's flags of behaviour, rendered when a macro asks: for each, dbt reads the sources of all its callers."""
        if self._behavior is None:
            SQLAdapter.behavior.fset(self, self._flags)
        return self._behavior

    @behavior.setter  # type: ignore[no-redef]
    def behavior(self, flags: list[BehaviorFlag]) -> None:
        self._flags, self._behavior = flags, None

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

    def _links(self, manifest: Any) -> dict[Name, Link]:
        """Every model and source whose config says that its data lies elsewhere."""
        links = {}
        self._located = {}
        sources = getattr(manifest, "sources", {}).values()
        wrong = [f"{node.unique_id}: {found}" for node in sources for found in source_problems(_config_of(node))]
        if wrong:
            raise DbtRuntimeError(redact("Wrong config: " + "; ".join(wrong)))
        for node in [*getattr(manifest, "nodes", {}).values(), *sources]:
            config = resolved(_config_of(node))
            if not config.get("location") or not node.schema or not node.identifier:
                continue
            try:
                name, location = Name(node.schema, node.identifier), self.connections.location(str(config["location"]))
            except PenstockError as error:
                raise DbtRuntimeError(f"{node.unique_id}: {error}") from error
            if node.resource_type != "source":
                self._located.setdefault(location, []).append(node.unique_id)
            # A model's own keys may have such names; its location is a Delta table's.
            files = config if node.resource_type == "source" else {}
            options = {str(key): str(value) for key, value in (files.get("options") or {}).items()}
            links[name] = Link(location, str(files.get("format") or "delta").lower(), options)
        return links

    def owns_location(self, relation: PenstockRelation) -> bool:
        """A model owns the location that its config names; a source never does."""
        nodes = getattr(self._macro_resolver, "nodes", {}).values()
        name = relation.name_in_lake
        return any(
            resolved(_config_of(node)).get("location")
            and (str(node.schema).lower(), str(node.identifier).lower()) == (name.schema, name.identifier)
            for node in nodes
        )

    def pre_model_hook(self, config: Any) -> None:
        """Before anything of a model runs: its whole config, all errors at once."""
        model = getattr(config, "model", None)
        # dbt shows no error of a window that is raised here: `check_window` raises it where it does.
        if model is not None and not is_window_model(model.config):
            self._check_config(model)

    def _check_config(self, model: Any) -> None:
        errors = self._problems(model)
        # Of an ephemeral model nothing runs but the models that read it.
        errors += [f"{parent.name}: {line}" for parent in self._inlined(model) for line in self._problems(parent)]
        if errors:
            raise CompilationError(redact("Wrong config: " + "; ".join(errors)), node=model)
        if model.config.get("materialized") in _MADE_AS_TABLES:
            self._check_place(model)

    def _problems(self, model: Any) -> list[str]:
        found, kind = problems(model, self._macro_resolver), kind_of(model)
        errors = found.errors
        if file_model.is_file_model(model.config.to_dict()):
            errors += file_model.problems(model.config.to_dict(), self._macro_resolver)
        if kind in WINDOWS:
            from dbt.adapters.penstock import window_model

            errors += window_model.problems(model)
        for line in found.ignored:
            logger.debug(f"{model.unique_id}: {line}; it is not the model's own, and so no error")
        # The same check says the same of the same key.
        return list(dict.fromkeys(errors))

    def _inlined(self, model: Any) -> Iterator[Any]:
        """The ephemeral models whose SQL is part of a model's."""
        nodes = getattr(self._macro_resolver, "nodes", {})
        waiting, seen = list(getattr(model, "depends_on_nodes", ())), set()
        while waiting:
            node = nodes.get(waiting.pop())
            if node is None or node.unique_id in seen or node.config.get("materialized") != "ephemeral":
                continue
            seen.add(node.unique_id)
            waiting += node.depends_on_nodes
            yield node

    def _check_place(self, model: Any) -> None:
        """A model's table is written where its config says, and only where nothing else lies."""
        config = resolved(_config_of(model))
        with self.connections.exception_handler(f"location of {model.unique_id}"):
            name = Name(model.schema, model.identifier)
            location = self.connections.location(str(config["location"])) if config.get("location") else None
            locations.check_unmoved(self.lake, name, location)
            if location is None:
                return
            if others := [found for found in self._located.get(location, ()) if found != model.unique_id]:
                raise PenstockError(
                    f"{model.unique_id} and {', '.join(others)} have one `location`, and a table is one model's",
                    where=location,
                    fix="Give each a location of its own.",
                )
            locations.check(self.lake, name, location)
            if kind_of(model) in (*INGESTED, *WINDOWS, Kind.CDF_MERGE):
                if (table := locations.foreign(self.lake, name, location)) is not None:
                    locations.check_marked(name, table)

    def layout(self, model: Mapping[str, Any]) -> Layout:
        """How the table of a model is laid out, by its config."""
        config = resolved(model["config"])
        persist = (config.get("persist_docs") or {}).get("relation")
        checks = constraints.checks(model) if (config.get("contract") or {}).get("enforced") else {}
        for constraint in constraints.unsupported(model):
            self.process_parsed_constraint(constraint, lambda _: None)
        return Layout.from_config(config, comment=model.get("description") if persist else None, checks=checks)


def _config_of(node: Any) -> Mapping[str, Any]:
    config = getattr(node, "config", None)
    if config is None:
        return {}
    return {**getattr(config, "_extra", {}), "location": config.get("location")}
