"""All own tables of one lake, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pyarrow as pa

from penstock.lake.lookup import Lookup
from penstock.own_tables import information_schema
from penstock.own_tables.rows import Row, arrow
from penstock.sql.names import Name
from penstock.sql.wanted import EVERYTHING, Wanted

_MAKERS: Mapping[str, Callable[[Lookup, Wanted], Iterable[Row]]] = {
    "information_schema.schemata": information_schema.schemata,
    "information_schema.tables": information_schema.tables,
    "information_schema.columns": information_schema.columns,
}


class OwnTables:
    """The own tables of one lake."""

    def __init__(self, lake: Lookup) -> None:
        self._lake = lake

    def rows(self, name: Name, wanted: Wanted = EVERYTHING) -> pa.Table:
        """The rows of an own table as they are now; rows that are not `wanted` may be left out."""
        return arrow(name, _MAKERS[str(name)](self._lake, wanted))
