"""A batch as it is written down before its data: a header, and a line per file. And how batches are cut."""

from __future__ import annotations

import io
import json
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from penstock.errors import PenstockError
from penstock.files.roots import Roots
from penstock.files.source import FILES, none
from penstock.protocol.plan import FORMAT, check_header

INGESTED, REPLACED, SKIPPED, QUARANTINED = "ingested", "replaced", "skipped", "quarantined"
READ = (INGESTED, REPLACED)
"""The statuses of files whose rows are in the table; the earlier rows of a replaced one left with the same commit."""

LINES = pa.schema([*FILES, ("place", pa.string()), ("status", pa.string()), ("reason", pa.string())])
"""A file by the name that the ledger knows it by, the place where it lies if that is another, and what becomes of it."""
RECORDS = pa.schema([*FILES, ("batchId", pa.int64()), ("batchProcessingTime", pa.int64()), *list(LINES)[3:]])
"""A line of the ledger, in a plan and in a compaction alike."""
KEY = ["path", "modificationTime", "size"]
KIND = "files"
_CHUNK = 10_000


@dataclass(frozen=True)
class FilePlan:
    """One batch. Once it is written it is run as it stands, or cancelled as a whole."""

    number: int
    generation: int
    lines: pa.Table
    """The files, by the names that the ledger knows them by, with what becomes of each."""
    replace: bool = False
    """Whether it makes the table, or makes it anew."""
    schema: dict[str, Any] | None = None
    """The schema that the files are read with, as Spark's JSON."""
    folders: tuple[str, ...] = ()
    """The columns that come from folder names (`day=…/`)."""
    format: str | None = None
    roots: Roots = field(default_factory=Roots)
    voided: tuple[int, str] | None = None
    """The number before this one, and why it was cancelled, where it was."""
    ledger: str | None = None
    """The table's life that it belongs to, or begins."""
    model: str = ""
    """A digest of the SQL that it was planned for."""
    spelled: bool = False
    """Whether its paths are those of 0.1.0, which knew a file by its root as the config spelled it."""
    time: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def batch_id(self) -> int:
        return self.number - self.generation

    def named(self, roots: Roots) -> FilePlan:
        """The same with the names that the ledger knows its files by."""
        return replace(self, lines=roots.identify(self.lines), spelled=False) if self.spelled else self

    def with_status(self, *statuses: str) -> pa.Table:
        return self.lines.filter(pc.is_in(self.lines["status"], pa.array(statuses, pa.string())))

    @property
    def read(self) -> pa.Table:
        return self.with_status(*READ)

    def records(self) -> pa.Table:
        size = self.lines.num_rows
        return pa.table(
            [
                *(self.lines[name] for name in KEY),
                _repeat(self.batch_id, size),
                _repeat(self.time, size),
                self.lines["place"],
                self.lines["status"],
                self.lines["reason"],
            ],
            schema=RECORDS,
        )

    def to_bytes(self) -> bytes:
        header = {
            "format_version": FORMAT,
            "kind": KIND,
            "ledger": self.ledger,
            "number": self.number,
            "generation": self.generation,
            "batchId": self.batch_id,
            "replace": self.replace,
            "files": self.lines.num_rows,
            "time": self.time,
            "source_format": self.format,
            **self.roots.to_header(),
            "folders": list(self.folders),
            "schema": self.schema,
            "model": self.model,
            "voided": None if self.voided is None else {"number": self.voided[0], "reason": self.voided[1]},
        }
        out = io.BytesIO()
        out.write(_line(header))
        records = self.records()
        # By chunks: the first plan of a table may record a million files that came before `starting_timestamp`.
        for start in range(0, records.num_rows, _CHUNK):
            for line in records.slice(start, _CHUNK).to_pylist():
                out.write(_line({key: value for key, value in line.items() if value is not None}))
        return out.getvalue()

    @classmethod
    def from_bytes(cls, number: int, data: bytes, where: str, *, committed: bool = False) -> FilePlan:
        head, _, body = data.partition(b"\n")
        try:
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
                schema=header.get("schema"),
                folders=tuple(header.get("folders") or ()),
                format=header.get("source_format"),
                roots=roots,
                voided=None if voided is None else (voided["number"], voided["reason"]),
                ledger=header.get("ledger"),
                model=header.get("model", ""),
                spelled=header["format_version"] == 1,
                time=header["time"],
            )
        except (ValueError, KeyError, TypeError, pa.ArrowException) as error:
            raise PenstockError(
                f"This plan can't be read: {error}",
                where=where,
                fix="Its batch is in the table: put the file back from a backup, or run with --full-refresh."
                if committed
                else "Its batch is not in the table: move the file away, and the files are planned anew.",
            ) from error


def _line(item: dict[str, Any]) -> bytes:
    return json.dumps(item, ensure_ascii=False).encode() + b"\n"


def _repeat(number: int, size: int) -> pa.Array:
    """pa.repeat() would import pandas, as `none` says."""
    return pa.Array.from_buffers(pa.int64(), size, [None, pa.py_buffer(array("q", [number]) * size)])


def _lines(body: bytes) -> pa.Table:
    if not body.strip():
        return none(RECORDS)
    read = pa.json.read_json(
        io.BytesIO(body),
        # A path may be longer than a block of the reader.
        read_options=pa.json.ReadOptions(block_size=max(1 << 20, min(len(body), 1 << 28))),
        parse_options=pa.json.ParseOptions(explicit_schema=RECORDS, unexpected_field_behavior="ignore"),
    )
    if read["path"].null_count or read["size"].null_count or read["modificationTime"].null_count:
        raise ValueError("a line lacks path, size or modificationTime")
    return read.select(RECORDS.names)


def lines(files: pa.Table, status: str, reason: str | None = None) -> pa.Table:
    """Files with what becomes of them."""
    size = files.num_rows
    if size == 0:
        return none(LINES)
    return pa.table(
        [
            *(files[name] for name in KEY),
            files["place"] if "place" in files.column_names else pa.nulls(size, pa.string()),
            pa.repeat(pa.scalar(status), size),
            pa.array([reason] * size, pa.string()),
        ],
        schema=LINES,
    )


class Backlog:
    """The files that are still to come in, oldest first, and where the batches are cut."""

    def __init__(self, files: pa.Table, max_files: int, max_bytes: int | None) -> None:
        """`files` has the columns of a plan's lines."""
        self._limits = (max_files, max_bytes)
        self._files = files.sort_by([("modificationTime", "ascending"), ("path", "ascending")]).combine_chunks()
        self._ends = list(_cuts(self._files["size"], max_files, max_bytes))
        self._start = 0
        self._next = 0

    @property
    def batches(self) -> int:
        """How many batches remain."""
        return len(self._ends) - self._next

    def head(self) -> pa.Table:
        """The files of the next batch; none when all are in."""
        if self.batches == 0:
            return self._files.slice(0, 0)
        return self._files.slice(self._start, self._ends[self._next] - self._start)

    def second(self) -> pa.Table:
        """The files of the batch after the next; none when there is no such."""
        if self.batches < 2:
            return self._files.slice(0, 0)
        start = self._ends[self._next]
        return self._files.slice(start, self._ends[self._next + 1] - start)

    def remove(self, records: pa.Table) -> None:
        """Take out what has come in, by us or by another."""
        if records.num_rows == 0 or self.batches == 0:
            return
        head = self.head()
        if head.num_rows == records.num_rows and head.select(KEY).equals(records.select(KEY).combine_chunks()):
            self._start = self._ends[self._next]
            self._next += 1
            return
        rest = without(self._files.slice(self._start), records)
        self.__init__(rest, *self._limits)  # type: ignore[misc]


def without(files: pa.Table, records: pa.Table) -> pa.Table:
    """The files that no record names with this path, time and size.

    One hash table of the paths, then plain comparisons: a million files take a second and little memory. A path that
    the ledger has more than once may be missed by that, so the few that are left are compared exactly.
    """
    if files.num_rows == 0 or records.num_rows == 0:
        return files
    at = _one(pc.index_in(files["path"], value_set=_one(records["path"])))
    known = pc.and_(
        pc.equal(_one(records["modificationTime"]).take(at), _one(files["modificationTime"])),
        pc.equal(_one(records["size"]).take(at), _one(files["size"])),
    )
    left = files.filter(pc.or_kleene(pc.is_null(at), pc.invert(known)))
    same = records.filter(pc.is_in(records["path"], value_set=_one(left["path"]))) if left.num_rows else None
    if same is None or same.num_rows == 0:
        return left
    seen = {tuple(row.values()) for row in same.select(KEY).to_pylist()}
    return left.filter(pa.array([tuple(row.values()) not in seen for row in left.select(KEY).to_pylist()], pa.bool_()))


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column


def _cuts(sizes: pa.ChunkedArray, max_files: int, max_bytes: int | None) -> Iterator[int]:
    """Where each batch ends: whichever limit comes first, and one file at least."""
    total = len(sizes)
    if max_bytes is None:
        yield from (min(end, total) for end in range(max_files, total + max_files, max_files))
        return
    files = used = 0
    for index, size in enumerate(sizes.to_pylist()):
        if files and (files >= max_files or used + size > max_bytes):
            yield index
            files = used = 0
        files += 1
        used += size
    if files:
        yield total
