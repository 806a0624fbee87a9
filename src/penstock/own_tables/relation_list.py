"""The relations of a lake that a query of an own table can use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from penstock.lake.lookup import Lookup
from penstock.lake.relations import Relation
from penstock.lake.reserved import SCHEMAS
from penstock.sql.wanted import EVERYTHING, Wanted

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


def each(work: Callable[[Relation], T], found: Iterable[Relation]) -> list[T]:
    """The work for each relation, several at a time, in the order of the relations."""
    with ThreadPoolExecutor(_READERS, "penstock-own") as pool:
        return list(pool.map(work, found))
