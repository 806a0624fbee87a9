"""Checks of table locations outside the lake: which ones are allowed, and which files there belong to the table."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath

from penstock.delta.log import LOG_FOLDER, files_named, holds_table
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.lake import leftovers
from penstock.lake.lookup import Lookup
from penstock.lake.relations import LEDGER_FOLDER, Relation
from penstock.sql.names import Name, is_part
from penstock.storage import Storage, hadoop_uri, is_uri, normalize

_ELSEWHERE = "Nothing was changed. Choose a folder outside the lake that holds no other table."
_TABLE_FOLDERS = (LOG_FOLDER, LEDGER_FOLDER, "_change_data", "_symlink_format_manifest")
# Files may be in partition folders, or, with column mapping, in Delta's folders of two random letters.
_DATA_FILE = re.compile(r"(?:(?:[^/]*=[^/]*|\w\w)/)*(?:[^/]+\.parquet|deletion_vector_[^/]+\.bin|\.[^/]+\.crc)")
_DELETION_VECTOR = re.compile(r"(?:\w+/)?deletion_vector_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.bin")
_SHOWN = 3


def check(lake: Lookup, name: Name, location: str) -> None:
    """Check a location before a table is created or written there.

    An error if the location belongs to another relation, or is a folder with other files.
    """
    if _is_own_folder(lake, name, location):
        return
    _check_outside(lake, name, location)
    storage = Storage(location, lake.storage_options)
    if holds_table(storage):
        return
    if storage.local and not lake.read_only:
        leftovers.sweep(os.path.dirname(location))
    check_free(name, storage)


def check_free(name: Name, storage: Storage) -> None:
    """Raise an error if a location has files. The files of a first build that was killed are allowed."""
    begun = storage.has_folder(LOG_FOLDER) or storage.has_folder(LEDGER_FOLDER)
    found = _foreign_files(storage) if begun else (entry.path for entry in storage.list(""))
    if shown := list(islice(found, _SHOWN)):
        raise PenstockError(
            f"The location of {name} has no Delta table, but other files: {', '.join(shown)}",
            where=storage.root,
            fix="Nothing was changed. Choose an empty folder. If a first build was killed here, delete its files.",
        )


def check_unmoved(lake: Lookup, name: Name, wanted: str | None) -> None:
    """Raise an error if the relation's table is at another location than the config says."""
    kept = lake.kept_link(name)
    if kept is None or kept.format != "delta":
        return
    location = normalize(kept.location)
    if location == wanted or (wanted is not None and not holds_table(Storage(location, lake.storage_options))):
        return
    raise PenstockError(
        f"The table of {name} is not at the location in its config ({wanted or 'no location'})",
        where=location,
        fix=f"Put `location: {location}` back. Or run `drop table {name.sql}`: the next run then creates the table at "
        "the location in the config, and the old data stay where they are.",
    )


def foreign(lake: Lookup, name: Name, location: str) -> Table | None:
    """The table at a relation's location, if the relation has neither created nor adopted it; else None."""
    if lake.is_ours(name, location) or _is_own_folder(lake, name, location):
        return None
    if not holds_table(Storage(location, lake.storage_options)):
        return None
    return Table.open(location, lake.storage_options)


def check_adoptable(name: Name, table: Table, columns: list[str]) -> None:
    """Raise an error if a table has other columns than the relation: it belongs to someone else."""
    theirs = [column.name.lower() for column in table.columns]
    ours = [column.lower() for column in columns]
    if sorted(theirs) != sorted(ours):
        raise PenstockError(
            f"The location {table.location} holds another table, with the columns {', '.join(theirs)}; "
            f"{name} has {', '.join(ours)}",
            fix=_ELSEWHERE,
        )


def check_marked(name: Name, table: Table) -> None:
    """Raise an error if a table has no commit of ours: only a marked table can continue exactly once."""
    if table.mark is None:
        raise PenstockError(
            f"The location {table.location} holds another table, which was not created as {name}", fix=_ELSEWHERE
        )


def check_removable(lake: Lookup, relation: Relation) -> None:
    """Raise an error if a location's table is not the relation's own, or if there are other files with it."""
    name, location = relation.name, relation.location
    if _is_own_folder(lake, name, location):
        return
    _check_outside(lake, name, location)
    storage = Storage(location, lake.storage_options)
    if not storage.has_folder(LOG_FOLDER):
        raise PenstockError(
            f"{name} can't be dropped: its location holds no Delta table",
            where=location,
            fix="Nothing was changed. Check the `location` of the model.",
        )
    if not lake.is_ours(name, normalize(location)):
        raise PenstockError(
            f"{name} can't be dropped: its location has a table that was not created as {name}",
            where=location,
            fix="Nothing was changed. Check the `location` of the model.",
        )
    if storage.local and os.path.islink(location):
        return  # only the link is deleted
    if shown := list(islice(_unnamed(storage), _SHOWN)):
        raise PenstockError(
            f"{name} can't be dropped: its location holds files that its Delta log does not name, {', '.join(shown)}",
            where=location,
            fix="Nothing was changed. Move these files away (VACUUM deletes files of killed writes), and drop again.",
        )


def _check_outside(lake: Lookup, name: Name, location: str) -> None:
    path, root = _path(location), _path(lake.root)
    if path == root or path in root.parents:
        raise PenstockError(f"The location of {name} holds the lake itself", where=location, fix=_ELSEWHERE)
    if root not in path.parents:
        return
    schema, *below = path.relative_to(root).parts
    if schema.startswith((".", "_")) or not is_part(schema):
        return
    if not below or not is_part(below[0]):
        raise PenstockError(f"The location of {name} is the folder of a schema", where=location, fix=_ELSEWHERE)
    # Also if there is no such relation yet: a drop of a later one would delete this table too.
    owner = Name(schema, below[0])
    raise PenstockError(f"The location of {name} is in the folder of {owner}", where=location, fix=_ELSEWHERE)


def _is_own_folder(lake: Lookup, name: Name, location: str) -> bool:
    parts = _path(location).parts
    root = _path(lake.root).parts
    return parts[: len(root)] == root and tuple(part.lower() for part in parts[len(root) :]) == (
        name.schema,
        name.identifier,
    )


def _path(location: str) -> PurePosixPath:
    """A location for comparison: links on the disk are resolved, and each kind of store has one scheme."""
    return PurePosixPath(hadoop_uri(location) if is_uri(location) else os.path.realpath(location))


def _foreign_files(storage: Storage) -> Iterator[str]:
    """The files that a first build has not written, judged by their names."""
    for entry in storage.list(""):
        if entry.path.split("/", 1)[0] not in _TABLE_FOLDERS and not _DATA_FILE.fullmatch(entry.path):
            yield entry.path


def _unnamed(storage: Storage) -> Iterator[str]:
    """The files in a table's folder that its log does not name, outside the folders of Delta and penstock."""
    named = files_named(storage)
    for path in _paths(storage):
        folder, _, file = path.rpartition("/")
        checksum = file.startswith(".") and file.endswith(".crc")
        belongs = f"{folder}/{file[1:-4]}".lstrip("/") if checksum else path
        own = path.split("/", 1)[0] in _TABLE_FOLDERS or _DELETION_VECTOR.fullmatch(belongs)
        if not own and belongs not in named:
            yield path


def _paths(storage: Storage) -> Iterator[str]:
    if not storage.local:
        yield from (entry.path for entry in storage.list(""))
        return
    # Not through obstore: the name of a foreign file on disk may be an invalid key for obstore.
    for folder, folders, files in os.walk(storage.root):
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*files, *links]:
            yield os.path.relpath(os.path.join(folder, name), storage.root)
