"""The plan of a batch of files, and its bytes: a header, and a line for each file."""

from __future__ import annotations

import io
import json
import time
from array import array
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from penstock.files.records import KEY, LINES, READ, RECORDS, schema_from_header, schema_to_header
from penstock.files.roots import READ_PATH, Roots
from penstock.files.source import none
from penstock.protocol.plan import Parsing, check_header, header_of
from penstock.spark.reading.file_schema import FileSchema

KIND = "files"
_CHUNK = 10_000


@dataclass(frozen=True)
class FilePlan:
    """One batch of files. Once it is written it is run unchanged, or cancelled as a whole."""

    number: int
    generation: int
    lines: pa.Table
    """The files, by their names in the ledger, and what becomes of each; see `records.LINES`."""
    replace: bool = False
    """Whether it creates the table, or replaces it."""
    schema: FileSchema | None = None
    """The schema that the files are read with; None until Spark has looked at them."""
    format: str | None = None
    roots: Roots = field(default_factory=Roots)
    voided: tuple[int, str] | None = None
    """The number before this one and the reason, if that number was cancelled."""
    ledger: str | None = None
    """The life of the table that the plan belongs to, or begins."""
    model: str = ""
    """A digest of the model's SQL."""
    selection: dict[str, Any] | None = field(default=None, hash=False)
    """The keys by which the run that planned it selected files. For people: no run reads them."""
    spelled: bool = False
    """Whether its paths are those of 0.1.0: they begin with the root as the config spelled it."""
    time: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def batch_id(self) -> int:
        """The number of the batch within its generation."""
        return self.number - self.generation

    def named(self, roots: Roots) -> FilePlan:
        """The same plan with its files' names in the ledger."""
        return replace(self, lines=roots.identify(self.lines), spelled=False) if self.spelled else self

    def with_status(self, *statuses: str) -> pa.Table:
        return self.lines.filter(pc.is_in(self.lines["status"], pa.array(statuses, pa.string())))

    @property
    def read(self) -> pa.Table:
        """The lines of the files that the batch reads."""
        return self.with_status(*READ)

    def records(self) -> pa.Table:
        """The lines as records of the ledger."""
        size = self.lines.num_rows
        return pa.table(
            [
                *(self.lines[name] for name in KEY),
                _repeat(self.batch_id, size),
                _repeat(self.time, size),
                self.lines[READ_PATH],
                self.lines["status"],
                self.lines["reason"],
            ],
            schema=RECORDS,
        )

    def to_bytes(self) -> bytes:
        header = header_of(self, KIND, self.generation, self.time) | {
            "files": self.lines.num_rows,
            "source_format": self.format,
            **self.roots.to_header(),
            **schema_to_header(self.schema),
            "model": self.model,
            "selection": self.selection,
            "voided": None if self.voided is None else {"number": self.voided[0], "reason": self.voided[1]},
        }
        out = io.BytesIO()
        out.write(_line(header))
        records = self.records()
        # In chunks: the first plan of a table may record a million files that came before `starting_timestamp`.
        for start in range(0, records.num_rows, _CHUNK):
            for line in records.slice(start, _CHUNK).to_pylist():
                out.write(_line({key: value for key, value in line.items() if value is not None}))
        return out.getvalue()

    @classmethod
    def from_bytes(cls, number: int, data: bytes, where: str, *, committed: bool = False) -> FilePlan:
        """The plan in these bytes; an error that names `where` and the next step, if they are damaged."""
        head, _, body = data.partition(b"\n")
        with Parsing(where, committed=committed):
            header = json.loads(head)
            check_header(header, number, KIND, where)
            roots = Roots.from_header(header)
            records = _lines(body)
            if records.num_rows != header["files"]:
                raise ValueError(f"it has {records.num_rows} of {header['files']} lines")
            voided = header.get("voided")
            return cls(
                number=number,
                generation=header["generation"],
                lines=records.select(LINES.names),
                replace=header["replace"],
                schema=schema_from_header(header),
                format=header.get("source_format"),
                roots=roots,
                voided=None if voided is None else (voided["number"], voided["reason"]),
                ledger=header.get("ledger"),
                model=header.get("model", ""),
                selection=header.get("selection"),
                spelled=header["format_version"] == 1,
                time=header["time"],
            )


def _line(item: dict[str, Any]) -> bytes:
    return json.dumps(item, ensure_ascii=False).encode() + b"\n"


def _repeat(number: int, size: int) -> pa.Array:
    """A column of one number. `pa.repeat()` would import pandas; see `source.none`."""
    return pa.Array.from_buffers(pa.int64(), size, [None, pa.py_buffer(array("q", [number]) * size)])


def _lines(body: bytes) -> pa.Table:
    """The records in the lines of a plan."""
    if not body.strip():
        return none(RECORDS)
    try:
        read = pa.json.read_json(
            io.BytesIO(body),
            # A line may be longer than the reader's default block.
            read_options=pa.json.ReadOptions(block_size=max(1 << 20, min(len(body), 1 << 28))),
            parse_options=pa.json.ParseOptions(explicit_schema=RECORDS, unexpected_field_behavior="ignore"),
        )
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    if read["path"].null_count or read["size"].null_count or read["modificationTime"].null_count:
        raise ValueError("a line lacks path, size or modificationTime")
    return read.select(RECORDS.names)
