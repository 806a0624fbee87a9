"""The time line of one table as Arrow, for `Lake.history`."""

from __future__ import annotations

from dataclasses import asdict

import pyarrow as pa

from penstock.inspection.history import history
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup

_TIME = pa.timestamp("us", "UTC")
_SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("time", _TIME),
        ("kind", pa.string()),
        ("operation", pa.string()),
        ("batch", pa.int64()),
        *((name, pa.int64()) for name in ("rows_inserted", "rows_updated", "rows_deleted", "files", "bytes")),
        ("seconds", pa.float64()),
        ("what", pa.string()),
    ]
)


def time_line(lake: Lookup, name: str) -> pa.Table:
    """The commits of a table, the newest first."""
    events = [asdict(event) for event in history(TableLedger.open(lake, name, check=False))]
    return pa.Table.from_pylist(events, schema=_SCHEMA)
