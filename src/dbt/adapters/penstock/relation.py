"""A relation, rendered as `schema`.`identifier`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dbt.adapters.base.relation import BaseRelation, EventTimeFilter, InformationSchema
from dbt.adapters.contracts.relation import ComponentName, Policy, RelationType

from penstock.lake.relations import Relation
from penstock.lake.reserved import SYSTEM_TABLE
from penstock.sql.names import Name
from penstock.sql.quoting import quote


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
        kinds = {
            "table": RelationType.Table,
            "view": RelationType.View,
            "files": RelationType.External,
            SYSTEM_TABLE: RelationType.View,
        }
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
        """Whether it is a temporary view of one session: these have no schema."""
        return not self.include_policy.schema or self.schema is None

    @property
    def arranged_identifier(self) -> str:
        """The name of the view that `adapter.arranged` creates over a temporary relation."""
        return f"{self.identifier}_arranged"

    def information_schema(self, view_name: str | None = None) -> InformationSchema:
        """dbt's information schema, quoted with backticks."""
        found: InformationSchema = super().information_schema(view_name)
        return found.replace(quote_character=self.quote_character)

    def quoted(self, identifier: str) -> str:
        return quote(identifier)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        # Names in Spark are not case-sensitive.
        return self.path.get_lowered_part(field) == value.lower()

    def _render_event_time_filtered(self, event_time_filter: EventTimeFilter) -> str:
        """The filter of a window or a sample, rendered without reading the table. The run of a window renders it again."""
        from penstock.windows.filters import Filter

        if event_time_filter.start is None and event_time_filter.end is None:
            return ""
        # A CTE has no table whose columns could be looked up later.
        name = str(self.name_in_lake) if self.schema and self.identifier else ""
        return Filter(name, event_time_filter.field_name, event_time_filter.start, event_time_filter.end).marked()
