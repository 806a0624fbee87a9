"""Keyed rows merged into a table, in one commit: by deletion vectors where the table has them, else by a MERGE.

The deletion-vector merge does what a MERGE does, but reads the table's key columns only once. It finds the location
(file, row index) of each row that changes, takes these rows out by deletion vectors, and adds the new rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.delta.table import MARK, Column, Table
from penstock.spark.commit_settings import on_sql
from penstock.spark.keyed_rows import CHANGES, ROW, TARGET, KeyedRows, differs, key_names
from penstock.spark.views import FILE, INDEX, TemporaryViews
from penstock.sql.names import Name
from penstock.sql.quoting import literal, quote
from penstock.steps import Step

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame

DELETION_VECTORS = "delta.enableDeletionVectors"
_FEED = "delta.enableChangeDataFeed"
# Row tracking keeps an identity for each row, so Delta must know which new row replaces which old row.
_ROW_TRACKING = "delta.enableRowTracking"
_CHANGE_TYPE = "_change_type"
_DIFFERS, _OLD_ROW = "penstock_differs", "penstock_kept"
_ROWS_PER_NEW_FILE = 500_000
# Up to this number every task gets all keys, instead of a shuffle of the table: 50 MB if the keys are texts.
_FEW_KEYS = 500_000
# A MERGE rewrites the files that hold changed rows. The limit keeps a file from being the whole table.
_ROWS_PER_FILE, _MANY = "spark.sql.files.maxRecordsPerFile", "1000000"
_UPDATED = f"({_DIFFERS} and {FILE} is not null and {ROW} is not null)"
_DELETED = f"({FILE} is not null and {ROW} is null)"
_INSERTED = f"({FILE} is null and {ROW} is not null)"


def takes_deletion_vectors(table: Table) -> bool:
    """Whether rows of the table can be replaced by deletion vectors."""
    properties = table.properties
    return properties.get(DELETION_VECTORS) == "true" and properties.get(_ROW_TRACKING) != "true"


def file_size(runner: Backend) -> dict[str, str]:
    """The setting that limits the rows of a file; empty if the user has set it."""
    unset = runner.setting(_ROWS_PER_FILE) in (None, "0")
    return {_ROWS_PER_FILE: _MANY} if unset else {}


def measure(views: TemporaryViews, rows: KeyedRows) -> tuple[int, list[str]]:
    """The number of keys, and conditions that the table's rows of these keys meet; this runs a job."""
    found = views.first(rows.extent())
    assert found is not None
    return found[0], rows.within(found[1:])


def merge_by_statement(
    runner: Backend,
    target: Name,
    rows: KeyedRows,
    number: int,
    note: str,
    *,
    within: Sequence[str] = (),
    whole: bool = False,
) -> None:
    """Run one MERGE whose commit carries the plan's number and the note; it runs again after a conflict."""
    text = rows.merge_into(target.sql, within=within, whole=whole)
    runner.run(text, on_sql(MARK, number, note) | file_size(runner))


@dataclass
class Counts:
    """How many rows a merge changes."""

    updated: int
    deleted: int
    inserted: int

    @property
    def written(self) -> int:
        return self.updated + self.inserted

    @property
    def files(self) -> int:
        """The number of files for the new rows."""
        return 1 + self.written // _ROWS_PER_NEW_FILE

    def __bool__(self) -> bool:
        return bool(self.updated or self.deleted or self.inserted)

    def metrics(self) -> dict[str, int]:
        """The counts as Delta's MERGE names them in its commits."""
        return {
            "numTargetRowsUpdated": self.updated,
            "numTargetRowsDeleted": self.deleted,
            "numTargetRowsInserted": self.inserted,
            "numTargetRowsCopied": 0,
            "operationNumSourceRows": self.written + self.deleted,
        }


@dataclass(frozen=True)
class DeletionVectorMerge:
    """One merge of keyed rows by deletion vectors."""

    views: TemporaryViews
    table: Table
    """The table at the version that the commit is built on."""
    rows: KeyedRows
    compare: bool
    """Whether a key's new row may be equal to the row that the table has."""

    def run(self, number: int, note: str, step: Step) -> bool:
        """Merge and commit, with the plan's number; False if no row changes, and then nothing is committed.

        CommitConflict if the table is at another version. A conflict that Delta finds at the commit is a StatementError.
        """
        runner = self.views.runner
        transaction = runner.transaction(self.table.location, self.table)
        with runner.beside(transaction.files) as files:
            keys, within = measure(self.views, self.rows)
            files.result()
        step("write")
        changes = _LocatedChanges(
            self.views, self.table, self.rows.columns, self._located(transaction.rows(within), keys)
        )
        counts = changes.counts()
        if not counts:
            return False
        leaving, coming = changes.leaving(), changes.coming(counts.files)
        transaction.replace_rows(leaving, coming, {MARK: number}, note, counts.metrics(), step=step)
        return True

    def _located(self, target: DataFrame, keys: int) -> str:
        """A view of each key with its new row, and the location of its old row if the table has one."""
        same = " and ".join(f"{CHANGES}.{name} = {TARGET}.{name}" for name in key_names(self.rows.key))
        differing = f"{ROW} is null or {differs(self.rows.columns, _OLD_ROW, f'{CHANGES}.{ROW}')}"
        changed = self.rows.unless_taken(f"{FILE} is not null", differing if self.compare else "true")
        return self.views.cached(
            f"select {CHANGES}.*, {FILE}, {INDEX}, {_OLD_ROW}, {changed} as {_DIFFERS}\n"
            f"from {self.rows.relation} as {CHANGES} left join ({self._matching(target, keys)}\n) as {TARGET} on {same}"
        )

    def _matching(self, target: DataFrame, keys: int) -> str:
        """A query for the table's rows with these keys, with their locations. No other query reads all of its keys."""
        made = {column.name.lower() for column in self.rows.columns} - {key.lower() for key in self.rows.key}
        everything = self.compare or _has_feed(self.table)
        old = [column.name for column in self.table.columns if everything or column.name.lower() not in made]
        shown = ", ".join(f"{TARGET}.{quote(name)}" for name in old)
        names = ", ".join(key_names(self.rows.key))
        # Spark would shuffle and sort the table, because it takes the keys to be as large as their whole rows.
        hint = f"/*+ broadcast({CHANGES}) */ " if keys <= _FEW_KEYS else ""
        return (
            f"select {hint}{CHANGES}.*, {TARGET}.{FILE}, {TARGET}.{INDEX}, struct({shown}) as {_OLD_ROW}\n"
            f"from {self.views.located(target, old)} as {TARGET} "
            f"join (select {names} from {self.rows.relation}) as {CHANGES}\non {self.rows.same_key()}"
        )


@dataclass(frozen=True)
class _LocatedChanges:
    """The queries over keys with their new rows, their old rows, and the locations of these."""

    views: TemporaryViews
    table: Table
    columns: Sequence[Column]
    view: str

    def counts(self) -> Counts:
        found = self.views.first(
            f"select count_if({_UPDATED}), count_if({_DELETED}), count_if({_INSERTED}) from {self.view}"
        )
        assert found is not None
        return Counts(*found)

    def leaving(self) -> DataFrame:
        """The locations of the rows that leave the table."""
        return self.views.frame(f"select {FILE}, {INDEX} from {self.view} where {_UPDATED} or {_DELETED}")

    def coming(self, files: int) -> DataFrame:
        """The new rows, for this number of files; and, if the table has a change data feed, the rows of its feed."""
        new, old = self._new(), self._old()
        parts: list[tuple[str, str, str | None]] = [(new, f"{_UPDATED} or {_INSERTED}", None)]
        if _has_feed(self.table):
            parts += [
                (old, _UPDATED, "update_preimage"),
                (new, _UPDATED, "update_postimage"),
                (old, _DELETED, "delete"),
                (new, _INSERTED, "insert"),
            ]
        texts = [f"select {items}{self._kind(kind)} from {self.view} where {rows}" for items, rows, kind in parts]
        return self.views.frame("\nunion all\n".join(texts)).coalesce(files)

    def _kind(self, kind: str | None) -> str:
        if not _has_feed(self.table):
            return ""
        return f", cast({'null' if kind is None else literal(kind)} as string) as {_CHANGE_TYPE}"

    def _new(self) -> str:
        """The table's columns of a new row. Columns that the model does not make keep their values, or are null."""
        made = {column.name.lower() for column in self.columns}
        items = []
        for column in self.table.columns:
            name = quote(column.name)
            items.append(f"{ROW if column.name.lower() in made else _OLD_ROW}.{name} as {name}")
        return ", ".join(items)

    def _old(self) -> str:
        names = [quote(column.name) for column in self.table.columns]
        return ", ".join(f"{_OLD_ROW}.{name} as {name}" for name in names)


def _has_feed(table: Table) -> bool:
    return table.properties.get(_FEED) == "true"
