"""`information_schema`: the schemas, relations and columns of the lake, with the columns that dbt's packages ask for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from penstock.delta.table import Column, Table
from penstock.errors import NotFound, UnreadableTable, UnsupportedTable
from penstock.lake.lookup import Lookup
from penstock.lake.relations import Relation
from penstock.lake.reserved import DESCRIPTIONS, SCHEMAS, SYSTEM_TABLE
from penstock.own_tables.relation_list import each, relations
from penstock.own_tables.relation_list import schemas as schemas_of
from penstock.secrets import logger, redact
from penstock.sql.names import CATALOG
from penstock.sql.wanted import Wanted
from penstock.storage import join

log = logger("penstock.own_tables")

# dbt-utils makes dbt's types of relations from these.
_TYPES = {"table": "BASE TABLE", "view": "VIEW", "files": "EXTERNAL TABLE", SYSTEM_TABLE: "VIEW"}
_LENGTH = re.compile(r"(?:var)?char\((\d+)\)")
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")

_Row = dict[str, Any]


def schemata(lake: Lookup, wanted: Wanted) -> Iterator[_Row]:
    """The schemas of the lake, and the reserved ones."""
    folders = {schema.lower(): schema for schema in lake.schemas()}
    for schema in sorted({*schemas_of(lake), *SCHEMAS}):
        folder = folders.get(schema)
        location = None if folder is None else redact(join(lake.root, folder))
        yield {"catalog_name": CATALOG, "schema_name": schema, "location": location}


def tables(lake: Lookup, wanted: Wanted) -> list[_Row]:
    """The relations of the lake, and its own tables."""
    return each(lambda relation: _table(lake, relation), relations(lake, wanted, own=True))


def _table(lake: Lookup, relation: Relation) -> _Row:
    row = _named(relation) | {
        "table_type": _TYPES[relation.kind],
        "is_insertable_into": "YES" if relation.kind == "table" else "NO",
    }
    if relation.kind == SYSTEM_TABLE:
        return row | {"comment": DESCRIPTIONS[relation.name]}
    if relation.kind == "view":
        return row | {"comment": lake.view(relation).description}
    row["storage_path"] = redact(relation.location)
    if relation.kind == "files":
        return row | {"data_source_format": relation.link.format.upper() if relation.link is not None else None}
    row["data_source_format"] = "DELTA"
    try:
        table = Table.open(relation.location, lake.storage_options, files=False)
        return row | {"comment": table.description, "created": table.created, "last_altered": table.last_modified}
    except (NotFound, UnsupportedTable, UnreadableTable) as error:
        # It is listed all the same; `penstock.relations` says what is wrong with it.
        log.debug("%s is listed without what its log says: %s", relation, error)
        return row


def columns(lake: Lookup, wanted: Wanted) -> Iterator[_Row]:
    """The columns of all relations. Spark is asked for those of raw files, and of tables that delta-rs can't read."""
    found = list(relations(lake, wanted, own=True))
    hard = [relation for relation in found if relation.kind == "files"]
    easy = [relation for relation in found if relation.kind != "files"]
    read = dict(zip(easy, each(lambda relation: _columns(lake, relation), easy), strict=True))
    # One after the other: each thread would start a session of Spark.
    read |= {relation: _columns(lake, relation) for relation in hard}
    for relation in found:
        for position, column in enumerate(read[relation], start=1):
            yield _named(relation) | _column(column) | {"ordinal_position": position}


def _columns(lake: Lookup, relation: Relation) -> list[Column]:
    try:
        return lake.columns(relation.name)
    except NotFound as error:
        log.debug("%s has no columns: %s", relation, error)  # dropped meanwhile, or raw files that are not there
        return []


def _column(column: Column) -> _Row:
    length, decimal = _LENGTH.fullmatch(column.type), _DECIMAL.fullmatch(column.type)
    return {
        "column_name": column.name,
        "is_nullable": "YES" if column.nullable else "NO",
        "data_type": column.type,
        "character_maximum_length": int(length[1]) if length else None,
        "numeric_precision": int(decimal[1]) if decimal else None,
        "numeric_scale": int(decimal[2]) if decimal else None,
        "comment": column.comment,
    }


def _named(relation: Relation) -> _Row:
    return {
        "table_catalog": CATALOG,
        "table_schema": relation.name.schema,
        "table_name": relation.name.identifier,
    }
