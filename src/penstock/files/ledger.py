"""The files that are in the table: the records of all committed plans of its generation."""

from __future__ import annotations

import pyarrow as pa

from penstock.files.compaction import NumberRange
from penstock.files.ledger_reader import Head, LedgerReader
from penstock.files.plan import FilePlan
from penstock.files.records import RECORDS
from penstock.files.roots import Roots
from penstock.files.source import none
from penstock.protocol.journal import Journal
from penstock.protocol.state import State
from penstock.spark.reading.file_schema import FileSchema


class Ledger:
    """The ledger in memory: read once, then followed commit by commit."""

    def __init__(self, journal: Journal[FilePlan]) -> None:
        self.reader = LedgerReader(journal)
        self._life: tuple[str | None, int] | None = None
        """The ledger and the generation that were read."""
        self._parts: list[pa.Table] = []
        self._last = -1
        """The last number whose records were read."""
        self._head = Head()

    @property
    def records(self) -> pa.Table:
        return pa.concat_tables(self._parts) if self._parts else none(RECORDS)

    @property
    def schema(self) -> FileSchema | None:
        """The schema that the newest plan reads its files with; None if it read none."""
        return self._head.schema

    @property
    def format(self) -> str | None:
        """The format of the newest plan's files."""
        return self._head.format

    @property
    def roots(self) -> Roots:
        """The roots of the newest plan."""
        return self._head.roots

    @property
    def last_read(self) -> int:
        """How many records the last file had that was read."""
        return self._parts[-1].num_rows if self._parts else 0

    def follow(self, state: State) -> pa.Table:
        """Read the records that were committed since the last call, or all on the first call, and return them."""
        if state.mark is None:
            return none(RECORDS)
        if not self.covers(state):
            self._life, self._parts, self._last = (state.ledger, state.generation), [], state.generation - 1
            self._head = Head(self._head.schema, self._head.format)
        numbers = NumberRange(self._last + 1, state.mark)
        part = self.reader.read(numbers, state, self.roots, is_next=bool(self._parts))
        self._parts += part.records
        self._head, self._last = part.head or self._head, state.mark
        return pa.concat_tables(part.records) if part.records else none(RECORDS)

    def covers(self, state: State) -> bool:
        """Whether the records that were read are of the table as it is now, not of one before a refresh."""
        return self._life == (state.ledger, state.generation)
