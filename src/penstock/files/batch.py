"""The batches of a file model on Spark: each one is read under the model's SELECT, and written in one commit."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.delta.schema_changes import APPEND, SYNC, Difference
from penstock.delta.table import MARK
from penstock.errors import from_spark
from penstock.files.config import FileSource
from penstock.files.ledger import Ledger
from penstock.files.plan import REPLACED, FilePlan
from penstock.files.reading.frame import Shape
from penstock.files.reading.reader import Reader, Reading, Request
from penstock.files.roots import located
from penstock.protocol.state import State
from penstock.sql.quoting import literal
from penstock.steps import Step

if TYPE_CHECKING:
    from penstock.spark.backend import Backend, DataFrame


class Batches:
    """Reads and writes the batches of one run. While one batch is written, a thread reads the next one."""

    def __init__(
        self,
        location: str,
        source: FileSource,
        reader: Reader,
        ledger: Ledger,
        spark: Backend,
        step: Step,
    ) -> None:
        self._location = location
        self._source = source
        self._reader = reader
        self._ledger = ledger
        self._spark = spark
        self._step = step
        self._reading: tuple[FilePlan, Reading] | None = None
        self._ahead: tuple[Request, Future[Reading]] | None = None
        self._helper: ThreadPoolExecutor | None = None

    def read(self, plan: FilePlan, state: State) -> tuple[FilePlan, Reading]:
        """The plan with the schema that its files are read with, and the reading; BadFiles if some cannot be read."""
        if self._reading is not None and self._reading[0] is plan:
            return self._reading
        request = self.request(plan.read, plan, state)
        reading = self._taken_ahead(request) or self._reader.read(request)
        self.drop()
        read = replace(plan, schema=reading.shape.schema, folders=reading.shape.folders, format=reading.format)
        self._reading = (read, reading)
        return self._reading

    def request(self, files: pa.Table, plan: FilePlan, state: State, known: Shape | None = None) -> Request:
        """What is to be read for some files of a plan."""
        if known is None and not plan.replace and self._ledger.schema is not None:
            known = Shape(self._ledger.schema, self._ledger.folders)
        return Request(
            paths=tuple(located(files)["path"].to_pylist()),
            roots=plan.roots.roots,
            format=plan.format,
            shape=None if plan.schema is None else Shape(plan.schema, plan.folders),
            known=known,
            columns=None if plan.replace or state.table is None else tuple(state.table.columns),
        )

    def unreadable(self, plan: FilePlan, state: State) -> dict[str, str]:
        """After a failure: the files of a plan that cannot be read, each with its reason."""
        return self._reader.unreadable(self.request(plan.read, plan, state))

    def read_ahead(self, files: pa.Table, plan: FilePlan, state: State) -> None:
        """Have Spark parse the next batch while the batch of this plan is written."""
        if files.num_rows == 0 or state.table is None or plan.replace or plan.schema is None:
            return
        unplanned = replace(plan, schema=None, folders=(), format=None)
        request = self.request(files, unplanned, state, Shape(plan.schema, plan.folders))
        if self._helper is None:
            self._helper = ThreadPoolExecutor(1, "penstock-ahead")
        self._ahead = (request, self._helper.submit(self._spark.joined(lambda: self._reader.read(request))))

    def _taken_ahead(self, request: Request | None) -> Reading | None:
        """The reading that was made ahead, if it is of this request. One that failed is made again, to fail then."""
        if self._ahead is None:
            return None
        (asked, future), self._ahead = self._ahead, None
        if future.exception() is not None:
            return None
        reading = future.result()
        if request is None or asked == request:
            return reading
        reading.drop(self._spark)
        return None

    def misfit(self, reading: Reading) -> Difference | None:
        """How the table must be changed before the batch: under `sync_all_columns`, by more than new columns.

        New columns are added by the batch's own commit.
        """
        columns = reading.request.columns
        if self._source.on_schema_change != SYNC or columns is None:
            return None
        difference = Difference(reading.made, columns)
        return difference if difference.gone or difference.other_than_new else None

    def append(self, plan: FilePlan, reading: Reading, note: str, state: State) -> None:
        """Append the batch in one commit with its number; the earlier rows of rewritten files leave by it."""
        assert state.table is not None
        have = {column.name.lower() for column in state.table.columns}
        adds = any(name.lower() not in have for name in reading.frame.columns)
        merge = adds or self._source.on_schema_change in (APPEND, SYNC)
        replaced = plan.with_status(REPLACED)["path"].to_pylist()
        spark = self._spark
        with spark.tagged(note):
            if replaced:
                # The plan may be of an earlier process, and then nothing was read of the ledger yet.
                self._ledger.follow(state)
                self._overwrite(plan, reading.frame, replaced, note, merge)
                return
            transaction = spark.transaction(self._location, state.table)
            transaction.append(reading.frame, {MARK: plan.number}, note, merge_schema=merge, step=self._step)

    def _overwrite(self, plan: FilePlan, frame: DataFrame, replaced: list[str], note: str, merge: bool) -> None:
        """Append, and take the earlier rows of rewritten files out, in one commit."""
        options = {"txnAppId": MARK, "txnVersion": str(plan.number), "userMetadata": note}
        if merge:
            options["mergeSchema"] = "true"
        # By the paths that they were read from: the file's root may have been spelled otherwise then.
        known = self._ledger.records
        earlier = located(known.filter(pc.is_in(known["path"], pa.array(replaced, pa.string()))))
        spark = self._spark
        places = dict.fromkeys(earlier["path"].to_pylist())
        uris = ", ".join(literal(spark.file_uri(place)) for place in places)
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", f"source_file_uri in ({uris})")
        # The batch's other files are new, and so not of those that are replaced.
        with spark.configured({"spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false"}):
            try:
                writer.options(**options).save(spark.place(self._location))
            except Exception as error:
                raise from_spark(error) from error

    def drop(self) -> None:
        """Let go of the batch that was read last."""
        if self._reading is not None:
            (_, reading), self._reading = self._reading, None
            reading.drop(self._spark)

    def close(self) -> None:
        """Let go of all that was read and not written."""
        if self._helper is not None:
            self._helper.shutdown()
        if (reading := self._taken_ahead(None)) is not None:
            reading.drop(self._spark)
        self.drop()
