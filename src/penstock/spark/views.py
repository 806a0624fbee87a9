"""Temporary views of one session, dropped together."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import from_spark
from penstock.sql.quoting import quote

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame

FILE, INDEX = "penstock_file", "penstock_index"
"""The columns of a row location: the path of the file, and the index of the row in it."""


class TemporaryViews:
    """Queries and versions of tables as temporary views. Leaving the context drops the views and their caches."""

    def __init__(self, runner: Backend) -> None:
        self.runner = runner
        self._views: dict[object, str] = {}
        self._cached: list[DataFrame] = []

    def __enter__(self) -> TemporaryViews:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Drop the views and free their caches. A second call does nothing."""
        for view in self._views.values():
            self.runner.drop_view(view)
        for frame in self._cached:
            frame.unpersist()
        self._views, self._cached = {}, []

    # Tables

    def at(self, location: str, version: int) -> str:
        """A table at a version."""
        return self.named((location, version), lambda: self.snapshot(location, version))

    def empty(self, location: str, version: int) -> str:
        """The columns of a table at a version, without rows."""
        return self.named((location, version, "empty"), lambda: self.snapshot(location, version).where("false"))

    def located(self, rows: DataFrame, columns: Sequence[str]) -> str:
        """Some columns of a table's rows, with the location of each row."""
        location = [f"_metadata.file_path as {FILE}", f"_metadata.row_index as {INDEX}"]
        return self.named(object(), lambda: rows.selectExpr(*(quote(column) for column in columns), *location))

    def snapshot(self, location: str, version: int) -> DataFrame:
        """A table at a version, as a DataFrame."""
        reader = self.runner.spark.read.format("delta").option("versionAsOf", str(version))
        try:
            return reader.load(self.runner.spark_location(location))
        except Exception as error:
            raise from_spark(error) from error

    # Queries

    def of(self, query: str) -> str:
        """A query."""
        return self.named(object(), lambda: self.frame(query))

    def cached(self, query: str) -> str:
        """A query that Spark computes once, however often the view is read."""
        return self.named(object(), lambda: self.cache(self.frame(query)))

    def named(self, what: object, frame: Callable[[], DataFrame]) -> str:
        """The view of this thing; `frame` is called if there is none yet."""
        if what not in self._views:
            name = f"penstock_{uuid.uuid4().hex}"
            frame().createOrReplaceTempView(name)
            self._views[what] = name
        return self._views[what]

    def table(self, view: str) -> DataFrame:
        """A view as a DataFrame."""
        return self.runner.spark.table(view)

    def frame(self, query: str) -> DataFrame:
        """A query as a DataFrame; nothing runs yet."""
        frame = self.runner.run(query).frame
        assert frame is not None
        return frame

    def cache(self, frame: DataFrame) -> DataFrame:
        """The same rows; Spark keeps them after the first use, until the views are dropped."""
        try:
            self._cached.append(frame.persist())
        except Exception as error:
            raise from_spark(error) from error
        return self._cached[-1]

    def first(self, query: str) -> Sequence[Any] | None:
        """The first row of a query, or None; this runs a job."""
        frame = self.frame(query)
        try:
            return frame.first()
        except Exception as error:
            raise from_spark(error, query) from error
