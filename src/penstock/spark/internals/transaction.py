"""Delta's own transactions, for commits that neither Delta's SQL nor its DataFrame writer can make.

With the writer's `txnAppId` and `txnVersion`, Delta rebuilds the whole state of the table to find the last mark, which
takes longer than writing a small batch. We know that mark already, because delta-rs has read it at a version. A
transaction that starts at exactly this version, and names the mark as read, gives the same guarantee at no cost: any
commit with the mark in between is a conflict.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.delta.table import Table
from penstock.errors import CommitConflict, from_spark
from penstock.spark.commit_settings import noted
from penstock.spark.internals.active_session import active_session
from penstock.spark.internals.analyzed_plan import filter_condition
from penstock.spark.internals.delta_log import delta_log
from penstock.spark.internals.java_frames import java_frame, python_frame
from penstock.spark.internals.jvm import (
    DELTA,
    empty_list,
    java_class,
    java_session,
    option,
    scala_map,
    scala_object,
)
from penstock.spark.internals.metrics import java_metrics
from penstock.steps import Step, no_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

# At every tenth commit Delta rebuilds the table's state and writes a checkpoint. This is little work, and adaptive
# execution and many partitions make it slow.
_COMMIT = {
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    # Delta would put the list of all files into each commit's checksum, and rebuild the state to begin this list and
    # to verify it.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
}

# Bytes of a log with some 5,000 files. A longer list is faster by code that Spark generates for it.
_SMALL_LOG = 4 * 1024 * 1024


class Session(Protocol):
    """The methods of the thread's Spark that a transaction uses; `spark.runner.Runner` has them."""

    @property
    def spark(self) -> SparkSession:
        """The thread's session."""

    @property
    def interpreting(self) -> SparkSession:
        """A session that generates no code, for queries over a handful of wide rows."""

    def configured(self, conf: Mapping[str, str]) -> AbstractContextManager[None]:
        """Settings that hold inside."""

    def beside(self, work: Callable[[], T]) -> AbstractContextManager[Future[T]]:
        """Spark work in a thread of its own."""


class Transaction:
    """One commit with marks, on the version of the table that the caller knows."""

    def __init__(self, session: Session, location: str, known: Table) -> None:
        """Start at the version that the caller knows; CommitConflict if the table is at another version or is another."""
        self._session = session
        self._spark = session.spark
        try:
            self._log = delta_log(self._spark, location)
            self._java = self._log.startTransaction()
        except Exception as error:
            raise from_spark(error) from error
        self._files: Any = None
        self._none, self._nil = option(self._spark), empty_list(self._spark)
        version, id = self._java.readVersion(), self._java.metadata().id()
        if (version, id) != (known.version, known.id):
            raise CommitConflict(f"the table is at version {version}, not {known.version}")

    def overwrite(self, frame: DataFrame, partition_by: Sequence[str], note: str) -> None:
        """Replace all rows and columns, in one commit. All files count as read, so rows that others add are a conflict."""
        self.files()
        partitions = self._nil
        for column in partition_by:
            partitions = partitions.appended(column)
        self._write(frame, "Overwrite", {"overwriteSchema": "true"}, {}, note, partitions=partitions)

    def files(self) -> Any:
        """All files of the table. They count as read, so any later commit of others is a conflict."""
        if self._files is None:
            try:
                with active_session(self._reading()):
                    self._files = self._java.filterFiles()
            except Exception as error:
                raise from_spark(error) from error
        return self._files

    def _reading(self) -> SparkSession:
        """The session in which Delta reads the list of files from the log."""
        snapshot = self._java.snapshot()
        size = snapshot.deltaFileSizeInBytes() + snapshot.checkpointSizeInBytes()
        return self._session.interpreting if size < _SMALL_LOG else self._spark

    def rows(self, conditions: Sequence[str]) -> DataFrame:
        """The rows that meet these conditions, as this transaction sees the table.

        They are read from the transaction's list of files: to read a table by its location, Delta runs five jobs to get
        that list.
        """
        try:
            frame = self._frame(self.files())
            if not conditions:
                return frame
            where = " and ".join(conditions)
            condition = filter_condition(frame.where(where))
            with active_session(self._reading()):
                scan = self._java.snapshot().filesForScan(self._nil.appended(condition), False)
            return self._frame(scan.files()).where(where)
        except Exception as error:
            raise from_spark(error) from error

    def _frame(self, files: Any) -> DataFrame:
        with active_session(self._spark):
            java = self._log.createDataFrame(self._java.snapshot(), files, False, self._none)
            return python_frame(java, self._spark)

    def append(
        self,
        frame: DataFrame,
        marks: Mapping[str, int],
        note: str,
        *,
        merge_schema: bool = False,
        step: Step = no_step,
    ) -> None:
        """Append rows and set the marks, in one commit."""
        self._write(frame, "Append", {"mergeSchema": "true"} if merge_schema else {}, marks, note, step=step)

    def _write(
        self,
        frame: DataFrame,
        mode_name: str,
        given: Mapping[str, str],
        marks: Mapping[str, int],
        note: str,
        *,
        partitions: Any = None,
        step: Step = no_step,
    ) -> None:
        mode = getattr(java_class(self._spark, "org.apache.spark.sql.SaveMode"), mode_name)
        options = scala_map(self._spark, dict(given))
        session = java_session(self._spark)
        try:
            delta_options = self._delta("DeltaOptions")(options, session.sessionState().conf())
            write = self._delta("commands.WriteIntoDelta")(
                self._log,
                mode,
                delta_options,
                self._nil if partitions is None else partitions,
                scala_map(self._spark, {}),
                java_frame(frame),
                self._none,
                self._none,
                False,
            )
            actions = write.write(self._java, session, self._none, False)
            step("written")
            made = self._delta("DeltaOperations$Write")
            operation = made(mode, self._none, self._none, option(self._spark, note), *[self._none] * 5)
            self._commit(actions, marks, operation)
        except Exception as error:
            raise from_spark(error) from error

    def replace_rows(
        self,
        row_locations: DataFrame,
        rows: DataFrame,
        marks: Mapping[str, int],
        note: str,
        counts: Mapping[str, int],
        *,
        step: Step = no_step,
    ) -> None:
        """Remove the rows at these row locations by deletion vectors and add other rows, in one commit.

        `row_locations` has the path of a file and the index of a row, as in Spark's `_metadata`. Delta's MERGE would find
        these rows by reading the table three times, and by shuffling all of it if rows are inserted too.
        """
        try:
            with self._session.beside(lambda: self._java.writeFiles(java_frame(rows))) as writing:
                removed = self._without(row_locations)
                added = writing.result()
            step("written")
            metrics = java_metrics(self._spark, {**counts, **_sizes(added)})
            self._java.registerSQLMetrics(java_session(self._spark), metrics)
            merge = scala_object(self._spark, f"{DELTA}.DeltaOperations$Merge")
            operation = merge.apply(self._none, self._nil, self._nil, self._nil)
            with self._session.configured(noted(note)):
                self._commit(removed.appendedAll(added), marks, operation)
        except Exception as error:
            raise from_spark(error) from error

    def _without(self, row_locations: DataFrame) -> Any:
        """Delta's actions that give files new deletion vectors, which delete the rows at these locations."""
        session = java_session(self._spark)
        always = java_class(self._spark, "org.apache.spark.sql.catalyst.expressions.Literal").TrueLiteral()
        bitmaps = scala_object(self._spark, f"{DELTA}.commands.DeletionVectorBitmapGenerator")
        helper = scala_object(self._spark, f"{DELTA}.commands.DMLWithDeletionVectorsHelper")
        column = java_class(self._spark, "org.apache.spark.sql.functions").col
        columns = [option(self._spark, column(name)) for name in row_locations.columns]
        files = self.files()
        found = bitmaps.buildRowIndexSetsForFilesMatchingCondition(
            session, self._java, True, java_frame(row_locations), files, always, *columns
        )
        by_name = helper.generateCandidateFileMap(self._log.dataPath(), files)
        touched = helper.findFilesWithMatchingRows(self._java, by_name, found)
        statistics = scala_object(self._spark, f"{DELTA}.stats.StatsCollectionUtils")
        length = statistics.getDataSkippingStringPrefixLength(session, self._java.metadata())
        return helper.processUnmodifiedData(session, touched, self._java.snapshot(), length)._1()

    def commit(self, marks: Mapping[str, int], note: str, properties: Mapping[str, str]) -> None:
        """Commit marks without data, and set these table properties."""
        operation = scala_object(self._spark, f"{DELTA}.DeltaOperations$ManualUpdate")
        try:
            if properties:
                self._set_properties(properties)
            with self._session.configured(noted(note)):
                self._commit(self._nil, marks, operation)
        except Exception as error:
            raise from_spark(error) from error

    def _set_properties(self, properties: Mapping[str, str]) -> None:
        """Change the table's properties with the commit. All files count as read, so rows that others add are a conflict."""
        self.files()
        old = self._java.metadata()
        configuration = old.configuration()
        for key, value in properties.items():
            configuration = configuration.updated(key, value)
        self._java.updateMetadata(
            self._delta("actions.Metadata")(
                old.id(),
                old.name(),
                old.description(),
                old.format(),
                old.schemaString(),
                old.partitionColumns(),
                configuration,
                old.createdTime(),
            ),
            False,
        )

    def _commit(self, actions: Any, marks: Mapping[str, int], operation: Any) -> None:
        now = option(self._spark, int(time.time() * 1000))
        for application, number in marks.items():
            # Delta takes another commit with a mark for a conflict only if this transaction has read the mark.
            self._java.readTxn().append(application)
            actions = actions.appended(self._delta("actions.SetTransaction")(application, number, now))
        with self._session.configured(_COMMIT), active_session(self._spark):
            self._java.commit(actions, operation)

    def _delta(self, name: str) -> Any:
        return java_class(self._spark, f"{DELTA}.{name}")


def _sizes(added: Any) -> dict[str, int]:
    """Count and bytes of the data files among a write's actions, without the files of a change feed."""
    actions = [added.apply(index) for index in range(added.size())]
    sizes = [int(action.getFileSize()) for action in actions if action.getClass().getSimpleName() == "AddFile"]
    return {"numTargetFilesAdded": len(sizes), "numTargetBytesAdded": sum(sizes)}
