"""`penstock.files`: every file that a table was built from, and every file that waits."""

from __future__ import annotations

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.files.plan import KIND
from penstock.files.source import Listings, none
from penstock.inspection.file_story import WAITING, recorded_files, waiting_files
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup
from penstock.lake.reserved import FILES
from penstock.own_tables.relation_list import each, ledgers
from penstock.own_tables.rows import schema_of
from penstock.sql.names import Name
from penstock.sql.wanted import Wanted

_RECORDED = ("ingested", "replaced", "skipped", "quarantined", "released")
_TIMES = pa.timestamp("ms", "UTC")


def files(lake: Lookup, wanted: Wanted) -> pa.Table:
    """The files of all tables of files. The roots are listed only if files that wait are wanted."""
    listings = Listings(lake.storage_options)
    schema = schema_of(FILES)
    found = each(lambda ledger: _files(ledger, listings, wanted), ledgers(lake, wanted, KIND))
    filled = [part.cast(schema) for parts in found for part in parts if part.num_rows]
    # In one chunk: PySpark's createDataFrame stops at an empty one, and leaves out the rows after it.
    return pa.concat_tables([none(schema), *filled]).combine_chunks()


def _files(ledger: TableLedger, listings: Listings, wanted: Wanted) -> list[pa.Table]:
    name, parts = ledger.relation.name, []
    of_table = {"table_schema": name.schema, "table_name": name.identifier}
    if any(wanted.admits(**of_table, status=status) for status in _RECORDED):
        parts.append(_named(name, recorded_files(ledger)))
    if wanted.admits(**of_table, status=WAITING):
        try:
            parts.append(_named(name, waiting_files(ledger, listings)))
        except PenstockError as error:
            raise PenstockError(
                f"The files that wait for {name} are not known: {error}",
                fix=f"To leave them out: WHERE status <> '{WAITING}', or WHERE table_name <> '{name.identifier}'.",
            ) from error
    return parts


def _named(name: Name, found: pa.Table) -> pa.Table:
    size = found.num_rows
    return pa.table(
        {
            "table_schema": pa.repeat(name.schema, size),
            "table_name": pa.repeat(name.identifier, size),
            "path": found["path"],
            "status": found["status"],
            "reason": found["reason"],
            "size": found["size"],
            "modified_at": found["modified"].cast(_TIMES),
            "batch_id": found["batch"],
            "planned_at": found["recorded"].cast(_TIMES),
        }
    )
