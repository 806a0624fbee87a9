"""The engine's interface to Spark. `spark.runner.Runner` implements it in this process.

Other packages take the names of PySpark's classes from here, for annotations, so that no other package imports pyspark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.layout import Layout
from penstock.delta.table import Column, Table
from penstock.lake.relations import Relation, View
from penstock.spark.reading.read_options import ReadOptions
from penstock.sql.names import Name
from penstock.sql.statement import Statement

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import DataFrame, DataFrameReader, DataFrameWriter, SparkSession

    from penstock.spark.internals.transaction import Transaction
    from penstock.spark.reading.frames import Frames
else:
    DeltaTable = DataFrame = DataFrameReader = DataFrameWriter = Frames = SparkSession = Transaction = Any

__all__ = [
    "Backend",
    "DataFrame",
    "DataFrameReader",
    "DataFrameWriter",
    "DeltaTable",
    "Frames",
    "Result",
    "SparkSession",
    "Transaction",
]

T = TypeVar("T")


@dataclass
class Result:
    """A statement that ran: its rows, if it has any, and the metrics of its commit."""

    query_id: str
    statement: Statement
    frame: DataFrame | None = None
    written: CommitMetrics | None = field(default=None)


class Backend(Protocol):
    """Spark for one thread: a session of its own, started by the first call that needs it."""

    @property
    def spark(self) -> SparkSession:
        """This thread's session, as PySpark's own object."""

    # Queries: nothing runs until their rows are asked for

    def query(self, text: str) -> DataFrame:
        """A query as Spark parses it, with the names that it needs attached."""

    def table(self, name: Name) -> DataFrame:
        """A relation of the lake."""

    def frames(self, options: ReadOptions) -> Frames:
        """Makes DataFrames of files, read by these options."""

    def columns_of(self, text: str) -> list[Column]:
        """The columns of a query, without running it."""

    def columns_of_relation(self, name: str) -> list[Column]:
        """The columns of any relation that this session knows by a name, temporary views included."""

    def drop_view(self, name: str) -> None:
        """Forget a temporary view."""

    def setting(self, key: str) -> str | None:
        """A setting of this session; None if it is not set."""

    # Statements: each is one atomic commit, and runs again on the new state after a conflict

    def run(self, text: str, conf: Mapping[str, str] | None = None) -> Result:
        """Run one statement; `conf` holds for this statement alone."""

    def create_table(self, name: Name, query: str, layout: Layout, conf: Mapping[str, str]) -> None:
        """Create or replace a table by a query's rows."""

    def create_view(
        self,
        name: Name,
        query: str,
        *,
        description: str | None = None,
        comments: Mapping[str, str] | None = None,
    ) -> View:
        """Make a view that every later process sees, after Spark has checked its SQL."""

    def overwrite(self, query: str, relation: Relation, partition_by: list[str], note: str) -> None:
        """Replace a table's rows and columns by a query's; its id and properties stay."""

    def replace_where(self, query: str, relation: Relation, condition: str, note: str) -> None:
        """Replace the rows that a condition is true of by a query's."""

    def save(self, writer: DataFrameWriter, location: str) -> None:
        """Write a DataFrame to a table's location."""

    # Commits with marks: CommitConflict if another writer was first

    def transaction(self, location: str, known: Table) -> Transaction:
        """A commit on exactly the version that the caller knows."""

    def commit_marks(
        self, known: Table, marks: Mapping[str, int], note: str, properties: Mapping[str, str] | None = None
    ) -> None:
        """A commit without data."""

    def check_commits(self, location: str) -> None:
        """PenstockError if two writers could lose a commit at a location. Spark does not start."""

    # Locations

    def spark_location(self, location: str) -> str:
        """A location as Spark takes it; an error if Spark cannot work on its store."""

    def file_uri(self, path: str) -> str:
        """A file's path as Spark's `_metadata.file_path` writes it."""

    def forget(self, name: Name) -> None:
        """Look this name up again before its next use, because another relation has it now."""

    # Threads and cancelling

    def tagged(self, tag: str) -> AbstractContextManager[None]:
        """Spark jobs that start inside can be cancelled."""

    def configured(self, conf: Mapping[str, str]) -> AbstractContextManager[None]:
        """Settings that hold inside."""

    def active(self, spark: SparkSession | None = None) -> AbstractContextManager[None]:
        """Inside, Delta sees this session's settings, or another session's."""

    def beside(self, work: Callable[[], T]) -> AbstractContextManager[Future[T]]:
        """Spark work in a thread of its own, which is cancelled with the rest and waited for at the end."""

    def joined(self, work: Callable[[], T]) -> Callable[[], T]:
        """Work for another thread, as a part of what runs here now."""

    def frame(self, java: Any) -> DataFrame:
        """A DataFrame of this session over a DataFrame of Java's."""

    def check_alive(self) -> None:
        """An error if Spark does nothing any more, because it is gone or was told to stop."""
