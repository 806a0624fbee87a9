"""Delta's own transactions, from Python: what neither its SQL nor its DataFrame writer can say.

The writer's `txnAppId` and `txnVersion` have Delta rebuild the whole state of the table to look the last mark up, which
takes longer than writing a small batch. We know that mark, because delta-rs has read it at a version; a transaction that
starts from this very version, and names the mark as read, gives the same guarantee for nothing: any commit with the
mark in between is a conflict.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from penstock.delta.table import Table
from penstock.errors import CommitConflict, from_spark
from penstock.spark.internals.jvm import DELTA, delta_log, empty_list, java_class, option, scala_map, scala_object
from penstock.spark.session import interpreting_session
from penstock.steps import Step, no_step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.backend import Backend

# Every tenth commit Delta rebuilds the table's state and writes a checkpoint: small work that adaptive execution and
# many partitions make slow.
_COMMIT = {
    "spark.sql.adaptive.enabled": "false",
    "spark.databricks.delta.snapshotPartitions": "1",
    # The list of all files in each commit's checksum: batches make many, and Delta rebuilds the state to begin the
    # list and again to verify it.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
}

# Bytes: some five thousand files. The list of more is faster by code that Spark generates for it.
_SMALL_LOG = 4 * 1024 * 1024


def on_sql(application: str, number: int, note: str) -> dict[str, str]:
    """The settings that put a mark and a note into the commit of one SQL statement."""
    return {
        "spark.databricks.delta.write.txnAppId": application,
        "spark.databricks.delta.write.txnVersion": str(number),
        **noted(note),
    }


def noted(note: str) -> dict[str, str]:
    """The setting that puts a note into the commit of one SQL statement."""
    return {"spark.databricks.delta.commitInfo.userMetadata": note}


class Transaction:
    """One commit with marks, on the version of the table that the caller knows."""

    def __init__(self, runner: Backend, location: str, known: Table) -> None:
        self._runner = runner
        self._spark = cast(Any, runner.spark)
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
        """Replace all rows and columns, in one commit. All files count as read: what another adds is a conflict."""
        self.files()
        partitions = self._nil
        for column in partition_by:
            partitions = partitions.appended(column)
        self._write(frame, "Overwrite", {"overwriteSchema": "true"}, {}, note, partitions=partitions)

    def files(self) -> Any:
        """All files of the table; they count as read, so that whatever another has written since is a conflict."""
        if self._files is None:
            try:
                with self._runner.active(self._reading()):
                    self._files = self._java.filterFiles()
            except Exception as error:
                raise from_spark(error) from error
        return self._files

    def _reading(self) -> SparkSession:
        """The session in which Delta is to work the files out of the log."""
        snapshot = self._java.snapshot()
        size = snapshot.deltaFileSizeInBytes() + snapshot.checkpointSizeInBytes()
        return interpreting_session(self._runner.spark) if size < _SMALL_LOG else self._runner.spark

    def rows(self, conditions: Sequence[str]) -> DataFrame:
        """The rows that meet these conditions, as this transaction sees the table.

        From a list of files: of a table by its place, Delta would ask five jobs for that list before it reads a file.
        """
        try:
            frame = self._frame(self.files())
            if not conditions:
                return frame
            where = " and ".join(conditions)
            condition = frame.where(where)._jdf.queryExecution().analyzed().condition()
            with self._runner.active(self._reading()):
                scan = self._java.snapshot().filesForScan(self._nil.appended(condition), False)
            return self._frame(scan.files()).where(where)
        except Exception as error:
            raise from_spark(error) from error

    def _frame(self, files: Any) -> DataFrame:
        with self._runner.active():
            return self._runner.frame(self._log.createDataFrame(self._java.snapshot(), files, False, self._none))

    def append(
        self,
        frame: DataFrame,
        marks: Mapping[str, int],
        note: str,
        *,
        merge_schema: bool = False,
        step: Step = no_step,
    ) -> None:
        """Append rows, as the DataFrame writer does, and the marks, in one commit."""
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
        session = self._spark._jsparkSession
        try:
            delta_options = self._delta("DeltaOptions")(options, session.sessionState().conf())
            write = self._delta("commands.WriteIntoDelta")(
                self._log,
                mode,
                delta_options,
                self._nil if partitions is None else partitions,
                scala_map(self._spark, {}),
                frame._jdf,
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

    def exchange(
        self,
        places: DataFrame,
        rows: DataFrame,
        marks: Mapping[str, int],
        note: str,
        counts: Mapping[str, int],
        *,
        step: Step = no_step,
    ) -> None:
        """Take the rows at these places out, and put others in, in one commit; by deletion vectors.

        `places` has the path of a file and the index of a row, as Spark's `_metadata` tells them. Delta's MERGE finds
        them by reading the table three times and, where rows are inserted as well, by shuffling all of it.
        """
        session = self._spark._jsparkSession
        always = java_class(self._spark, "org.apache.spark.sql.catalyst.expressions.Literal")
        bitmaps = scala_object(self._spark, f"{DELTA}.commands.DeletionVectorBitmapGenerator")
        helper = scala_object(self._spark, f"{DELTA}.commands.DMLWithDeletionVectorsHelper")
        column = java_class(self._spark, "org.apache.spark.sql.functions").col
        columns = [option(self._spark, column(name)) for name in places.columns]
        try:
            with self._runner.beside(lambda: self._java.writeFiles(rows._jdf)) as writing:
                files = self.files()
                found = bitmaps.buildRowIndexSetsForFilesMatchingCondition(
                    session, self._java, True, places._jdf, files, always.TrueLiteral(), *columns
                )
                by_name = helper.generateCandidateFileMap(self._log.dataPath(), files)
                touched = helper.findFilesWithMatchingRows(self._java, by_name, found)
                statistics = scala_object(self._spark, f"{DELTA}.stats.StatsCollectionUtils")
                length = statistics.getDataSkippingStringPrefixLength(session, self._java.metadata())
                removed = helper.processUnmodifiedData(session, touched, self._java.snapshot(), length)._1()
                added = writing.result()
            step("written")
            self._java.registerSQLMetrics(session, self._metrics({**counts, **_sizes(added)}))
            merge = scala_object(self._spark, f"{DELTA}.DeltaOperations$Merge")
            operation = merge.apply(self._none, self._nil, self._nil, self._nil)
            with self._runner.configured(noted(note)):
                self._commit(removed.appendedAll(added), marks, operation)
        except Exception as error:
            raise from_spark(error) from error

    def commit(self, marks: Mapping[str, int], note: str, properties: Mapping[str, str]) -> None:
        """A commit without data, that sets properties where some are given."""
        operation = scala_object(self._spark, f"{DELTA}.DeltaOperations$ManualUpdate")
        try:
            if properties:
                self._set_properties(properties)
            with self._runner.configured(noted(note)):
                self._commit(self._nil, marks, operation)
        except Exception as error:
            raise from_spark(error) from error

    def _set_properties(self, properties: Mapping[str, str]) -> None:
        """Have the commit change the table's properties; all files count as read, so that no rows come in between."""
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
            # A mark that was read is what makes another commit with it a conflict.
            self._java.readTxn().append(application)
            actions = actions.appended(self._delta("actions.SetTransaction")(application, number, now))
        with self._runner.configured(_COMMIT), self._runner.active():
            self._java.commit(actions, operation)

    def _metrics(self, counts: Mapping[str, int]) -> Any:
        """Counts as a commit's metrics."""
        make = scala_object(self._spark, "org.apache.spark.sql.execution.metric.SQLMetrics").createMetric
        context = self._spark.sparkContext._jsc.sc()
        metrics = {}
        for name, count in counts.items():
            metrics[name] = make(context, name)
            metrics[name].set(count)
        return scala_map(self._spark, metrics)

    def _delta(self, name: str) -> Any:
        return java_class(self._spark, f"{DELTA}.{name}")


def _sizes(added: Any) -> dict[str, int]:
    """The data files among the actions of a write; those of a change feed are of another kind."""
    actions = [added.apply(index) for index in range(added.size())]
    sizes = [int(action.getFileSize()) for action in actions if action.getClass().getSimpleName() == "AddFile"]
    return {"numTargetFilesAdded": len(sizes), "numTargetBytesAdded": sum(sizes)}
