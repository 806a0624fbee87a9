"""All own tables of one lake, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from penstock.lake.lookup import Lookup
from penstock.lake.reserved import FILES
from penstock.own_tables import information_schema
from penstock.own_tables.batches import batches
from penstock.own_tables.changes import changes
from penstock.own_tables.files import files
from penstock.own_tables.relations import relations
from penstock.own_tables.rows import Row, arrow
from penstock.own_tables.windows import windows
from penstock.sql.names import Name
from penstock.sql.wanted import EVERYTHING, Wanted

_MAKERS: Mapping[str, Callable[[Lookup, Wanted], Iterable[Row]]] = {
    "information_schema.schemata": information_schema.schemata,
    "information_schema.tables": information_schema.tables,
    "information_schema.columns": information_schema.columns,
    "penstock.relations": relations,
    "penstock.batches": batches,
    "penstock.changes": changes,
    "penstock.windows": windows,
}


class OwnTables:
    """The own tables of one lake."""

    def __init__(self, lake: Lookup) -> None:
        self._lake = lake

    def rows(self, name: Name, wanted: Wanted = EVERYTHING) -> pa.Table:
        """The rows of an own table as they are now; rows that are not `wanted` may be left out."""
        if name == FILES:
            return files(self._lake, wanted)
        return arrow(name, _MAKERS[str(name)](self._lake, wanted))
