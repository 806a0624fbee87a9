"""The config of a model, checked before anything of it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import copy
from typing import Any

from dbt.adapters.base import available
from dbt_common.exceptions import CompilationError

from dbt.adapters.penstock.config import is_window_model, kind_of, problems
from dbt.adapters.penstock.locations import Locations
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.models import files, windows
from penstock.config.kinds import WINDOWS
from penstock.secrets import redact

_MADE_AS_TABLES = ("table", "incremental", "seed", "snapshot")


def errors_of(model: Any, manifest: Any) -> list[str]:
    """All errors in the config of one model."""
    found, kind = problems(model, manifest), kind_of(model)
    errors = found.errors
    if files.is_file_model(model.config.to_dict()):
        errors += files.problems(model.config.to_dict(), manifest)
    if kind in WINDOWS:
        errors += windows.problems(model)
    for line in found.ignored:
        logger.debug(f"{model.unique_id}: {line}; the key is inherited, so this is not an error")
    # Two checks may find the same error.
    return list(dict.fromkeys(errors))


class Checks(Locations):
    """All errors of a model's config in one message."""

    def pre_model_hook(self, config: Any) -> None:
        """Check the whole config before anything of a model runs."""
        model = getattr(config, "model", None)
        # dbt does not show an error of a window that is raised here, so `check_window` raises it later.
        if model is not None and not is_window_model(model.config):
            self._check_config(model)

    @available.parse_none
    def check_window(self, model: Mapping[str, Any]) -> None:
        """Check the whole config before anything of a window runs."""
        node = copy(self._macro_resolver.nodes[model["unique_id"]])  # type: ignore[union-attr]
        node.compiled_code = model["compiled_code"]
        self._check_config(node)

    def _check_config(self, model: Any) -> None:
        errors = self._problems(model)
        # An ephemeral model does not run; the models that read it report its errors.
        errors += [f"{parent.name}: {line}" for parent in self._inlined(model) for line in self._problems(parent)]
        if errors:
            raise CompilationError(redact("Wrong config: " + "; ".join(errors)), node=model)
        if model.config.get("materialized") in _MADE_AS_TABLES:
            self._check_location_of(model)

    def _problems(self, model: Any) -> list[str]:
        return errors_of(model, self._macro_resolver)

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
