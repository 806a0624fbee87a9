"""Where a table outside of its folder may lie, and what of that place is its own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath

from penstock.delta.log import LOG_FOLDER, files_named, holds_table
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.lake import removal
from penstock.lake.lookup import Lookup
from penstock.lake.relations import LEDGER_FOLDER, Relation
from penstock.sql.names import Name, is_part
from penstock.storage import Storage, hadoop_uri, is_uri, normalize

_ELSEWHERE = "Nothing was changed: give it a location of its own, outside of the lake."
_FOLDERS_OF_A_TABLE = (LOG_FOLDER, LEDGER_FOLDER, "_change_data", "_symlink_format_manifest")
# Folders of partitions, and the two random letters that Delta puts before files where columns are mapped.
_DATA_FILE = re.compile(r"(?:(?:[^/]*=[^/]*|\w\w)/)*(?:[^/]+\.parquet|deletion_vector_[^/]+\.bin|\.[^/]+\.crc)")
_DELETION_VECTOR = re.compile(r"(?:\w+/)?deletion_vector_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.bin")
_SHOWN = 3


def check(lake: Lookup, name: Name, location: str) -> None:
    """Before a table is made or written: its location is nothing else's, and no folder of other files."""
    if _is_own_folder(lake, name, location):
        return
    _check_outside(lake, name, location)
    place = Storage(location, lake.storage_options)
    if holds_table(place):
        return
    if place.local and not lake.read_only:
        removal.sweep(os.path.dirname(location))
    check_free(name, place)


def check_free(name: Name, place: Storage) -> None:
    """There is nothing but what a first build that was killed has left."""
    begun = place.has_folder(LOG_FOLDER) or place.has_folder(LEDGER_FOLDER)
    found = _strangers(place) if begun else (entry.path for entry in place.list(""))
    if shown := list(islice(found, _SHOWN)):
        raise PenstockError(
            f"The location of {name} is not empty and holds no Delta table, but {', '.join(shown)}",
            where=place.root,
            fix="Nothing was changed: give it an empty folder, or empty this one where a first build was killed.",
        )


def check_unmoved(lake: Lookup, name: Name, wanted: str | None) -> None:
    """A table is not left behind, and not written on where the config does not say it is."""
    kept = lake.kept_link(name)
    if kept is None or kept.format != "delta":
        return
    location = normalize(kept.location)
    if location == wanted or (wanted is not None and not holds_table(Storage(location, lake.storage_options))):
        return
    raise PenstockError(
        f"The table of {name} lies in another place than its config says: {wanted or 'no location'}",
        where=location,
        fix=f"Put `location: {location}` back; or drop it, `drop table {name.sql}`, to have it made anew where "
        "the config says, and its old data left where they are.",
    )


def foreign(lake: Lookup, name: Name, location: str) -> Table | None:
    """The table at a relation's location that the relation has neither made nor adopted."""
    if lake.is_ours(name, location) or _is_own_folder(lake, name, location):
        return None
    if not holds_table(Storage(location, lake.storage_options)):
        return None
    return Table.open(location, lake.storage_options)


def check_adoptable(name: Name, table: Table, columns: list[str]) -> None:
    """A table of other columns is someone else's."""
    theirs = [column.name.lower() for column in table.columns]
    ours = [column.lower() for column in columns]
    if sorted(theirs) != sorted(ours):
        raise PenstockError(
            f"The location {table.location} holds another table, with the columns {', '.join(theirs)}; "
            f"{name} has {', '.join(ours)}",
            fix=_ELSEWHERE,
        )


def check_marked(name: Name, table: Table) -> None:
    """What is brought in exactly once goes on only where one of our commits is."""
    if table.mark is None:
        raise PenstockError(
            f"The location {table.location} holds another table, that {name} has not made", fix=_ELSEWHERE
        )


def check_removable(lake: Lookup, relation: Relation) -> None:
    """Before the data of a table go: the table is the relation's, and there is nothing else with it."""
    name, location = relation.name, relation.location
    if _is_own_folder(lake, name, location):
        return
    _check_outside(lake, name, location)
    place = Storage(location, lake.storage_options)
    if not place.has_folder(LOG_FOLDER):
        raise PenstockError(f"The location of {name} is no Delta table, so it is not dropped", where=location)
    if not lake.is_ours(name, normalize(location)):
        raise PenstockError(f"The location of {name} holds a table that it has not made", where=location)
    if place.local and os.path.islink(location):
        return  # the link alone goes
    if shown := list(islice(_unnamed(place), _SHOWN)):
        raise PenstockError(
            f"The location of {name} holds files that its Delta log does not name, {', '.join(shown)}, so it is not "
            "dropped",
            where=location,
            fix="Nothing was changed: move them away (VACUUM removes what killed writes have left), and drop it again.",
        )


def _check_outside(lake: Lookup, name: Name, location: str) -> None:
    place, root = _path(lake, location), _path(lake, lake.root)
    if place == root or place in root.parents:
        raise PenstockError(f"The location of {name} holds the lake itself", where=location, fix=_ELSEWHERE)
    if root not in place.parents:
        return
    schema, *below = place.relative_to(root).parts
    if schema.startswith((".", "_")) or not is_part(schema):
        return
    if not below or not is_part(below[0]):
        raise PenstockError(f"The location of {name} is the folder of a schema", where=location, fix=_ELSEWHERE)
    # Whether or not there is such a relation yet: what is made there later would be dropped with it.
    owner = Name(schema, below[0])
    raise PenstockError(f"The location of {name} is in the folder of {owner}", where=location, fix=_ELSEWHERE)


def _is_own_folder(lake: Lookup, name: Name, location: str) -> bool:
    parts = _path(lake, location).parts
    root = _path(lake, lake.root).parts
    return parts[: len(root)] == root and tuple(part.lower() for part in parts[len(root) :]) == (
        name.schema,
        name.identifier,
    )


def _path(lake: Lookup, location: str) -> PurePosixPath:
    """A location to compare by: without links of the disk, and with one scheme for a store."""
    return PurePosixPath(hadoop_uri(location) if is_uri(location) else os.path.realpath(location))


def _strangers(place: Storage) -> Iterator[str]:
    """What lies where a first build was begun and is not of its making, as far as names can tell."""
    for entry in place.list(""):
        if entry.path.split("/", 1)[0] not in _FOLDERS_OF_A_TABLE and not _DATA_FILE.fullmatch(entry.path):
            yield entry.path


def _unnamed(place: Storage) -> Iterator[str]:
    """The files in a table's folder that are neither named by its log nor of Delta's or penstock's own folders."""
    named = files_named(place)
    for path in _paths(place):
        folder, _, file = path.rpartition("/")
        checksum = file.startswith(".") and file.endswith(".crc")
        belongs = f"{folder}/{file[1:-4]}".lstrip("/") if checksum else path
        own = path.split("/", 1)[0] in _FOLDERS_OF_A_TABLE or _DELETION_VECTOR.fullmatch(belongs)
        if not own and belongs not in named:
            yield path


def _paths(place: Storage) -> Iterator[str]:
    if not place.local:
        yield from (entry.path for entry in place.list(""))
        return
    # By the disk itself: a file of anybody may have a name that is no key of an object store.
    for folder, folders, files in os.walk(place.root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*files, *links]:
            yield os.path.relpath(os.path.join(folder, name), place.root)
