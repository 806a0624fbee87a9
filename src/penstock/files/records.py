"""The parts that plans and compactions share: the tables of files, and the schema in the header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.files.roots import READ_PATH
from penstock.files.source import FILES, none
from penstock.spark.reading.file_schema import FileSchema

INGESTED, REPLACED, SKIPPED, QUARANTINED = "ingested", "replaced", "skipped", "quarantined"
RELEASED = "released"
"""The status of a file that was taken out of quarantine: its earlier records no longer count, so it is a new file again."""
READ = (INGESTED, REPLACED)
"""The statuses of files whose rows are in the table. The commit of a replaced file deletes its earlier rows."""

_OUTCOME = [(READ_PATH, pa.string()), ("status", pa.string()), ("reason", pa.string())]
LINES = pa.schema([*FILES, *_OUTCOME])
"""The files of a plan: name in the ledger, time, size, path to read if that is not the name, and what becomes of it."""
RECORDS = pa.schema([*FILES, ("batchId", pa.int64()), ("batchProcessingTime", pa.int64()), *_OUTCOME])
"""The files of a ledger, in plans and in compactions on disk."""
KEY = ["path", "modificationTime", "size"]
"""A file with the same values here is the same file."""


def schema_to_header(schema: FileSchema | None) -> dict[str, Any]:
    return {
        "folders": [] if schema is None else list(schema.folders),
        "schema": None if schema is None else schema.struct,
    }


def schema_from_header(header: Mapping[str, Any]) -> FileSchema | None:
    """The schema that files were read with; None if none were read."""
    struct = header.get("schema")
    return None if struct is None else FileSchema(struct, tuple(header.get("folders") or ()))


def lines(files: pa.Table, status: str, reason: str | None = None) -> pa.Table:
    """The lines of a plan for files that all have one status."""
    size = files.num_rows
    if size == 0:
        return none(LINES)
    return pa.table(
        [
            *(files[name] for name in KEY),
            files[READ_PATH] if READ_PATH in files.column_names else pa.nulls(size, pa.string()),
            pa.repeat(pa.scalar(status), size),
            pa.array([reason] * size, pa.string()),
        ],
        schema=LINES,
    )


def known(records: pa.Table) -> pa.Table:
    """The records that count. A file that was released counts as new until a later batch records it again."""
    status = records["status"]
    # Not pc.equal(), which imports pandas; see `source.none`.
    if RELEASED not in pc.unique(status).to_pylist():
        return records
    last: dict[tuple[object, ...], int] = {}
    for row in records.filter(pc.equal(status, RELEASED)).to_pylist():
        key = tuple(row[name] for name in KEY)
        last[key] = max(row["batchId"], last.get(key, -1))
    paths = pa.array(list({path for path, *_ in last}), pa.string())
    touched = pc.is_in(records["path"], value_set=paths)
    rows = records.filter(touched)
    kept = [row["batchId"] > last.get(tuple(row[name] for name in KEY), -1) for row in rows.to_pylist()]
    return pa.concat_tables([records.filter(pc.invert(touched)), rows.filter(pa.array(kept, pa.bool_()))])


def summary_of(records: pa.Table) -> dict[str, Any]:
    """The facts of a ledger's records in the summary for people."""
    counted = known(records)
    return {
        "modifiedTime": pc.max(counted["modificationTime"]).as_py(),
        "files": counted.num_rows,
        "bytes": pc.sum(counted["size"]).as_py() or 0,
    }


def without(files: pa.Table, records: pa.Table) -> pa.Table:
    """The files that are not in the records, by path, time and size.

    This compares by one hash table of the paths: a million files take a second and little memory. A path that the
    records have several times may be missed by that, so the few files that are left are compared exactly.
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
    """A column in one chunk."""
    if isinstance(column, pa.ChunkedArray):
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    return column
