"""A compaction: one file that has the records of many plans."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.errors import PenstockError
from penstock.files.records import RECORDS, schema_from_header, schema_to_header
from penstock.files.roots import READ_PATH, Roots
from penstock.protocol.journal import FOLDER
from penstock.protocol.plan import FORMAT, check_format
from penstock.spark.reading.file_schema import FileSchema

_HEADER = b"penstock"
_TIER = 10


@dataclass(frozen=True)
class NumberRange:
    """A range of plan numbers; both ends are in it."""

    first: int
    last: int


@dataclass(frozen=True)
class Compaction:
    """The content of a compaction file."""

    numbers: NumberRange
    records: pa.Table
    schema: FileSchema | None
    """The schema that the newest plan reads its files with."""
    format: str | None
    voided: int | None = None
    """The number before the range, if it was cancelled: the plan of that number does not tell."""
    ledger: str | None = None
    """The life of the table that the records belong to."""
    roots: Roots | None = None
    """The roots of the newest plan; None in compactions of 0.1.0, which do not have them."""

    def to_bytes(self, generation: int) -> bytes:
        header = {
            "format_version": FORMAT,
            "ledger": self.ledger,
            "generation": generation,
            **(self.roots or Roots()).to_header(),
            "first": self.numbers.first,
            "last": self.numbers.last,
            **schema_to_header(self.schema),
            "source_format": self.format,
            "voided": self.voided,
        }
        records = self.records.replace_schema_metadata({_HEADER: json.dumps(header).encode()})
        sink = io.BytesIO()
        # With checksums: a damaged record could ingest a file twice, or never.
        pq.write_table(records, sink, compression="zstd", write_page_checksum=True)
        return sink.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> Compaction:
        """The compaction in these bytes; an error that names `where` if they are damaged."""
        try:
            # Not read_table, which imports pandas: half a second of a run that finds nothing new.
            table = pq.ParquetFile(pa.BufferReader(data), page_checksum_verification=True).read()
            header = json.loads((table.schema.metadata or {})[_HEADER])
            check_format(header, where)
            return cls(
                NumberRange(header["first"], header["last"]),
                _records(table),
                schema_from_header(header),
                header.get("source_format"),
                header.get("voided"),
                header.get("ledger"),
                None if header["format_version"] == 1 else Roots.from_header(header),
            )
        except (ValueError, KeyError, TypeError, OSError, pa.ArrowException) as error:
            raise PenstockError(
                f"This compaction of the ledger can't be read: {error}",
                where=where,
                fix="Move it away: if its plans are still there, the next run reads them instead. "
                "Otherwise put it back from a backup, or run with --full-refresh.",
            ) from error


def _records(table: pa.Table) -> pa.Table:
    """The records of a compaction. Those of 0.1.0 have no path beside the name."""
    if READ_PATH not in table.column_names:
        table = table.append_column(READ_PATH, pa.nulls(table.num_rows, pa.string()))
    return table.select(RECORDS.names).cast(RECORDS)


def path_of_compaction(number: int) -> str:
    """The file of the compaction that ends at a number, below the table's folder."""
    return f"{FOLDER}/{number}.parquet"


def tier(last: int, generation: int, interval: int) -> NumberRange:
    """The numbers for the compaction that ends at `last`: an interval, or ten of them, or a hundred, …

    >>> tier(19, 0, 10), tier(99, 0, 10)
    (NumberRange(first=10, last=19), NumberRange(first=0, last=99))
    """
    done = last - generation + 1
    size = interval
    while done % (size * _TIER) == 0:
        size *= _TIER
    return NumberRange(last - size + 1, last)
