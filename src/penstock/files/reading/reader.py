"""The files of a batch under the model's SELECT: parsed by Spark, not read yet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.delta.schema_changes import APPEND, FAIL, IGNORE, SYNC, Difference, fitted, with_new_fields
from penstock.delta.table import Column
from penstock.errors import PenstockError, StatementError
from penstock.files.config import FileSource
from penstock.files.query import FileQuery
from penstock.files.reading import rescued
from penstock.files.reading.bad_files import BadFiles, BadFileSearch
from penstock.files.reading.file_uri import FileUriCheck
from penstock.files.reading.options import format_of, read_options
from penstock.spark.facts import facts
from penstock.spark.query_columns import of_frame
from penstock.spark.reading.file_names import unreadable_names
from penstock.spark.reading.file_schema import FileSchema
from penstock.sql.names import Name
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame, Frames


@dataclass(frozen=True)
class ReadRequest:
    """The files to read, and what is known about them."""

    paths: tuple[str, ...]
    roots: tuple[str, ...]
    format: str | None = None
    """None if no plan has it yet."""
    schema: FileSchema | None = None
    """The schema in the plan; None if no plan has it yet."""
    known: FileSchema | None = None
    """The schema of earlier batches."""
    columns: tuple[Column, ...] | None = None
    """The table's columns; None if this batch creates the table."""


@dataclass
class Reading:
    """A request that Spark has parsed."""

    request: ReadRequest
    format: str
    schema: FileSchema
    view: str
    query: str
    frame: DataFrame
    """The SELECT's columns as the table is to have them."""
    made: list[Column]
    """The columns that the SELECT returns."""
    warnings: list[str]

    def drop(self, spark: Backend) -> None:
        spark.drop_view(self.view)


class Reader:
    """Reads files as one model does."""

    def __init__(
        self, name: Name, source: FileSource, query: FileQuery, spark: Backend, storage_options: dict[str, str]
    ) -> None:
        self._name = name
        self._source = source
        self._query = query
        self._spark = spark
        self._bad_files = BadFileSearch(spark, source.source_roots, storage_options)
        self._file_uri = FileUriCheck(query, spark, self._select, str(name))
        self.across_rows = query.across_rows
        """The part of the model that looks across rows: by its text, and by Spark's plan as soon as there is one."""
        self._has_asked_spark = False

    def read(self, request: ReadRequest) -> Reading:
        """Have Spark parse the SELECT over these files, so errors show before a plan is written. No row is read.

        Spark reads the files if their columns must be inferred. BadFiles if some can't be read and the config says
        `on_bad_file: quarantine`.
        """
        format = request.format or format_of(request.paths, self._source)
        frames = self._frames(request, format)
        self._refuse_bad_names(request)
        schema = self._schema(request, frames)
        if self._source.on_rewritten_file == "replace":
            self._file_uri.check(frames, schema)
        view = frames.as_view(frames.rows(list(request.paths), schema, self._query.virtual))
        try:
            return self._under_select(request, format, schema, view)
        except PenstockError:
            self._spark.drop_view(view)
            raise

    def _under_select(self, request: ReadRequest, format: str, schema: FileSchema, view: str) -> Reading:
        query = self._query.bind(view)
        frame = self._select(query)
        if self.across_rows is None and not self._has_asked_spark:
            self.across_rows, self._has_asked_spark = self._query.across_rows_as_seen(facts(frame)), True
        if once := self._query.once(query, frame.columns):
            query, frame = once, self._select(once)
        made, warnings = of_frame(frame), list[str]()
        rescued.check_selected(self._source.rescued_data_column, frame.columns, str(self._name))
        if request.columns is not None:
            frame = self._fit(frame, made, request.columns, warnings.append)
        return Reading(request, format, schema, view, query, frame, made, warnings)

    def unreadable(self, request: ReadRequest) -> dict[str, str]:
        """After a failed write: the files that can't be read, each with the reason. Reads each file alone."""
        assert request.format is not None
        assert request.schema is not None
        frames, schema = self._frames(request, request.format), request.schema
        return self._bad_files.unreadable(request.paths, lambda path: frames.read_through([path], schema))

    def _frames(self, request: ReadRequest, format: str) -> Frames:
        return self._spark.frames(read_options(self._source, format, request.roots))

    def _select(self, query: str) -> DataFrame:
        return self._spark.query(query)

    def _refuse_bad_names(self, request: ReadRequest) -> None:
        """Quarantine files that Spark can't open by their names. A plan that is written already is not changed."""
        if self._source.on_bad_file == "quarantine" and request.schema is None:
            if bad := unreadable_names(request.paths):
                raise BadFiles(bad)

    def _schema(self, request: ReadRequest, frames: Frames) -> FileSchema:
        """The schema to read the files with: the plan's, the declared one, that of earlier batches, or inferred."""
        found = request.schema or frames.declared()
        if found is not None:
            return found
        if request.known is not None and self._source.on_schema_change == IGNORE:
            return request.known
        try:
            return frames.infer(list(request.paths), request.known)
        except StatementError:
            if self._source.on_bad_file != "quarantine":
                raise
            if bad := self._bad_files.unreadable(request.paths, lambda path: frames.infer([path])):
                raise BadFiles(bad) from None
            raise

    def _fit(
        self, frame: DataFrame, made: list[Column], columns: Sequence[Column], warn: Callable[[str], None]
    ) -> DataFrame:
        """The SELECT's columns as the table has them, by name; new and missing ones as `on_schema_change` says."""
        policy = self._source.on_schema_change
        if policy == FAIL:
            Difference(made, columns).refuse(str(self._name))
        # New fields of a struct are added by the commit that writes their values.
        have = with_new_fields(made, columns) if policy in (APPEND, SYNC) else list(columns)
        fitting = {column.name.lower(): column for column in fitted(made, have, str(self._name), policy, warn)}
        kept = (self._source.rescued_data_column or "").lower()
        items = []
        for column in made:
            if (target := fitting.get(column.name.lower())) is not None:
                items.append(f"{target.value(quote(column.name))} as {quote(target.name)}")
            elif policy in (APPEND, SYNC) or column.name.lower() == kept:
                # The rescued column is added under every policy: its values would be lost.
                items.append(quote(column.name))
        return frame.selectExpr(*items)
