"""A relation as dbt names it: `schema`.`identifier`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter
from dbt.adapters.contracts.relation import ComponentName, Policy, RelationType

from penstock.names import Name, quote
from penstock.relations import Relation


@dataclass
class PenstockQuotePolicy(Policy):
    database: bool = True
    schema: bool = True
    identifier: bool = True


@dataclass
class PenstockIncludePolicy(Policy):
    database: bool = False
    schema: bool = True
    identifier: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class PenstockRelation(BaseRelation):
    quote_character: str = "`"
    quote_policy: Policy = field(default_factory=PenstockQuotePolicy)
    include_policy: Policy = field(default_factory=PenstockIncludePolicy)
    require_alias: bool = False
    renameable_relations: Any = field(default_factory=lambda: frozenset({RelationType.Table, RelationType.View}))
    replaceable_relations: Any = field(default_factory=lambda: frozenset({RelationType.Table, RelationType.View}))

    @classmethod
    def of(cls, relation: Relation, database: str) -> PenstockRelation:
        kinds = {"table": RelationType.Table, "view": RelationType.View, "files": RelationType.External}
        return cls.create(
            database=database,
            schema=relation.name.schema,
            identifier=relation.name.identifier,
            type=kinds[relation.kind],
        )

    @property
    def name_in_lake(self) -> Name:
        return Name(str(self.schema), str(self.identifier))

    @property
    def is_temporary(self) -> bool:
        """A temporary view: it has no schema, and only its own session knows it."""
        return not self.include_policy.schema or self.schema is None

    def quoted(self, identifier: str) -> str:
        return quote(identifier)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        # Spark's names know no case.
        return self.path.get_lowered_part(field) == value.lower()

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        column = event_time_filter.field_name
        bounds = []
        if event_time_filter.start:
            bounds.append(f"{column} >= timestamp '{event_time_filter.start}'")
        if event_time_filter.end:
            bounds.append(f"{column} < timestamp '{event_time_filter.end}'")
        return " and ".join(bounds)
