"""The check that `source_file_uri` in the table is the URI of each row's file.

`on_rewritten_file: replace` finds the earlier rows of a file by this column. If the SELECT computes another value, no
earlier row is found, and the rows of the file are doubled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.files.query import FileQuery
from penstock.spark.reading.file_schema import FileSchema
from penstock.spark.reading.virtual_columns import FILE_URI

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame, Frames

_FROM_FILES = "penstock.from_files"
_TAKE_IT = f"Select {FILE_URI} of @data as it is, and give other columns another name"


class FileUriCheck:
    """Checks the SELECT of one model, once for each schema of its files."""

    def __init__(self, query: FileQuery, spark: Backend, select: Callable[[str], DataFrame], where: str) -> None:
        """`select` has Spark parse a query."""
        self._query = query
        self._spark = spark
        self._select = select
        self._where = where
        self._passed: FileSchema | None = None

    def check(self, frames: Frames, schema: FileSchema) -> None:
        """Raise if the SELECT does not take `source_file_uri` from `@data` as it is. Spark parses it; no job runs."""
        if schema == self._passed:
            return
        if any(name.lower() == FILE_URI for name in schema.names):
            self._refuse("the files have a column of their own by this name", "Leave it out of the files")
        if changed := self._query.changes_file_uri:
            self._refuse(f"the SELECT computes it from something else: {changed}", _TAKE_IT)
        if not self._is_taken_as_it_is(frames, schema):
            self._refuse("the SELECT does not take it from @data as it is", _TAKE_IT)
        self._passed = schema

    def _is_taken_as_it_is(self, frames: Frames, schema: FileSchema) -> bool:
        """Whether Spark keeps the column's metadata; true also if the SELECT has no such column.

        Spark keeps the metadata of a column that is taken as it is, through subqueries and joins. Any expression
        drops it.
        """
        view = frames.as_view(frames.empty(schema, self._query.virtual, {_FROM_FILES: True}))
        try:
            fields = self._select(self._query.bind(view)).schema.fields
        finally:
            self._spark.drop_view(view)
        found = next((field for field in fields if field.name.lower() == FILE_URI), None)
        return found is None or _FROM_FILES in found.metadata

    def _refuse(self, why: str, fix: str) -> None:
        raise PenstockError(
            f"`on_rewritten_file: replace` finds a file's earlier rows by {FILE_URI}, but {why}",
            where=self._where,
            fix=f"{fix}, or set `on_rewritten_file` to fail, skip or ingest.",
        )
