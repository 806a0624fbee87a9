"""Recomputes a table from its sources and compares it with what it has. Spark starts; nothing is written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.changes.incremental.model_change import ModelChange
from penstock.changes.incremental.way import Whole
from penstock.changes.query import ChangeQuery
from penstock.changes.version_range import Gap
from penstock.delta.commits import edits
from penstock.delta.schema_changes import IGNORE, Fitted, fitted
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.files.query import FileQuery
from penstock.files.reading.options import format_of, read_options
from penstock.files.records import READ, known
from penstock.files.roots import located
from penstock.files.status import changed
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.relations import digest
from penstock.spark.comparison import identity
from penstock.spark.query_columns import of_frame
from penstock.spark.reading.virtual_columns import FILE_URI
from penstock.spark.views import TemporaryViews
from penstock.sql.names import Name
from penstock.sql.quoting import literal, quote

if TYPE_CHECKING:
    from penstock.changes.config import ChangeSource
    from penstock.files.config import FileSource
    from penstock.spark.backend import Backend

_EXAMPLES = 10


@dataclass(frozen=True)
class Difference:
    """One row, or one file, in which the table differs from what was computed."""

    kind: str
    """`missing` in the table, `extra` in the table, or `different`: another number of rows of a file."""
    row: str
    """The row as JSON, or the file."""
    computed: int
    """How many such rows were computed."""
    found: int
    """How many the table has."""


@dataclass(frozen=True)
class Verification:
    """The result of a comparison."""

    compared: str
    """What was compared: `rows`, or `rows by file`."""
    rows: int
    """The rows of the table."""
    missing: int
    """Rows that were computed, and that the table does not have."""
    extra: int
    """Rows of the table that were not computed, doubled ones included."""
    examples: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    """What limits the comparison: files that are gone, versions that nobody recorded, commits of others."""

    @property
    def is_right(self) -> bool:
        return not self.missing and not self.extra and not self.examples


def verify_changes(ledger: TableLedger, source: ChangeSource, select: str, spark: Backend) -> Verification:
    """Compare a table row by row with its model at the source versions that its last commit recorded."""
    name, state = ledger.relation.name, ledger.state
    last, lake = ledger.changes, ledger.lake
    query = ChangeQuery.read(lake, select, name)  # type: ignore[arg-type]
    notes = _notes(ledger)
    if last.made_by(void=state.last_is_void) != query.digest:
        notes.append("the SQL has changed since the table was built: rows that did not change have its old values")
    ranges = {Name.parse(text): versions for text, versions in last.position(void=state.last_is_void).items()}
    unpinned = {read.name: read.location for read in query.reads if read.name not in ranges}
    if unpinned:
        notes.append(f"read as it is now, because no version was recorded: {', '.join(sorted(map(str, unpinned)))}")
    pinned = {
        other: Table.open(location, lake.storage_options, files=False).version for other, location in unpinned.items()
    }
    with TemporaryViews(spark) as views:
        model = ModelChange(query, Whole(""), ranges, {}, pinned, source.unique_key, views)
        try:
            computed = model.new()
            made = of_frame(spark.query(computed))
        except PenstockError as error:
            raise Gap(
                f"The sources can't be read at the versions of the last commit: {error.what}", where=str(name), fix=""
            ) from error
        columns = fitted(made, lake.columns(name), str(name), IGNORE, notes.append)
        return _by_row(spark, computed, name, columns, notes)


def _by_row(spark: Backend, computed: str, name: Name, columns: Sequence[Fitted], notes: list[str]) -> Verification:
    """EXCEPT ALL in both directions, counted by row in one job."""
    values = ", ".join(f"{column.value(quote(column.name))} as {quote(column.name)}" for column in columns)
    plain = ", ".join(quote(column.name) for column in columns)
    keys = ", ".join(f"{identity(quote(column.name), column.type)} as k{at}" for at, column in enumerate(columns))
    names = ", ".join(f"k{at}" for at in range(len(columns)))
    both = (
        f"select {keys}, to_json(struct({plain})) as row, 1 as computed, 0 as found from (select {values} from ({computed}\n))"
        f"\nunion all\nselect {keys}, to_json(struct({plain})), 0, 1 from {name.sql}"
    )
    grouped = (
        f"select any_value(row) as row, sum(computed) as computed, sum(found) as found from ({both}) group by {names}"
    )
    return _result(spark, grouped, "rows", notes)


def _result(spark: Backend, grouped: str, compared: str, notes: list[str]) -> Verification:
    totals = spark.query(
        "select coalesce(sum(found), 0), coalesce(sum(greatest(computed - found, 0)), 0), "
        f"coalesce(sum(greatest(found - computed, 0)), 0) from ({grouped})"
    ).collect()[0]
    rows, missing, extra = (int(number) for number in totals)
    found: list[Any] = []
    if missing or extra:
        found = spark.query(
            f"select row, computed, found from ({grouped}) where computed <> found order by row limit {_EXAMPLES}"
        ).collect()
    examples = tuple(_difference(str(row), int(made), int(there)) for row, made, there in found)
    return Verification(compared, rows, missing, extra, examples, tuple(notes))


def _difference(row: str, computed: int, found: int) -> Difference:
    kind = "missing" if not found else "extra" if not computed else "different"
    return Difference(kind, row, computed, found)


def verify_files(ledger: TableLedger, source: FileSource, select: str, spark: Backend) -> Verification:
    """Compare the number of rows of each file in the table with a fresh read; in total, if the table has no
    `source_file_uri`."""
    query = FileQuery.read(select, str(ledger.relation))
    if query.across_rows is not None:
        raise PenstockError(
            f"The model has {query.across_rows}, which is computed within each batch: a fresh read can't be compared",
            where=str(ledger.relation),
        )
    notes = _notes(ledger)
    plan = None if ledger.state.mark is None else ledger.file_plan(ledger.state.mark)
    if plan is not None and plan.model and plan.model != digest(query.text):
        notes.append("the SQL has changed since the last batch: earlier batches were read by other SQL")
    records = known(ledger.files.records)
    read = located(records.filter(pc.is_in(records["status"], pa.array(READ, pa.string()))))
    gone = changed(read, ledger.files.roots.roots, ledger.lake.storage_options)
    if gone:
        notes.append(f"{len(gone):,} files have vanished or changed, and are left out: {next(iter(gone))}")
    paths = [path for path in dict.fromkeys(read["path"].to_pylist()) if path not in gone]
    schema = ledger.files.schema
    has_uri = FILE_URI in {column.name.lower() for column in ledger.lake.columns(ledger.relation.name)}
    if gone and not has_uri:
        raise PenstockError(
            f"{len(gone):,} files have vanished or changed, and the table has no {FILE_URI}: rows can't be counted by file",
            where=str(ledger.relation),
            fix=f"Add {FILE_URI} to the SELECT, and run once with --full-refresh.",
        )
    frames = spark.frames(read_options(source, ledger.files.format or format_of(paths, source)))
    if schema is None:
        raise PenstockError("No file was read yet, so there is nothing to compare", where=str(ledger.relation))
    text = query.bind(frames.as_view(frames.rows(paths, schema, query.virtual)))
    text = query.once(text, spark.query(text).columns) or text
    table = ledger.relation.name.sql
    if not has_uri:
        both = f"select 1 as computed, 0 as found from ({text})\nunion all\nselect 0, 1 from {table}"
        grouped = f"select 'all files' as row, sum(computed) as computed, sum(found) as found from ({both})"
        return _result(spark, grouped, "rows", notes)
    gone_uris = {spark.file_uri(path) for path in gone}
    both = (
        f"select {FILE_URI} as row, 1 as computed, 0 as found from ({text})\n"
        f"union all\nselect {FILE_URI}, 0, 1 from {table}{_except(gone_uris)}"
    )
    grouped = f"select row, sum(computed) as computed, sum(found) as found from ({both}) group by row"
    return _result(spark, grouped, "rows by file", notes)


def _except(uris: set[str]) -> str:
    return f" where {FILE_URI} not in ({', '.join(map(literal, sorted(uris)))})" if uris else ""


def _notes(ledger: TableLedger) -> list[str]:
    found = edits(list(ledger.state.others), appends=True)
    return [f"changed by others: {', '.join(found)}"] if found else []
