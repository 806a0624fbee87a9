"""The batches of a file model on Spark: each is read under the model's SELECT and appended in one commit."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.delta.schema_changes import APPEND, SYNC, Difference
from penstock.delta.table import MARK
from penstock.files.config import FileSource
from penstock.files.ledger import Ledger
from penstock.files.plan import FilePlan
from penstock.files.reading.reader import Reader, Reading, ReadRequest
from penstock.files.records import REPLACED
from penstock.files.roots import located
from penstock.protocol.state import State
from penstock.spark.reading.file_schema import FileSchema
from penstock.spark.reading.virtual_columns import FILE_URI
from penstock.spark.replace import replace_rows
from penstock.sql.quoting import literal
from penstock.steps import Step

if TYPE_CHECKING:
    from penstock.spark.backend import Backend


class Batches:
    """Reads and appends the batches of one run. While one batch is written, a thread has Spark parse the next one."""

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
        """The plan that was read last, with its schema."""
        self._ahead: tuple[ReadRequest, Future[Reading]] | None = None
        self._helper: ThreadPoolExecutor | None = None

    def read(self, plan: FilePlan, state: State) -> tuple[FilePlan, Reading]:
        """The plan with the schema of its files, and the reading. BadFiles if some files can't be read.

        No row is read yet. Spark reads the files if their columns must be inferred.
        """
        if self._reading is not None and self._reading[0] is plan:
            return self._reading
        request = self.request(plan.read, plan, state)
        reading = self._taken_ahead(request) or self._reader.read(request)
        self.drop()
        self._reading = (replace(plan, schema=reading.schema, format=reading.format), reading)
        return self._reading

    def request(self, files: pa.Table, plan: FilePlan, state: State, known: FileSchema | None = None) -> ReadRequest:
        """The request for some files of a plan; `known` is the schema of earlier batches, else the ledger's."""
        if known is None and not plan.replace:
            known = self._ledger.schema
        return ReadRequest(
            paths=tuple(located(files)["path"].to_pylist()),
            roots=plan.roots.roots,
            format=plan.format,
            schema=plan.schema,
            known=known,
            columns=None if plan.replace or state.table is None else tuple(state.table.columns),
        )

    def unreadable(self, plan: FilePlan, state: State) -> dict[str, str]:
        """After a failed write: the files of a plan that can't be read, each with the reason. Reads each file alone."""
        return self._reader.unreadable(self.request(plan.read, plan, state))

    def read_ahead(self, files: pa.Table, plan: FilePlan, state: State) -> None:
        """Have Spark parse the next batch while the batch of this plan is written."""
        if files.num_rows == 0 or state.table is None or plan.replace or plan.schema is None:
            return
        request = self.request(files, replace(plan, schema=None, format=None), state, plan.schema)
        if self._helper is None:
            self._helper = ThreadPoolExecutor(1, "penstock-ahead")
        self._ahead = (request, self._helper.submit(self._spark.joined(lambda: self._reader.read(request))))

    def _taken_ahead(self, request: ReadRequest | None) -> Reading | None:
        """The reading that was made ahead, if it is of this request. If it failed: None, so it is made again."""
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
        """How the table must be changed before this batch; None if its columns fit.

        Only `sync_all_columns` changes a table. The batch's own commit adds new columns, so they need no change before.
        """
        columns = reading.request.columns
        if self._source.on_schema_change != SYNC or columns is None:
            return None
        difference = Difference(reading.made, columns)
        return difference if difference.gone or difference.other_than_new else None

    def append(self, plan: FilePlan, reading: Reading, note: str, state: State) -> None:
        """Append the batch in one commit with its number, which also deletes the earlier rows of rewritten files.

        CommitConflict, or a StatementError with `is_conflict`, if another writer was first.
        """
        assert state.table is not None
        have = {column.name.lower() for column in state.table.columns}
        adds = any(name.lower() not in have for name in reading.frame.columns)
        merge = adds or self._source.on_schema_change in (APPEND, SYNC)
        replaced = plan.with_status(REPLACED)["path"].to_pylist()
        spark = self._spark
        with spark.tagged(note):
            if replaced:
                # The plan may be of an earlier process. Then the ledger was not read yet.
                self._ledger.follow(state)
                condition, mark = self._rows_of(replaced), (MARK, plan.number)
                replace_rows(spark, reading.frame, self._location, condition, mark, note, merge_schema=merge)
                return
            transaction = spark.transaction(self._location, state.table)
            transaction.append(reading.frame, {MARK: plan.number}, note, merge_schema=merge, step=self._step)

    def _rows_of(self, names: list[str]) -> str:
        """A condition on rows: they came from one of these files.

        `source_file_uri` has the path that a file was read from, and its root may have been spelled otherwise then.
        """
        known = self._ledger.records
        earlier = located(known.filter(pc.is_in(known["path"], pa.array(names, pa.string()))))
        paths = dict.fromkeys(earlier["path"].to_pylist())
        return f"{FILE_URI} in ({', '.join(literal(self._spark.file_uri(path)) for path in paths)})"

    def drop(self) -> None:
        """Drop the reading of the last batch."""
        if self._reading is not None:
            (_, reading), self._reading = self._reading, None
            reading.drop(self._spark)

    def close(self) -> None:
        """Drop all readings, and stop the thread."""
        if self._helper is not None:
            self._helper.shutdown()
        if (reading := self._taken_ahead(None)) is not None:
            reading.drop(self._spark)
        self.drop()
