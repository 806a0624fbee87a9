"""How a table is laid out: partitions, clustering, properties, comment and constraints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import PenstockError
from penstock.names import quote
from penstock.sql import tokens
from penstock.table import Table

RETENTION = "delta.setTransactionRetentionDuration"
FORBIDDEN_PROPERTIES = {
    RETENTION: "an expired transaction mark would let data in twice",
}
_CONSTRAINT = "delta.constraints."
_FEATURE = "delta.feature."


def literal(text: str) -> str:
    """A text as a SQL string."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


@dataclass(frozen=True)
class Layout:
    """What CREATE TABLE says beside the query.

    >>> Layout(partition_by=("day",)).clauses()
    'partitioned by (`day`)'
    """

    partition_by: tuple[str, ...] = ()
    cluster_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    comment: str | None = None
    checks: dict[str, str] | None = field(default=None, hash=False)
    """CHECK constraints by name: written as properties, so that the creating commit enforces them already.
    None where no contract says which there are."""

    @classmethod
    def problems(cls, config: Mapping[str, Any]) -> list[str]:
        problems = [
            f"`{key}` is a column's name or a list of them, not {config[key]!r}"
            for key in ("partition_by", "cluster_by")
            if not _is_names(config.get(key))
        ]
        if config.get("partition_by") and config.get("cluster_by"):
            problems.append("`partition_by` and `cluster_by` exclude each other: Delta lays a table out by one of them")
        properties = config.get("table_properties")
        if properties is not None and not isinstance(properties, Mapping):
            problems.append(f"`table_properties` is a block of properties, not {properties!r}")
        elif properties:
            problems += [
                f"`table_properties` may not set {key}: {why}"
                for key, why in FORBIDDEN_PROPERTIES.items()
                if key in properties
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
        problems = cls.problems(config)
        if problems:
            raise PenstockError("; ".join(problems))
        return cls(
            partition_by=_names(config.get("partition_by")),
            cluster_by=_names(config.get("cluster_by")),
            properties={str(key): _property(value) for key, value in (config.get("table_properties") or {}).items()},
            comment=comment or None,
            checks=None if checks is None else dict(checks),
        )

    def clauses(self) -> str:
        """The clauses between CREATE TABLE … USING delta and AS."""
        parts = []
        if self.partition_by:
            parts.append(f"partitioned by ({', '.join(map(quote, self.partition_by))})")
        if self.cluster_by:
            parts.append(f"cluster by ({', '.join(map(quote, self.cluster_by))})")
        if self.comment:
            parts.append(f"comment {literal(self.comment)}")
        properties = self.properties | {_CONSTRAINT + name: check for name, check in (self.checks or {}).items()}
        if properties:
            parts.append(f"tblproperties ({_pairs(properties)})")
        return "\n".join(parts)

    def with_properties(self, properties: Mapping[str, str]) -> Layout:
        return replace(self, properties=self.properties | dict(properties))

    def changes(self, table: Table, name: str) -> list[str]:
        """The statements that bring an existing table to this layout, where Delta allows it."""
        statements = []
        # A feature is not kept as a property: setting it again would be a commit in every run.
        features = {_FEATURE + name.lower() for name in table.features}
        have = table.properties
        differing = {
            key: value
            for key, value in self.properties.items()
            if have.get(key) != value and key.lower() not in features
        }
        if differing:
            statements.append(f"alter table {name} set tblproperties ({_pairs(differing)})")
        if self.comment and table.description != self.comment:
            statements.append(f"comment on table {name} is {literal(self.comment)}")
        by_partitions = self.partition_by or table.partition_columns
        if not by_partitions and table.clustering_columns != list(self.cluster_by):
            columns = f"({', '.join(map(quote, self.cluster_by))})" if self.cluster_by else "none"
            statements.append(f"alter table {name} cluster by {columns}")
        return statements + self._changed_checks(have, name)

    def _changed_checks(self, properties: Mapping[str, str], name: str) -> list[str]:
        """As a full refresh would leave them: a contract's own, and no others."""
        if self.checks is None:
            return []
        have = {
            key[len(_CONSTRAINT) :].lower(): expression
            for key, expression in properties.items()
            if key.lower().startswith(_CONSTRAINT)
        }
        wanted = {check.lower(): expression for check, expression in self.checks.items()}
        add, drop = (
            f"alter table {name} add constraint {{}} check ({{}})".format,
            f"alter table {name} drop constraint {{}}".format,
        )
        statements = []
        for check, expression in wanted.items():
            if check not in have:
                statements.append(add(check, expression))
            elif not _same(have[check], expression):
                # The old one goes when the rows are known to fit the new one.
                tried = f"{check}_changed"
                statements += [add(tried, expression), drop(check), add(check, expression), drop(tried)]
        return statements + [drop(check) for check in have if check not in wanted]

    def differs_in_partitions(self, table: Table) -> bool:
        """Whether only a new table can have this layout."""
        wanted = [column.lower() for column in self.partition_by]
        return bool(wanted or self.cluster_by) and wanted != [column.lower() for column in table.partition_columns]


def _same(expression: str, other: str) -> bool:
    """Whether two are the same but for the spaces: Delta writes an added constraint down word by word."""
    one, two = ([(token.token_type, token.text) for token in tokens(text)] for text in (expression, other))
    return one == two if one and two else expression == other


def _names(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(","))
    return tuple(value)


def _is_names(value: Any) -> bool:
    if value is None or isinstance(value, str):
        return value is None or bool(value.strip())
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) and item.strip() for item in value)


def _property(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _pairs(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties.items())
