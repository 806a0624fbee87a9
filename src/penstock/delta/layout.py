"""The layout of a table: partitions, clustering, properties, comment and constraints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.config.keys import BY_NAME
from penstock.config.values import checked
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.sql.quoting import literal, quote

RETENTION = "delta.setTransactionRetentionDuration"
FORBIDDEN_PROPERTIES = {
    RETENTION: "if a transaction mark expires, data can be loaded twice",
}
_CHECKS = {key: BY_NAME[key].check for key in ("partition_by", "cluster_by", "table_properties")}
_CONSTRAINT = "delta.constraints."
_FEATURE = "delta.feature."
_VERSIONS = ("delta.minreaderversion", "delta.minwriterversion")


@dataclass(frozen=True)
class Layout:
    """The layout that a model's config asks for, as clauses of CREATE TABLE.

    >>> Layout(partition_by=("day",)).clauses()
    'partitioned by (`day`)'
    """

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    comment: str | None = None
    checks: dict[str, str] = field(default_factory=dict, hash=False)
    """CHECK constraints by name. They are written as properties, so that already the first commit enforces them."""

    @classmethod
    def problems(cls, config: Mapping[str, Any]) -> list[str]:
        """A sentence for each layout key in a config that is wrong."""
        values, problems = checked({key: value for key, value in config.items() if value is not None}, _CHECKS)
        if config.get("partition_by") and config.get("cluster_by"):
            problems.append(
                "`partition_by` and `cluster_by` exclude each other: a Delta table can have only one of them"
            )
        given = {_delta_key(str(name)) for name in values.get("table_properties", ())}
        problems += [
            f"`table_properties` may not set {key}: {why}"
            for key, why in FORBIDDEN_PROPERTIES.items()
            if _delta_key(key) in given
        ]
        return problems

    @classmethod
    def from_config(
        cls,
        config: Mapping[str, Any],
        *,
        comment: str | None = None,
        checks: Mapping[str, str] | None = None,
    ) -> Layout:
        """The layout in a model's config. One PenstockError names everything that is wrong."""
        problems = cls.problems(config)
        if problems:
            raise PenstockError("; ".join(problems))
        values, _ = checked({key: value for key, value in config.items() if value is not None}, _CHECKS)
        return cls(
            partition_by=values.get("partition_by", ()),
            cluster_by=values.get("cluster_by", ()),
            properties={str(key): _property(value) for key, value in values.get("table_properties", {}).items()},
            comment=comment or None,
            checks=dict(checks or {}),
        )

    def clauses(self) -> str:
        """The clauses between `CREATE TABLE … USING delta` and `AS`."""
        parts = []
        if self.partition_by:
            parts.append(f"partitioned by ({', '.join(map(quote, self.partition_by))})")
        if self.cluster_by:
            parts.append(f"cluster by ({', '.join(map(quote, self.cluster_by))})")
        if self.comment:
            parts.append(f"comment {literal(self.comment)}")
        properties = self.properties | {_CONSTRAINT + name: check for name, check in self.checks.items()}
        if properties:
            parts.append(f"tblproperties ({_pairs(properties)})")
        return "\n".join(parts)

    def with_properties(self, properties: Mapping[str, str]) -> Layout:
        return replace(self, properties=self.properties | dict(properties))

    def changes(self, table: Table, name: str) -> list[str]:
        """The statements that give an existing table this layout, as far as Delta allows it."""
        statements = []
        differing = {key: value for key, value in self.properties.items() if not _has(table, key, value)}
        if differing:
            statements.append(f"alter table {name} set tblproperties ({_pairs(differing)})")
        if self.comment and table.description != self.comment:
            statements.append(f"comment on table {name} is {literal(self.comment)}")
        by_partitions = self.partition_by or table.partition_columns
        if not by_partitions and _lower(table.clustering_columns) != _lower(self.cluster_by):
            columns = f"({', '.join(map(quote, self.cluster_by))})" if self.cluster_by else "none"
            statements.append(f"alter table {name} cluster by {columns}")
        return statements

    def unmet_checks(self, table: Table) -> list[str]:
        """The names of constraints that a table does not have in this form. Only a new table gets constraints."""
        properties = {key.lower(): _without_spaces(value) for key, value in table.properties.items()}
        return [
            name
            for name, check in self.checks.items()
            if properties.get((_CONSTRAINT + name).lower()) != _without_spaces(check)
        ]

    def differs_in_partitions(self, table: Table) -> bool:
        """Whether a table has other partitions than this layout: only a full refresh can change partitions."""
        wanted = _lower(self.partition_by)
        return bool(wanted or self.cluster_by) and wanted != _lower(table.partition_columns)


def _has(table: Table, key: str, value: str) -> bool:
    """Whether a table has a property already. Setting it again would add a commit to every run."""
    wanted = _delta_key(key)
    # The protocol, not the properties, contains a table's features and versions.
    if wanted in {_FEATURE + name.lower() for name in table.features}:
        return True
    if wanted in _VERSIONS:
        return value.isdecimal() and int(value) <= table.protocol_versions[_VERSIONS.index(wanted)]
    return {_delta_key(name): current for name, current in table.properties.items()}.get(wanted) == value


def _delta_key(key: str) -> str:
    """A property's name for comparison. Delta ignores the case of its own properties."""
    return key.lower() if key.lower().startswith("delta.") else key


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _without_spaces(text: str) -> str:
    """A constraint for comparison. ALTER TABLE writes its words with single spaces."""
    return "".join(text.split())


def _property(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
