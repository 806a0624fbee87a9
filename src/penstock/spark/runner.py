"""Runs statements, one after the other, in one Spark session."""

from __future__ import annotations

import random
import re
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.config.session_settings import SessionSettings
from penstock.delta.commit_metrics import CommitMetrics
from penstock.delta.layout import Layout
from penstock.delta.table import Column, Table
from penstock.errors import (
    CANCELLED,
    CommitConflict,
    PenstockError,
    StatementError,
    UnsupportedTable,
    condition_of,
    from_spark,
)
from penstock.lake import locations
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import Link, Relation, View
from penstock.secrets import logger
from penstock.spark import file_systems, session
from penstock.spark.backend import Result
from penstock.spark.catalog import Catalog, catalog_of
from penstock.spark.internals.jvm import java_class
from penstock.spark.internals.transaction import Transaction
from penstock.spark.reading.options import ReadOptions
from penstock.spark.schema import of_frame
from penstock.sql import statement as sql
from penstock.sql.names import Name, check_for_spark
from penstock.sql.quoting import PINNED, quote
from penstock.storage import given_location, hadoop_uri, is_uri, normalize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

    from penstock.spark.reading.frames import Frames

log = logger("penstock.runner")
Outcome = TypeVar("Outcome")
T = TypeVar("T")

# CREATE TABLE met a table, or another's files: what CREATE OR REPLACE TABLE would have replaced.
_TAKEN = ("TABLE_OR_VIEW_ALREADY_EXISTS", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_TABLE_ALREADY_EXISTS")
_ATTEMPTS = 12
_SECONDS_TO_CANCEL_AGAIN = 0.2
_JOB_GROUP = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")
# Delta would run a job over the empty state before a table's first commit, to write down that it has no files.
_NEW_TABLE = {"spark.databricks.delta.allFilesInCrc.enabled": "false"}
_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
_SETTING = re.compile(r"set\s+`?([\w.]+)`?\s*=\s*(.*?)\s*;?\s*", re.IGNORECASE | re.DOTALL)


def _refuse_unpinning(statement: sql.Statement) -> None:
    """Refuse a SET of what our quoting relies on: the session goes on to run other models."""
    text = statement.text
    if statement.verb != "SET" or not any(key in text for key in PINNED):
        return
    found = _SETTING.fullmatch(text[text.lower().index("set") :])
    key, value = found.groups() if found else ("", "")
    if PINNED.get(key, value.lower()) != value.lower():
        raise PenstockError(
            f"{key} can't be set to {value}: names and texts that are quoted for SQL would be read as something else",
            fix="Leave it out. Use Jinja for variables, and write backslashes twice in a text.",
        )


class Runner:
    """One thread's way to Spark: a session of its own, started by the first statement that needs it."""

    def __init__(self, lake: LakeFolder, settings: SessionSettings) -> None:
        self.lake = lake
        self._settings = settings
        self._session: SparkSession | None = None
        self._tags: list[str] = []
        self._cancelled: str | None = None
        """The outermost tag of what was cancelled last; tags are not used twice."""

    @property
    def spark(self) -> SparkSession:
        if self._session is None:
            self._session = session.spark_session(self._settings)
            if self._tags:
                self._join_group(self._tags)
            self._refuse_cancelled()
        return self._session

    def adopt(self, frame: DataFrame) -> DataFrame:
        """A DataFrame of any session of this process, as one of this session: pandas on Spark picks its own."""
        ours, theirs = self.spark._jsparkSession, frame.sparkSession._jsparkSession
        if theirs.equals(ours):
            return frame
        rows = java_class(self.spark, "org.apache.spark.sql.classic.Dataset").ofRows(
            ours, frame._jdf.queryExecution().analyzed()
        )
        return self.frame(rows)

    def frame(self, java: Any) -> DataFrame:
        """A DataFrame of Java's as one of Python's."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(java, self.spark)

    @property
    def _catalog(self) -> Catalog:
        return catalog_of(self.spark)

    def run(self, text: str, conf: Mapping[str, str] | None = None) -> Result:
        """Run one statement; a query comes back as a DataFrame that has not been read yet."""
        statement = sql.read(text)
        _refuse_unpinning(statement)
        result = Result(query_id=str(uuid.uuid4()), statement=statement)
        if not statement.only_reads:
            self.lake.check_writable()
        if self._by_the_lake(statement):
            return result
        with self.tagged(result.query_id), self.configured(conf or {}):
            if statement.changes_data:
                result.frame = self._write(statement, result.query_id)
                result.written = self._written(statement, result.query_id)
            else:
                if statement.verb == "SHOW":
                    self._attach_shown(text)
                result.frame = self._resolving(text)
        return result

    def query(self, text: str) -> DataFrame:
        """A query as Spark takes it apart, with the names that it needs attached; nothing runs yet."""
        return self._resolving(text)

    def frames(self, options: ReadOptions) -> Frames:
        """Makes DataFrames of files, read by these options."""
        from penstock.spark.reading.frames import Frames

        return Frames(self.spark, self.place, options)

    def table(self, name: Name) -> DataFrame:
        self._catalog.attach(self.spark, self.lake, [name])
        return self.spark.table(name.sql)

    def place(self, location: str) -> str:
        """A location as Spark takes it, once it is known that Spark can work on its store."""
        spelled = hadoop_uri(location)
        file_systems.check(self.spark, spelled)
        return spelled

    def forget(self, name: Name) -> None:
        """Have Spark look a relation up anew: another one took its name."""
        self._catalog.forget(self.spark, name)

    def create_table(self, name: Name, query: str, layout: Layout, conf: Mapping[str, str]) -> None:
        """Create or replace a table by a query's rows, in one commit."""
        self.run(f"create or replace table {name.sql}\n{layout.clauses()}\nas\n{query}", conf)

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
        self._check_view(name, query)
        return self.lake.write_view(name, query, columns, description=description, comments=comments)

    def drop_view(self, name: str) -> None:
        """Forget a temporary view."""
        self.spark.catalog.dropTempView(name)

    def setting(self, key: str) -> str | None:
        """A setting of this session; None where it is not set."""
        return self.spark.conf.get(key, None)

    def transaction(self, location: str, known: Table) -> Transaction:
        """A commit on exactly the version that the caller knows."""
        return Transaction(self, self.place(location), known)

    def commit_marks(
        self, known: Table, marks: Mapping[str, int], note: str, properties: Mapping[str, str] | None = None
    ) -> None:
        """A commit without data: for a table that delta-rs can only read."""
        try:
            self.transaction(known.location, known).commit(marks, note, properties or {})
        except StatementError as error:
            if error.is_conflict:
                raise CommitConflict(str(error)) from error
            raise

    def file_uri(self, path: str) -> str:
        """A file's path as Spark's `_metadata.file_path` writes it."""
        made = java_class(self.spark, "org.apache.hadoop.fs.Path")(hadoop_uri(path))
        uri = str(made.toUri().toString())
        return uri if is_uri(path) else f"file:{uri}"

    def overwrite(self, query: str, relation: Relation, partition_by: list[str], note: str) -> None:
        """Replace a table's rows and columns by a query's, in one commit; its id and properties stay.

        The query may read the table itself: a commit of another in between is a conflict, and all of it runs again.
        """

        def attempt() -> None:
            known = Table.open(relation.location, self.lake.storage_options, files=False)
            try:
                transaction = self.transaction(relation.location, known)
            except CommitConflict as error:
                raise StatementError(str(error), condition="DELTA_CONCURRENT_WRITE") from error
            transaction.overwrite(self._resolving(query), partition_by, note)

        with self.tagged(str(uuid.uuid4())):
            self.retrying(attempt)

    def replace_where(self, query: str, relation: Relation, condition: str, note: str) -> None:
        """Replace the rows that a condition is true of by a query's, in one commit.

        By Delta's own writer: Spark's INSERT … REPLACE WHERE takes no condition that is more than a comparison.
        """

        def attempt() -> None:
            writer = self._resolving(query).write.format("delta").mode("overwrite")
            self._save(writer.option("replaceWhere", condition).option("userMetadata", note), relation.location)

        with self.tagged(str(uuid.uuid4())):
            self.retrying(attempt)

    def save(self, writer: DataFrameWriter, location: str) -> None:
        """Write a frame to a table's place; again, on the new state, where another writer was first."""
        with self.tagged(str(uuid.uuid4())):
            self.retrying(lambda: self._save(writer, location))

    def _save(self, writer: DataFrameWriter, location: str) -> None:
        try:
            writer.save(self.place(location))
        except Exception as error:
            raise from_spark(error) from error

    def columns_of(self, text: str) -> list[Column]:
        """The columns of a query, without running it."""
        return of_frame(self._resolving(text))

    def columns_of_relation(self, name: str) -> list[Column]:
        """The columns of whatever this session knows by a name, a temporary view too."""
        return of_frame(self._resolving(f"select * from {name}"))

    def cancel(self) -> None:
        """Stop what runs now and what it would go on to run, from another thread."""
        if tags := list(self._tags):
            self._cancelled = tags[0]
            self._cancel(tags)
            again = threading.Thread(target=self._cancel_again, args=(tags[0],), name="penstock-cancel", daemon=True)
            again.start()

    def _cancel_again(self, outermost: str) -> None:
        """Spark has no hold on what has no job yet: a statement that is planned still, a Spark that is starting."""
        while (tags := list(self._tags)) and tags[0] == outermost:
            self._cancel(tags)
            time.sleep(_SECONDS_TO_CANCEL_AGAIN)

    def _cancel(self, tags: Sequence[str]) -> None:
        for tag in tags:
            session.cancel(tag)

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """Spark jobs started inside can be cancelled; nothing is started by saying so."""
        self._refuse_cancelled()
        self._tags.append(tag)
        if self._session is not None:
            self._join_group(self._tags)
        try:
            yield
        finally:
            self._tags.pop()
            if self._session is not None:
                self._join_group(self._tags)

    def _refuse_cancelled(self) -> None:
        """Begin nothing new inside of what was cancelled."""
        if self._tags and self._cancelled == self._tags[0]:
            raise StatementError("The run was cancelled", condition=CANCELLED)

    def _join_group(self, tags: Sequence[str]) -> None:
        """Have this thread's jobs belong to the group of the innermost tag."""
        context = self.spark.sparkContext
        if tags:
            # Interrupted, because a cancelled job would else end when its tasks do.
            context.setJobGroup(tags[-1], "penstock", interruptOnCancel=True)
        else:
            for key in _JOB_GROUP:
                context.setLocalProperty(key, None)  # type: ignore[arg-type]

    def check_alive(self) -> None:
        """An error where Spark does nothing any more, because it is gone or was told to stop."""
        try:
            self.spark.range(1).write.format("noop").mode("overwrite").save()
        except Exception as error:
            raise from_spark(error) from error

    @contextmanager
    def beside(self, work: Callable[[], T]) -> Iterator[Future[T]]:
        """Spark work in a thread of its own, that is cancelled with the rest and waited for at the end."""
        with ThreadPoolExecutor(1, "penstock-beside") as pool:
            yield pool.submit(self.joined(work))

    def joined(self, work: Callable[[], T]) -> Callable[[], T]:
        """Work for another thread, as a part of what runs here now."""
        tags = tuple(self._tags)

        def run() -> T:
            self._join_group(tags)
            with self.active():
                return work()

        return run

    @contextmanager
    def active(self, spark: SparkSession | None = None) -> Iterator[None]:
        """Have Delta see this session's settings, or another's: much of it asks the thread for its session."""
        sessions = java_class(self.spark, "org.apache.spark.sql.classic.SparkSession")
        before = sessions.getActiveSession()
        sessions.setActiveSession((spark or self.spark)._jsparkSession)
        try:
            yield
        finally:
            if before.isDefined():
                sessions.setActiveSession(before.get())
            else:
                sessions.clearActiveSession()

    def retrying(self, attempt: Callable[[], Outcome]) -> Outcome:
        """Run again, on the new state, what lost against another writer."""
        for number in range(1, _ATTEMPTS + 1):
            try:
                return attempt()
            except StatementError as error:
                if not error.may_run_again or number == _ATTEMPTS:
                    raise
                pause = min(0.1 * 2**number, 5.0) * random.uniform(0.5, 1.0)
                log.info("another writer was first (%s); again in %.1f s", error.condition, pause)
                time.sleep(pause)
        raise AssertionError("unreachable")

    def _write(self, statement: sql.Statement, query_id: str) -> DataFrame:
        text = statement.text
        target = statement.target
        link = None
        replaced: set[Name] = set()
        if statement.verb in ("CREATE", "REPLACE") and statement.object == "TABLE" and target is not None:
            check_for_spark(target.schema, target.identifier)
            link = self._link_named(statement) or self.lake.link_of(target)
            if link is not None:
                locations.check(self.lake, target, normalize(link.location))
            location = self.lake.location_of(target)
            text = sql.with_location(statement, self.place(location))
            self._catalog.attach_schema(self.spark, target.schema)
            found = self.lake.find(target)
            if found is None or found.kind != "table":
                self._catalog.forget(self.spark, target)
                replaced = {target}
        own = {} if self.spark.conf.get(_USER_METADATA, None) else {_USER_METADATA: query_id}
        if replaced:
            own |= _NEW_TABLE
        with self.configured(own), session.first_alone():
            frame = self.retrying(lambda: self._make(text, replaced))
        if target is not None and statement.verb in ("CREATE", "REPLACE"):
            self.lake.table_made(target, link)
            if (made := self.lake.find(target)) is not None:
                self._catalog.note(made)
        return frame

    def _make(self, text: str, replaced: Collection[Name]) -> DataFrame:
        """Run what writes; where no table is replaced, as CREATE: else Delta would ask a job for the files of none."""
        new = sql.without_replace(text) if replaced else text
        if new != text:
            try:
                return self._resolving(new, replaced)
            except StatementError as error:
                if not (error.condition or "").startswith(_TAKEN):
                    raise
        return self._resolving(text, replaced)

    def _link_named(self, statement: sql.Statement) -> Link | None:
        if "LOCATION" not in statement.after:
            return None
        # CommitMetrics down for readers in any folder.
        return Link(given_location(sql.string_after(statement, "LOCATION"), key="LOCATION"))

    def _resolving(self, text: str, replaced: Collection[Name] = ()) -> DataFrame:
        """Give the text to Spark, with the names that it needs attached; not those of views that it replaces."""
        self._catalog.attach(self.spark, self.lake, self.lake.mentioned(text) - set(replaced))
        tried: set[Name] = set()
        while True:
            try:
                return self.spark.sql(text)
            except Exception as error:
                name = self._missing(error)
                if name is None or name in tried or self.lake.find(name) is None:
                    raise from_spark(error, text) from error
                tried.add(name)
                self._catalog.attach(self.spark, self.lake, [name])

    def _attach_shown(self, text: str) -> None:
        """SHOW lists what Spark knows of: have it know what there is on disk."""
        shown = sql.shown(text)
        for schema in self.lake.schemas() if shown.schemas else []:
            self._catalog.attach_schema(self.spark, schema.lower())
        if shown.relations_of is not None:
            schema = shown.relations_of.lower()
            self._catalog.attach_schema(self.spark, schema)
            on_disk = {relation.name for relation in self.lake.relations(schema)}
            self._catalog.attach(self.spark, self.lake, on_disk | self._catalog.attached(schema))

    def _check_view(self, name: Name, query: str) -> None:
        """Have Spark make a view under another name, and forget it: what it refuses could be read by nobody."""
        check_for_spark(name.schema, name.identifier)
        tried = Name(name.schema, f"{name.identifier}__{uuid.uuid4().hex[:8]}")
        self._catalog.attach_schema(self.spark, name.schema)
        self._resolving(f"create view {tried.sql} as\n{query}")
        self._resolving(f"drop view {tried.sql}")

    def _missing(self, error: Exception) -> Name | None:
        if condition_of(error) != "TABLE_OR_VIEW_NOT_FOUND":
            return None
        parameters = error.getMessageParameters() if hasattr(error, "getMessageParameters") else None
        try:
            return Name.parse((parameters or {}).get("relationName", ""))
        except PenstockError:
            return None

    def _by_the_lake(self, statement: sql.Statement) -> bool:
        """What SQL would do to Spark's catalog alone is done to the lake."""
        lake, verb, kind = self.lake, statement.verb, statement.object
        if statement.temporary:
            return False
        if statement.schema is not None and verb == "CREATE":
            lake.create_schema(statement.schema)
            return True
        if statement.schema is not None and verb == "DROP":
            lake.drop_schema(statement.schema, cascade="CASCADE" in statement.after)
            return True
        target = statement.target
        if target is None:
            return False
        if verb == "DROP" and kind in ("TABLE", "VIEW"):
            self._refuse_other_kind(statement, target)
            lake.drop(target, missing_ok="EXISTS" in statement.before)
            return True
        if verb == "ALTER" and statement.after[:2] == ("RENAME", "TO"):
            lake.rename(target, Name.parse(sql.text_after(statement, "RENAME", "TO")))
            return True
        if verb == "CREATE" and kind == "VIEW":
            return self._view(statement, target)
        if verb == "ALTER" and kind == "VIEW":
            raise PenstockError(
                "ALTER VIEW would be forgotten with this process", where=str(target), fix="Use CREATE OR REPLACE VIEW."
            )
        return False

    def _view(self, statement: sql.Statement, target: Name) -> bool:
        if (found := self.lake.find(target)) is not None:
            if "EXISTS" in statement.before:
                return True
            self._refuse_other_kind(statement, target)
            if "REPLACE" not in statement.before:
                raise PenstockError(f"There is a {found.kind} {target} already", fix="Use CREATE OR REPLACE VIEW.")
        view = sql.view_text(statement)
        query = view.query
        if view.columns:
            names = ", ".join(map(quote, view.columns))
            query = f"select * from (\n{query}\n) as v({names})"
        self.create_view(target, query, description=view.comment)
        return True

    def _refuse_other_kind(self, statement: sql.Statement, target: Name) -> None:
        """As Spark does: what is named a view is no table, and the other way round."""
        found = self.lake.find(target)
        if found is not None and (found.kind == "view") != (statement.object == "VIEW"):
            raise PenstockError(
                f"{target} is a {found.kind}: {statement.verb} {statement.object} does not take it",
                fix=f"Use DROP {'VIEW' if found.kind == 'view' else 'TABLE'} first.",
            )

    @contextmanager
    def configured(self, conf: Mapping[str, str]) -> Iterator[None]:
        """Settings for one statement: unset right after, because Delta would apply them to the next as well."""
        if not conf:
            yield
            return
        settings = self.spark.conf
        before = {key: settings.get(key, None) for key in conf}
        for key, value in conf.items():
            settings.set(key, value)
        try:
            yield
        finally:
            for key, old in before.items():
                if old is None:
                    settings.unset(key)
                else:
                    settings.set(key, old)

    def _written(self, statement: sql.Statement, query_id: str) -> CommitMetrics | None:
        """What the statement committed, found by the id that its commit carries."""
        target = statement.target
        relation = self.lake.find(target) if target is not None else None
        if relation is None or relation.kind != "table":
            return None
        try:
            table = Table.open(relation.location, self.lake.storage_options, files=False)
        except UnsupportedTable:
            return None
        return CommitMetrics.noted(table, query_id)
