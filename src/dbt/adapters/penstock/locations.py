"""Tables and sources whose data lies outside of the lake's folder: their links, and whether a table may be written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from multiprocessing.context import SpawnContext
from typing import Any

from dbt.adapters.base import available
from dbt.adapters.contracts.macros import MacroResolverProtocol
from dbt_common.exceptions import DbtRuntimeError

from dbt.adapters.penstock.config import kind_of, resolved, source_problems
from dbt.adapters.penstock.engine import EngineAdapter
from dbt.adapters.penstock.relation import PenstockRelation
from penstock.config.kinds import INGESTED, WINDOWS, Kind
from penstock.errors import PenstockError
from penstock.lake import locations
from penstock.lake.relations import Link
from penstock.secrets import redact
from penstock.sql.names import Name


class Locations(EngineAdapter):
    """The locations that the project's config names."""

    def __init__(self, config: Any, mp_context: SpawnContext) -> None:
        super().__init__(config, mp_context)
        self._located: dict[str, list[str]] = {}
        """The models that name each location."""

    def set_macro_resolver(self, macro_resolver: MacroResolverProtocol) -> None:
        self.lake.links = self._links(macro_resolver)
        super().set_macro_resolver(macro_resolver)

    def _links(self, manifest: Any) -> dict[Name, Link]:
        """The links of models and sources whose config names a location. An error if the config of a source is wrong."""
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
            # The location of a model is a Delta table; `format` and `options` may be keys of its own.
            files = config if node.resource_type == "source" else {}
            options = {str(key): str(value) for key, value in (files.get("options") or {}).items()}
            links[name] = Link(location, str(files.get("format") or "delta").lower(), options)
        return links

    def owns_location(self, relation: PenstockRelation) -> bool:
        """Whether a drop removes the data: a model owns the location that its config names, a source does not."""
        nodes = getattr(self._macro_resolver, "nodes", {}).values()
        name = relation.name_in_lake
        return any(
            resolved(_config_of(node)).get("location")
            and (str(node.schema).lower(), str(node.identifier).lower()) == (name.schema, name.identifier)
            for node in nodes
        )

    def _check_location_of(self, model: Any) -> None:
        """An error if a model's table would move, or be written over something else."""
        config = resolved(_config_of(model))
        with self.connections.exception_handler(f"location of {model.unique_id}"):
            name = Name(model.schema, model.identifier)
            location = self.connections.location(str(config["location"])) if config.get("location") else None
            locations.check_unmoved(self.lake, name, location)
            if location is None:
                return
            if others := [found for found in self._located.get(location, ()) if found != model.unique_id]:
                raise PenstockError(
                    f"{model.unique_id} and {', '.join(others)} have the same `location`",
                    where=location,
                    fix="Give each model its own location.",
                )
            locations.check(self.lake, name, location)
            if kind_of(model) in (*INGESTED, *WINDOWS, Kind.CDF_MERGE):
                if (table := locations.foreign(self.lake, name, location)) is not None:
                    locations.check_marked(name, table)

    @available.parse_none
    def check_location(self, relation: PenstockRelation, query: str, besides: Iterable[str] = ()) -> None:
        """Adopt a table of others at a model's location, before the model writes it; an error if its columns differ.

        It must have the columns of the query and those that the materialization adds (`besides`).
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


def _config_of(node: Any) -> Mapping[str, Any]:
    config = getattr(node, "config", None)
    if config is None:
        return {}
    return {**getattr(config, "_extra", {}), "location": config.get("location")}
