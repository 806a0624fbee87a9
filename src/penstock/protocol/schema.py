"""`on_schema_change`: makes a table fit the columns of its model's query.

Changes and windows call `fit` before a plan is written, and again for a plan that another run left. Files call `adapt`
under `sync_all_columns` only: under the other policies Delta adds a batch's new columns in the commit of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.delta.commits import note_of
from penstock.delta.schema_changes import APPEND, FAIL, SYNC, Difference, Fitted, fitted, warn_of_rewrite
from penstock.delta.table import Column, Table
from penstock.lake.folder import LakeFolder
from penstock.sql import casts
from penstock.sql.names import Name
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from penstock.spark.backend import Backend


def fit(
    lake: LakeFolder,
    name: Name,
    made: Sequence[Column],
    policy: str,
    runner: Backend,
    note: str,
    warn: Callable[[str], None],
    kept: str | None = None,
) -> list[Fitted]:
    """Make the table fit a query's columns, as `on_schema_change` says; the table's columns that the query fills.

    The columns come in the query's order. `note` is the note of a commit that rewrites the table. The column `kept` is
    added under every policy.
    """
    have = lake.columns(name)
    difference = Difference(made, have)
    if policy == FAIL:
        difference.refuse(str(name))
    adapt(lake, name, difference, policy, runner, note, warn, kept)
    return fitted(made, lake.columns(name), str(name), policy, warn)


def adapt(
    lake: LakeFolder,
    name: Name,
    difference: Difference,
    policy: str,
    runner: Backend,
    note: str | None,
    warn: Callable[[str], None],
    kept: str | None = None,
) -> None:
    """Change a table's columns under `append_new_columns` and `sync_all_columns`; do nothing under other policies."""
    added = [
        column for column in difference.new if policy in (APPEND, SYNC) or column.name.lower() == (kept or "").lower()
    ]
    new_fields = difference.new_fields if policy in (APPEND, SYNC) else []
    other = difference.other_than_new if policy == SYNC else []
    gone = difference.gone if policy == SYNC else []
    if not (added or new_fields or other or gone):
        return
    # A rewrite of the column adds its new fields as well.
    retyped = difference.retyped if other or gone else {}
    warn_of_rewrite(difference, retyped, str(name), warn)
    change_columns(
        lake,
        name,
        add={column.name: column.type for column in added},
        fields={} if retyped else {change.sql: str(change.query_type) for change in new_fields},
        remove=gone,
        retype=retyped,
        runner=runner,
        note=note,
    )


def change_columns(
    lake: LakeFolder,
    name: Name,
    *,
    add: Mapping[str, str],
    fields: Mapping[str, str] | None = None,
    remove: Sequence[str] = (),
    retype: Mapping[str, str] | None = None,
    runner: Backend,
    note: str | None = None,
) -> None:
    """Change a table's columns in one commit.

    Columns are added in the metadata. To remove or retype columns, the table is rewritten; `note` is the note of that
    commit. The table keeps its id, properties and protocol: Delta can drop a column without a rewrite only after an
    upgrade of the protocol that many readers do not support.

    `fields` are new fields of structs, by their quoted path. They are added only if nothing is removed or retyped.
    """
    lake.check_writable()
    relation = lake.get(name)
    if not remove and not retype:
        paths = {quote(column): type for column, type in add.items()} | dict(fields or {})
        if paths:
            added = ", ".join(f"{path} {type}" for path, type in paths.items())
            runner.run(f"alter table {name.sql} add columns ({added})")
        return
    gone = {column.lower() for column in remove}
    types = {column.lower(): type for column, type in (retype or {}).items()}
    wanted = [
        f"{_retyped(column, types[column.name.lower()])} as {quote(column.name)}"
        if column.name.lower() in types
        else quote(column.name)
        for column in lake.columns(name)
        if column.name.lower() not in gone
    ]
    wanted += [f"cast(null as {type}) as {quote(column)}" for column, type in add.items()]
    table = Table.open(relation.location, lake.storage_options, files=False)
    partitions = [column for column in table.partition_columns if column.lower() not in gone]
    runner.overwrite(
        f"select {', '.join(wanted)} from {name.sql}", relation, partitions, note or note_of("columns", table.version)
    )


def _retyped(column: Column, type: str) -> str:
    return casts.convert(quote(column.name), casts.parse(column.type), casts.parse(type))
