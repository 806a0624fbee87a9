"""The adapter's way to the engine: the lake, this thread's runner, and the layout of a model's table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.base.meta import available_property
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt.adapters.sql import SQLAdapter
from dbt_common.behavior_flags import Behavior, BehaviorFlag

from dbt.adapters.penstock import constraints
from dbt.adapters.penstock.config import resolved
from dbt.adapters.penstock.connections import PenstockConnectionManager
from dbt.adapters.penstock.handle import Handle
from penstock.api import Lake
from penstock.delta.layout import Layout
from penstock.lake.relations import Relation
from penstock.spark.runner import Runner


class EngineAdapter(SQLAdapter):
    """The base of every part of the adapter."""

    ConnectionManager = PenstockConnectionManager
    connections: PenstockConnectionManager

    @available_property
    def behavior(self) -> Behavior:
        """dbt's behaviour flags, rendered when a macro asks. dbt reads the source code of all callers for each flag."""
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

    def all_relations(self, schema: str) -> list[Relation]:
        """The relations of a schema, and the lake's own tables in it."""
        return [*self.lake.relations(schema), *self.lake.own_relations(schema)]

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        super().set_macro_resolver(macro_resolver)
        self.connections.manifest = macro_resolver

    @available.parse(lambda *a, **k: False)
    def samples(self) -> bool:
        """Whether dbt runs with `--sample`. Jinja's `flags` do not have it."""
        from dbt.flags import get_flags

        return getattr(get_flags(), "SAMPLE", None) is not None

    def layout(self, model: Mapping[str, Any]) -> Layout:
        """The layout of a model's table, from its config and its contract."""
        config = resolved(model["config"])
        persist = (config.get("persist_docs") or {}).get("relation")
        checks = constraints.checks(model) if (config.get("contract") or {}).get("enforced") else {}
        for constraint in constraints.unsupported(model):
            self.process_parsed_constraint(constraint, lambda _: None)
        return Layout.from_config(config, comment=model.get("description") if persist else None, checks=checks)
