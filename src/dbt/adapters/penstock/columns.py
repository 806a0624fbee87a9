"""The columns of relations and queries, and the changes that `on_schema_change` makes to a table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dbt.adapters.base import BaseRelation, available
from dbt_common.exceptions import CompilationError

from dbt.adapters.penstock.column import PenstockColumn
from dbt.adapters.penstock.engine import EngineAdapter
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.relation import PenstockRelation
from penstock.delta.schema_changes import Difference, fitted, with_new_fields
from penstock.delta.table import Column as TableColumn
from penstock.errors import NotFound
from penstock.protocol import schema
from penstock.sql import quoting
from penstock.sql.tokens import statements


class Columns(EngineAdapter):
    """Reads columns, compares them, and changes them in a table."""

    @available.parse(lambda *a, **k: [])
    def get_columns_in_relation(self, relation: PenstockRelation) -> list[PenstockColumn]:
        """The columns of a relation, without a JVM for a table or view; empty if it does not exist."""
        with self.connections.exception_handler(f"columns of {relation}"):
            if relation.is_temporary:
                columns = self.runner.columns_of_relation(relation.render())
            else:
                try:
                    columns = self.lake.columns(relation.name_in_lake)
                except NotFound:
                    return []
        return [PenstockColumn.of(column) for column in columns]

    @available.parse(lambda *a, **k: [])
    def get_column_schema_from_query(self, sql: str) -> list[PenstockColumn]:
        """The columns of a query; statements before it are run. Starts Spark."""
        *header, query = statements(sql)
        with self.connections.exception_handler(sql):
            for statement in header:
                self.runner.run(statement)
            return [PenstockColumn.of(column) for column in self.runner.columns_of(query)]

    def expand_column_types(self, goal: BaseRelation, current: BaseRelation) -> None:
        """Nothing to do: a Delta string has no length."""

    @available.parse(lambda *a, **k: [])
    def columns_to_fill(
        self, relation: PenstockRelation, query: PenstockRelation, evolves: bool | None
    ) -> list[PenstockColumn]:
        """The columns that `on_schema_change: ignore` writes: the table's, or the query's if the MERGE adds columns.

        An error if the query lacks a column of the table.
        """
        made: list[PenstockColumn] = self.get_columns_in_relation(query)
        if evolves:
            return made
        have: list[PenstockColumn] = self.get_columns_in_relation(relation)
        names = {column.name.lower() for column in made}
        missing = [column.name for column in have if column.name.lower() not in names]
        if missing:
            raise CompilationError(
                f"The model does not return {', '.join(missing)}, which {relation} has. With "
                "`on_schema_change: ignore` a model returns all columns of its table. Return the column again, set "
                "`on_schema_change` to append_new_columns (the column stays, new rows have null there) or to "
                "sync_all_columns (the column is dropped), or run with --full-refresh."
            )
        return have

    @available.parse(lambda *a, **k: {})
    def schema_changes(self, query: PenstockRelation, relation: PenstockRelation) -> dict[str, Any]:
        """How the columns of a query and a table differ, in the format of dbt's `check_for_schema_changes`."""
        made, have = self.get_columns_in_relation(query), self.get_columns_in_relation(relation)
        difference = Difference(_in_engine(made), _in_engine(have))
        new, gone = {column.name for column in difference.new}, set(difference.gone)
        old = {column.name: column.data_type for column in have}
        return {
            "schema_changed": bool(difference),
            "source_not_in_target": [column for column in made if column.name in new],
            "target_not_in_source": [column for column in have if column.name in gone],
            "source_columns": made,
            "target_columns": have,
            "new_target_types": [
                {"column_name": name, "new_type": type, "old_type": old[name]}
                for name, type in difference.retyped.items()
            ],
        }

    @available.parse_none
    def adapt_columns(self, relation: PenstockRelation, columns: list[PenstockColumn], on_schema_change: str) -> None:
        """Add, drop and retype a table's columns as `on_schema_change` says."""
        name = relation.name_in_lake
        with self.connections.exception_handler(f"columns of {relation}"):
            difference = Difference(_in_engine(columns), self.lake.columns(name))
            schema.adapt(self.lake, name, difference, on_schema_change, self.runner, note=None, warn=logger.warning)

    @available.parse_none
    def change_columns(
        self,
        relation: PenstockRelation,
        add: Iterable[PenstockColumn] | None = None,
        remove: Iterable[PenstockColumn] | None = None,
        retype: Mapping[str, str] | None = None,
    ) -> None:
        """Add, drop and retype columns of a table in one commit."""
        with self.connections.exception_handler(f"columns of {relation}"):
            schema.change_columns(
                self.lake,
                relation.name_in_lake,
                add={column.name: column.data_type for column in add or ()},
                remove=[column.name for column in remove or ()],
                retype=dict(retype or {}),
                runner=self.runner,
            )

    @available.parse(lambda self, relation, query, *a, **k: query)
    def arranged(
        self, relation: PenstockRelation, query: PenstockRelation, on_schema_change: str, evolves: bool = False
    ) -> PenstockRelation:
        """The relation to write a table from: the query, or a temporary view of it with the table's order of fields.

        Warns of values that the table's types may change.
        """
        name = relation.name_in_lake
        with self.connections.exception_handler(f"columns of {relation}"):
            made, have = self.runner.columns_of_relation(query.render()), self.lake.columns(name)
            if evolves:
                have = with_new_fields(made, have)
            filled = fitted(made, have, str(name), on_schema_change, logger.warning)
            values = {
                column.name.lower(): column.value(quoting.quote(column.name), cast_plain=False) for column in filled
            }
            items = [
                (values.get(column.name.lower(), quoting.quote(column.name)), quoting.quote(column.name))
                for column in made
            ]
            if all(value.lower() == name.lower() for value, name in items):
                return query
            arranged = {"identifier": query.arranged_identifier}
            view: PenstockRelation = query.incorporate(path=arranged)  # type: ignore[no-untyped-call]
            selected = ", ".join(f"{value} as {name}" for value, name in items)
            self.runner.run(
                f"create or replace temporary view {view.render()} as select {selected} from {query.render()}"
            )
        return view

    @available.parse_none
    def check_unique_key(self, unique_key: str | list[str] | None, columns: list[PenstockColumn]) -> None:
        """An error if `unique_key` names a column that does not exist: Delta would report an internal error."""
        _check_names("unique_key", unique_key, columns)

    @available.parse_none
    def check_merge_columns(self, relation: PenstockRelation, config: Any, columns: list[PenstockColumn]) -> None:
        """An error if the columns to update, or to exclude, do not exist. The table may have more columns than the model."""
        _check_names("merge_update_columns", config.get("merge_update_columns"), columns)
        if excluded := config.get("merge_exclude_columns"):
            _check_names("merge_exclude_columns", excluded, [*columns, *self.get_columns_in_relation(relation)])

    @available.parse(lambda *a, **k: [])
    def quoted_names(self, names: str | list[str] | None, columns: list[PenstockColumn]) -> list[str]:
        """The columns or fields that a config names, quoted for SQL."""
        known = [column.name for column in columns]
        return [quoting.column(name, known) for name in _names(names)]

    @available.parse(lambda *a, **k: [])
    def plain_names(self, names: str | list[str] | None) -> list[str]:
        """The columns that a config names, without quotes."""
        return [quoting.plain(name) for name in _names(names)]


def _in_engine(columns: Iterable[PenstockColumn]) -> list[TableColumn]:
    return [TableColumn(column.name, column.data_type) for column in columns]


def _check_names(key: str, names: str | list[str] | None, columns: Iterable[PenstockColumn]) -> None:
    """An error if a config names a column that does not exist; of a field, its column is checked."""
    known = [column.name for column in columns]
    unknown = [name for name in _names(names) if quoting.head(name, known) is None]
    if unknown:
        raise CompilationError(
            f"`{key}` names {', '.join(unknown)}, and the table has no such column: it has " + ", ".join(known)
        )


def _names(names: str | list[str] | None) -> list[str]:
    return [name for name in ([names] if isinstance(names, str) else names or []) if name]
