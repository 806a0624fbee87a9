"""The files of a batch under the model's SELECT: taken apart by Spark, not read yet."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.delta.schema_changes import APPEND, FAIL, IGNORE, SYNC, Difference, fitted, with_new_fields
from penstock.delta.table import Column
from penstock.errors import PenstockError, StatementError, from_spark
from penstock.files.config import FileSource
from penstock.files.query import FILE_URI, Model
from penstock.files.reading import rescue
from penstock.files.reading.frame import Frames, Shape, format_of
from penstock.spark.facts import facts
from penstock.spark.schema import of_frame
from penstock.sql.names import Name
from penstock.sql.quoting import quote
from penstock.storage import Storage, split_path

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame


_FROM_FILES = "penstock.from_files"
_TAKE_IT = f"Select {FILE_URI} of @data as it is, and give other columns another name"


class BadFiles(Exception):
    """Files that Spark can't read though their bytes can be had, each with its reason."""

    def __init__(self, files: dict[str, str]) -> None:
        super().__init__("; ".join(f"{path} can't be read: {reason}" for path, reason in files.items()))
        self.files = files


@dataclass(frozen=True)
class Request:
    """What is to be read, and what is known of it."""

    paths: tuple[str, ...]
    roots: tuple[str, ...]
    format: str | None = None
    """None before it was written in a plan."""
    shape: Shape | None = None
    """What the files are read as, where a plan says so."""
    known: Shape | None = None
    """What earlier batches were read as."""
    columns: tuple[Column, ...] | None = None
    """The table's columns; None where this makes the table."""


@dataclass
class Reading:
    """A request that Spark has taken apart."""

    request: Request
    format: str
    shape: Shape
    view: str
    query: str
    frame: DataFrame
    """The SELECT's columns as the table is to have them."""
    made: list[Column]
    """The SELECT's own columns."""
    warnings: list[str]

    def drop(self, runner: Backend) -> None:
        runner.drop_view(self.view)


class Reader:
    """Reads files as one model does."""

    def __init__(
        self, name: Name, source: FileSource, model: Model, spark: Backend, storage_options: dict[str, str]
    ) -> None:
        self._name = name
        self._source = source
        self._model = model
        self._spark = spark
        self._storage_options = storage_options
        self._keeps_file_uri: Shape | None = None
        """The shape that the check of `source_file_uri` has passed for."""
        self.across_rows = model.across_rows
        """What in the model looks across rows: by its text, and by Spark's plan as soon as there is one."""
        self._has_asked = False

    def read(self, request: Request) -> Reading:
        """Have Spark take the SELECT apart, so that what is wrong with it shows before a plan is written."""
        format = request.format or format_of(request.paths, self._source)
        frames = Frames(self._spark, self._source, format, request.roots)
        self._set_names_aside(request, frames)
        shape = self._shape(request, frames)
        self._check_file_uri(frames, shape)
        view = f"penstock_data_{uuid.uuid4().hex}"
        frames.frame(list(request.paths), shape, self._model.virtual).createOrReplaceTempView(view)
        query = self._model.bind(view)
        try:
            frame = self._select(query)
            if self.across_rows is None and not self._has_asked:
                self.across_rows, self._has_asked = self._model.across_rows_as_seen(facts(frame)), True
            if once := self._model.once(query, frame.columns):
                query, frame = once, self._select(once)
            made, warnings = of_frame(frame), list[str]()
            rescue.check_selected(self._source.rescued_data_column, frame.columns, str(self._name))
            if request.columns is not None:
                frame = self._fit(frame, made, request.columns, warnings.append)
        except PenstockError:
            self._spark.drop_view(view)
            raise
        return Reading(request, format, shape, view, query, frame, made, warnings)

    def unreadable(self, request: Request) -> dict[str, str]:
        """After a failure: which files can't be read is asked of each alone."""
        assert request.format is not None
        assert request.shape is not None
        frames = Frames(self._spark, self._source, request.format, request.roots)
        shape = request.shape
        return self._probe(
            lambda path: frames.frame([path], shape).write.format("noop").mode("overwrite").save(), request.paths
        )

    def _set_names_aside(self, request: Request, frames: Frames) -> None:
        """Quarantine files that can't be opened by their names; a plan that is written already is not changed."""
        if self._source.on_bad_file == "quarantine" and request.shape is None:
            if bad := frames.unreadable_names(request.paths):
                raise BadFiles(bad)

    def _check_file_uri(self, frames: Frames, shape: Shape) -> None:
        """Under `on_rewritten_file: replace` the table's `source_file_uri` must be the file's.

        The earlier rows of a file are found by it: where the SELECT makes something else of it, none would be, and
        the file's rows would be doubled. Spark hands the metadata of a column on where it is taken as it is, through
        subqueries and joins, and drops it wherever a value is made.
        """
        if self._source.on_rewritten_file != "replace" or shape == self._keeps_file_uri:
            return
        if any(name.lower() == FILE_URI for name in shape.types):
            self._refuse_file_uri("the files have a column of their own by this name", "Leave it out of the files")
        if changed := self._model.changes_file_uri:
            self._refuse_file_uri(f"the SELECT makes it of something else: {changed}", _TAKE_IT)
        view = f"penstock_check_{uuid.uuid4().hex}"
        frames.empty(shape, self._model.virtual, {_FROM_FILES: True}).createOrReplaceTempView(view)
        try:
            fields = self._select(self._model.bind(view)).schema.fields
        finally:
            self._spark.drop_view(view)
        found = next((field for field in fields if field.name.lower() == FILE_URI), None)
        if found is not None and _FROM_FILES not in found.metadata:
            self._refuse_file_uri("the SELECT does not take it from @data as it is", _TAKE_IT)
        self._keeps_file_uri = shape

    def _refuse_file_uri(self, why: str, fix: str) -> None:
        raise PenstockError(
            f"`on_rewritten_file: replace` finds a file's earlier rows by {FILE_URI}, but {why}",
            where=str(self._name),
            fix=f"{fix}, or set `on_rewritten_file` to fail, skip or ingest.",
        )

    def _select(self, query: str) -> DataFrame:
        return self._spark.query(query)

    def _shape(self, request: Request, frames: Frames) -> Shape:
        """What the files are read as: written in the plan, declared, known from earlier batches, or inferred."""
        if request.shape is not None:
            return request.shape
        given = frames.given()
        if given is not None:
            return given
        if request.known is not None and self._source.on_schema_change == IGNORE:
            return request.known
        try:
            return frames.infer(list(request.paths), request.known)
        except StatementError:
            if self._source.on_bad_file != "quarantine":
                raise
            if bad := self._probe(lambda path: frames.infer([path]), request.paths):
                raise BadFiles(bad) from None
            raise

    def _fit(
        self, frame: DataFrame, made: list[Column], columns: Sequence[Column], warn: Callable[[str], None]
    ) -> DataFrame:
        """The SELECT's columns as the table has them, by name; new and missing ones as `on_schema_change` says."""
        policy = self._source.on_schema_change
        if policy == FAIL:
            Difference(made, columns).refuse(str(self._name))
        # What is new in a struct is added by the commit that brings its values.
        have = with_new_fields(made, columns) if policy in (APPEND, SYNC) else list(columns)
        fitting = {column.name.lower(): column for column in fitted(made, have, str(self._name), policy, warn)}
        kept = (self._source.rescued_data_column or "").lower()
        items = []
        for column in made:
            if (target := fitting.get(column.name.lower())) is not None:
                items.append(f"{target.value(quote(column.name))} as {quote(target.name)}")
            elif policy in (APPEND, SYNC) or column.name.lower() == kept:
                # The column of what does not fit is added whatever the policy: its values would be lost.
                items.append(quote(column.name))
        return frame.selectExpr(*items)

    def _probe(self, read: Callable[[str], object], paths: Sequence[str]) -> dict[str, str]:
        bad = {}
        for path in paths:
            try:
                read(path)
            except Exception as error:
                # Where its bytes can't be had either, the store is at fault and not the file; or Spark, where it does nothing.
                self._touch(path)
                self._spark.check_alive()
                bad[path] = str(from_spark(error)).splitlines()[0][:500]
        return bad

    def _touch(self, path: str) -> None:
        root, key = split_path(path, self._source.source_roots)
        Storage(root, self._storage_options).read_start(key)
