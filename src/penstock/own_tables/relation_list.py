"""The relations of a lake that a query of an own table can use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from penstock.errors import UnsupportedTable
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup
from penstock.lake.relations import Relation
from penstock.lake.reserved import SCHEMAS
from penstock.sql.wanted import EVERYTHING, Wanted

S = TypeVar("S")
T = TypeVar("T")
_READERS = 8


def schemas(lake: Lookup) -> list[str]:
    """The names of the lake's schemas in lower case, those of linked relations included, without reserved ones that
    have no relations of the lake.
    """
    return sorted({schema.lower() for schema in lake.schemas()} | {name.schema for name in lake.links})


def relations(lake: Lookup, wanted: Wanted = EVERYTHING, *, own: bool = False) -> Iterator[Relation]:
    """The wanted relations, sorted by name; with `own`, also the lake's own tables."""
    for schema in sorted({*schemas(lake), *(SCHEMAS if own else ())}):
        if wanted.admits(table_schema=schema):
            found = [*lake.relations(schema), *(lake.own_relations(schema) if own else ())]
            for relation in sorted(found, key=lambda relation: relation.name.identifier):
                if wanted.admits(table_schema=schema, table_name=relation.name.identifier):
                    yield relation


def ledgers(lake: Lookup, wanted: Wanted, kind: str) -> list[TableLedger]:
    """The ledgers of the wanted tables that have a ledger of a kind."""
    tables = (relation for relation in relations(lake, wanted) if relation.kind == "table")
    return [ledger for ledger in each(lambda table: _ledger(lake, table, kind), tables) if ledger is not None]


def _ledger(lake: Lookup, table: Relation, kind: str) -> TableLedger | None:
    try:
        ledger = TableLedger.open(lake, table, check=False)
    except UnsupportedTable:
        return None  # delta-rs can't read it, so it is not built by a ledger
    return ledger if ledger.kind == kind else None


def named(ledger: TableLedger) -> dict[str, str]:
    """The columns with the name of a ledger's table."""
    name = ledger.relation.name
    return {"table_schema": name.schema, "table_name": name.identifier}


def each(work: Callable[[S], T], found: Iterable[S]) -> list[T]:
    """The work for each, several at a time, in the same order."""
    with ThreadPoolExecutor(_READERS, "penstock-own") as pool:
        return list(pool.map(work, found))
