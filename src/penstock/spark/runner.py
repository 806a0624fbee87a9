"""One thread's way to Spark: it runs statements one after the other, in a session of its own."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.config.session_settings import SessionSettings
from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.layout import Layout
from penstock.delta.table import Column, Table
from penstock.errors import CommitConflict, StatementError, UnsupportedTable, from_spark
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import Link, Relation, View
from penstock.spark import session
from penstock.spark.application import Application, application_of
from penstock.spark.backend import Result
from penstock.spark.conditional_writes import check_conditional_writes
from penstock.spark.internals.active_session import active_session
from penstock.spark.internals.hadoop import escaped
from penstock.spark.internals.java_frames import adopted, python_frame
from penstock.spark.internals.transaction import Transaction
from penstock.spark.job_group import JobGroup
from penstock.spark.lake_statements import run_by_lake
from penstock.spark.query_columns import of_frame
from penstock.spark.reading.read_options import ReadOptions
from penstock.spark.resolution import attach_shown, check_view, read_table, resolve
from penstock.spark.retry import retrying
from penstock.spark.startup.store_settings import StoreSettings
from penstock.spark.statement_settings import configured, refuse_unpinning
from penstock.spark.table_creation import TableCreation, TableStatement, link_named
from penstock.sql.names import Name
from penstock.sql.statement import Statement, read
from penstock.storage import hadoop_uri, is_uri

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from penstock.spark.reading.frames import Frames

T = TypeVar("T")
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"


class Runner:
    """Spark for one thread, as `spark.backend.Backend` describes it; the session starts with the first use."""

    def __init__(self, lake: LakeFolder, settings: SessionSettings) -> None:
        self.lake = lake
        self._settings = settings
        self._session: SparkSession | None = None
        self._jobs = JobGroup()

    @property
    def spark(self) -> SparkSession:
        """This thread's session."""
        if self._session is None:
            stores = StoreSettings.of_lake(self.lake.root, self.lake.storage_options, self._settings)
            self._session = session.spark_session(self._settings, stores)
            self._jobs.started(self._session)
            self._application.stores.learn(self._session, self._settings)
        return self._session

    @property
    def interpreting(self) -> SparkSession:
        """The application's session that generates no code."""
        return self._application.interpreting(self.spark)

    @property
    def _application(self) -> Application:
        return application_of(self.spark)

    # Queries: nothing runs until their rows are asked for

    def query(self, text: str) -> DataFrame:
        """A query as Spark parses it, with the relations that it names attached; nothing runs yet."""
        return resolve(self.spark, self.lake, text)

    def table(self, name: Name) -> DataFrame:
        """A relation of the lake."""
        return read_table(self.spark, self.lake, name)

    def columns_of(self, text: str) -> list[Column]:
        """The columns of a query, without running it."""
        return of_frame(self.query(text))

    def columns_of_relation(self, name: str) -> list[Column]:
        """The columns of any relation that this session knows by a name, temporary views included."""
        return of_frame(self.query(f"select * from {name}"))

    def drop_view(self, name: str) -> None:
        """Forget a temporary view."""
        self.spark.catalog.dropTempView(name)

    def setting(self, key: str) -> str | None:
        """A setting of this session; None if it is not set."""
        return self.spark.conf.get(key, None)

    def adopt(self, frame: DataFrame) -> DataFrame:
        """A DataFrame of any session of this process, as one of this session: pandas on Spark picks its own session."""
        return adopted(frame, self.spark)

    def frame(self, java: Any) -> DataFrame:
        """A DataFrame of this session over a DataFrame of Java's."""
        return python_frame(java, self.spark)

    # Statements: each is one atomic commit, and runs again on the new state after a conflict

    def run(self, text: str, conf: Mapping[str, str] | None = None) -> Result:
        """Run one statement; `conf` holds for this statement alone. A query comes back as a DataFrame, unread."""
        statement = read(text)
        refuse_unpinning(statement)
        result = Result(query_id=str(uuid.uuid4()), statement=statement)
        if not statement.only_reads:
            self.lake.check_writable()
        if statement.changes_data:
            self.check_commits(self.lake.root if statement.target is None else self.lake.location_of(statement.target))
        if run_by_lake(self.lake, statement, self._create_described_view):
            return result
        with self.tagged(result.query_id), self.configured(conf or {}):
            if statement.changes_data:
                self._application.disks.check(self.spark, self.lake.root)
                result.frame = self._write(statement, result.query_id)
                result.written = self._written(statement, result.query_id)
            else:
                if statement.verb == "SHOW":
                    attach_shown(self.spark, self.lake, text)
                result.frame = self.query(text)
        return result

    def frames(self, options: ReadOptions) -> Frames:
        """Makes DataFrames of files, read by these options."""
        from penstock.spark.reading.frames import Frames

        return Frames(self.spark, self.spark_location, options)

    def create_table(self, name: Name, query: str, layout: Layout, conf: Mapping[str, str]) -> None:
        """Create or replace a table by a query's rows, in one commit; `conf` holds for this statement alone."""
        self.lake.check_writable()
        self._application.disks.check(self.spark, self.lake.root)
        self.check_commits(self.lake.location_of(name))
        query_id = str(uuid.uuid4())
        with self.tagged(query_id), self.configured(conf):
            self._create(
                name, lambda location: TableStatement.of_query(self.lake, name, query, layout, location), None, query_id
            )

    def create_view(
        self,
        name: Name,
        query: str,
        *,
        description: str | None = None,
        comments: Mapping[str, str] | None = None,
    ) -> View:
        """Make a view that every later process sees, after Spark has checked its SQL."""
        self.lake.check_writable()
        self.lake.check_cycle(name, query)
        columns = self.columns_of(query)
        check_view(self.spark, self.lake, name, query)
        return self.lake.write_view(name, query, columns, description=description, comments=comments)

    def overwrite(self, query: str, relation: Relation, partition_by: list[str], note: str) -> None:
        """Replace a table's rows and columns by a query's, in one commit; its id and properties stay.

        The query may read the table itself: after a commit of others in between, all of it runs again.
        """

        self.check_commits(relation.location)

        def attempt() -> None:
            known = Table.open(relation.location, self.lake.storage_options, files=False)
            try:
                transaction = self.transaction(relation.location, known)
            except CommitConflict as error:
                raise StatementError(str(error), condition="DELTA_CONCURRENT_WRITE") from error
            transaction.overwrite(self.query(query), partition_by, note)

        self._attempt(attempt)

    def replace_where(self, query: str, relation: Relation, condition: str, note: str) -> None:
        """Replace the rows that meet a condition by a query's rows, in one commit.

        Delta's writer does it: Spark's INSERT … REPLACE WHERE takes nothing but comparisons as a condition.
        """

        self.check_commits(relation.location)

        def attempt() -> None:
            writer = self.query(query).write.format("delta").mode("overwrite")
            self._save(writer.option("replaceWhere", condition).option("userMetadata", note), relation.location)

        self._attempt(attempt)

    def save(self, writer: DataFrameWriter, location: str) -> None:
        """Write a DataFrame to a table's location, in one commit."""
        self.check_commits(location)
        self._attempt(lambda: self._save(writer, location))

    def _attempt(self, attempt: Callable[[], T]) -> T:
        with self.tagged(str(uuid.uuid4())):
            return retrying(attempt)

    def _save(self, writer: DataFrameWriter, location: str) -> None:
        self._application.disks.check(self.spark, self.lake.root)
        try:
            writer.save(self.spark_location(location))
        except Exception as error:
            raise from_spark(error) from error

    def _create_described_view(self, name: Name, query: str, description: str | None) -> View:
        return self.create_view(name, query, description=description)

    def _write(self, statement: Statement, query_id: str) -> DataFrame:
        """Run a statement that changes data, with the id in its commit."""
        name, text = statement.target, statement.text
        if statement.verb in ("CREATE", "REPLACE") and statement.object == "TABLE" and name is not None:
            return self._create(
                name,
                lambda location: TableStatement.of_user(self.lake, statement, location),
                link_named(statement),
                query_id,
            )
        with self.configured(self._noted(query_id)), self._first_alone():
            return retrying(lambda: self.query(text))

    def _create(
        self, name: Name, statement: Callable[[str], TableStatement], link: Link | None, query_id: str
    ) -> DataFrame:
        """Create or replace a table, with the id in its commit."""
        creation = TableCreation(self.spark, self.lake, name, statement, link)
        conf = {**self._noted(query_id), **creation.conf}
        with self.configured(conf), self._first_alone():
            frame = retrying(creation.run)
        creation.finish()
        return frame

    def _first_alone(self) -> AbstractContextManager[None]:
        return self._application.first_statement.alone() if self._settings.fast_start else nullcontext()

    def _noted(self, query_id: str) -> dict[str, str]:
        """The setting that puts an id into the next commit, unless the caller has set a note of its own."""
        return {} if self.setting(_USER_METADATA) else {_USER_METADATA: query_id}

    def _written(self, statement: Statement, query_id: str) -> CommitMetrics | None:
        """The metrics of a statement's commit, which is found by the id that it carries."""
        target = statement.target
        relation = self.lake.find(target) if target is not None else None
        if relation is None or relation.kind != "table":
            return None
        try:
            table = Table.open(relation.location, self.lake.storage_options, files=False)
        except UnsupportedTable:
            return None
        return CommitMetrics.noted(table, query_id)

    # Commits with marks: CommitConflict if another writer was first

    def transaction(self, location: str, known: Table) -> Transaction:
        """A commit on exactly the version that the caller knows."""
        self._application.disks.check(self.spark, self.lake.root)
        self.check_commits(location)
        return Transaction(self, self.spark_location(location), known)

    def commit_marks(
        self, known: Table, marks: Mapping[str, int], note: str, properties: Mapping[str, str] | None = None
    ) -> None:
        """A commit without data, for a table that delta-rs can only read."""
        try:
            self.transaction(known.location, known).commit(marks, note, properties or {})
        except StatementError as error:
            if error.is_conflict:
                raise CommitConflict(str(error)) from error
            raise

    def check_commits(self, location: str) -> None:
        """PenstockError if two writers could lose a commit at a location; its store is asked once."""
        root = self.lake.root
        below = location == root or location.startswith(f"{root}/")
        check_conditional_writes(
            root if below else location, self.lake.storage_options, single_writer=self._settings.single_writer
        )

    # Locations

    def spark_location(self, location: str) -> str:
        """A location as Spark takes it; an error if Spark cannot work on its store."""
        spelled = hadoop_uri(location)
        self._application.stores.check(self.spark, spelled)
        return spelled

    def delta_table(self, location: str) -> DeltaTable:
        """The table at a location, as Delta's own object."""
        from delta.tables import DeltaTable

        return DeltaTable.forPath(self.spark, self.spark_location(location))

    def file_uri(self, path: str) -> str:
        """A file's path as Spark's `_metadata.file_path` writes it."""
        uri = escaped(self.spark, hadoop_uri(path))
        return uri if is_uri(path) else f"file:{uri}"

    def forget(self, name: Name) -> None:
        """Look a relation up again before its next use: another one took its name."""
        self._application.catalog.forget(self.spark, name)

    # Threads, cancelling, and settings

    def cancel(self) -> None:
        """Stop the statement that runs now, and all that it would still start; from another thread."""
        self._jobs.cancel()

    def tagged(self, tag: str) -> AbstractContextManager[None]:
        """Spark jobs that start inside can be cancelled; this itself does not start Spark."""
        return self._jobs.tagged(tag)

    def configured(self, conf: Mapping[str, str]) -> AbstractContextManager[None]:
        """Settings of this session that hold inside; without any, Spark does not start."""
        return configured(self.spark, conf) if conf else nullcontext()

    def active(self, spark: SparkSession | None = None) -> AbstractContextManager[None]:
        """Inside, Delta sees this session's settings, or another session's."""
        return active_session(spark or self.spark)

    @contextmanager
    def beside(self, work: Callable[[], T]) -> Iterator[Future[T]]:
        """Spark work in a thread of its own, which is cancelled with the rest and waited for at the end."""
        with ThreadPoolExecutor(1, "penstock-beside") as pool:
            yield pool.submit(self.joined(work))

    def joined(self, work: Callable[[], T]) -> Callable[[], T]:
        """Work for another thread, as a part of what runs here now."""
        tags = self._jobs.tags

        def run() -> T:
            spark = self.spark
            self._jobs.join(tags)
            with active_session(spark):
                return work()

        return run

    def check_alive(self) -> None:
        """An error if Spark does nothing any more, because it is gone or was told to stop."""
        try:
            self.spark.range(1).write.format("noop").mode("overwrite").save()
        except Exception as error:
            raise from_spark(error) from error
