"""`penstock.relations`: all tables, views and raw files of the lake, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.inspection.relations_status import relations_status
from penstock.lake.lookup import Lookup
from penstock.own_tables.relation_list import relations as relations_of
from penstock.own_tables.rows import Row
from penstock.sql.names import Name
from penstock.sql.wanted import Wanted


def relations(lake: Lookup, wanted: Wanted) -> Iterator[Row]:
    """The status of each relation, as `penstock status` shows it. A relation that can't be read has an `error`."""
    names = [str(relation) for relation in relations_of(lake, wanted)]
    for status in relations_status(lake, names) if names else []:
        name = Name.parse(status.name)
        yield {
            "table_schema": name.schema,
            "table_name": name.identifier,
            "kind": status.kind,
            "version": status.version,
            "row_count": status.rows,
            "size": status.bytes,
            "data_files": status.files,
            "small_files": status.small_files,
            "deleted_rows": status.deleted_rows,
            "changed_at": status.changed,
            "last_run_at": status.last_run,
            "files_waiting": status.waiting,
            "files_quarantined": status.quarantined,
            "versions_behind": status.behind,
            "holes": status.holes,
            "error": status.error,
            "attention": "; ".join(status.attention) or None,
        }
