"""The relations of a lake and their locations, read from its storage without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from penstock.config import store_options
from penstock.delta.log import FIRST_COMMIT, has_commits
from penstock.delta.table import Column, Table
from penstock.errors import NotFound, PenstockError, UnsupportedTable
from penstock.lake import leftovers, object_store, reserved
from penstock.lake.relations import LINK_FILE, VIEW_FILE, Link, Relation, View, digest
from penstock.lake.reserved import SYSTEM_TABLE, OwnRows
from penstock.secrets import logger, redact, remember, remember_environment
from penstock.sql import tokens as sql
from penstock.sql.names import Name, check_part, is_part
from penstock.storage import Storage, files_at, given_location, is_uri, join, normalize, one_spelling

log = logger("penstock.lake")


class Lookup:
    """The relations of a lake. The folder of a relation is `<root>/<schema>/<identifier>/`."""

    def __init__(
        self,
        root: str,
        *,
        storage_options: Mapping[str, Any] | None = None,
        read_only: bool = False,
    ) -> None:
        remember_environment()
        if wrong := store_options.problems(storage_options):
            raise PenstockError("The storage options are wrong: " + "; ".join(wrong))
        remember(storage_options or {})
        self.storage_options = store_options.normalized(storage_options)
        self.root = given_location(root, key="root", options=self.storage_options)
        self.read_only = read_only
        self.storage = Storage(self.root, self.storage_options)
        self.links: dict[Name, Link] = {}
        """Locations from the caller's config. `_link.json` files hold others. A drop does not change these links."""
        self._released: set[tuple[Name, str]] = set()
        """Locations of relations that this process has dropped. The same relations may use them again."""
        self.own_rows: OwnRows | None = None
        """Makes the rows of the lake's own tables; None if only their columns are known."""
        self._had_own_names: set[Name] = set()
        """Relations with the names of own tables that this process has dropped. They may be created again."""
        self._warned_of: set[str] = set()
        """The reserved schemas that this lake has relations of its own in, and that were warned of."""

    def __repr__(self) -> str:
        return f"Lake({redact(self.root)!r})"

    def check_writable(self) -> None:
        if self.read_only:
            raise PenstockError(
                "This lake is open for reading only", where=self.root, fix="Connect without `read_only`."
            )

    # Which relations there are

    def schemas(self) -> list[str]:
        """The names of the schemas that have a folder."""
        self.storage.check_root(writable=False)
        folders = self.storage.folders("")
        return [folder for folder in folders if not folder.startswith((".", "_")) and is_part(folder)]

    def tables(self) -> list[Relation]:
        """Every relation of the lake."""
        return [relation for schema in self.schemas() for relation in self.relations(schema)]

    def relations(self, schema: str) -> list[Relation]:
        """The relations of one schema, including those with a location outside the lake."""
        schema = check_part(schema, "schema").lower()
        folder = self._schema_folder(schema)
        folders = self.storage.folders(folder)
        if any(map(leftovers.is_hidden, folders)) and not self.read_only:
            self._sweep(schema)
            folders = self.storage.folders(folder)
        on_disk = {Name(schema, identifier) for identifier in folders if is_part(identifier)}
        linked = {name for name in self.links if name.schema == schema}
        found = (self.find(name) for name in sorted(on_disk | linked, key=str))
        return [relation for relation in found if relation is not None]

    def own_relations(self, schema: str) -> list[Relation]:
        """The lake's own tables in a schema, without those whose names are taken by relations on disk."""
        names = sorted((name for name in reserved.TABLES if name.schema == schema.lower()), key=str)
        return [found for name in names if (found := self.find(name)) is not None and found.kind == SYSTEM_TABLE]

    def find(self, name: Name) -> Relation | None:
        """The relation with this name; None only if there is no such relation."""
        found = self._find(name)
        if name in reserved.TABLES:
            if found is None:
                return None if name in self._had_own_names else Relation(name, SYSTEM_TABLE, "")
            self._warn_of_own_schema(name.schema)
        return found

    def _find(self, name: Name) -> Relation | None:
        folder = self._folder(name)
        here = join(self.root, folder)
        view = self.storage.head(f"{folder}/{VIEW_FILE}")
        link, kept = self.links.get(name), None
        # On a store, a marker hides a view too.
        if not self.storage.local if view is not None else link is None or is_uri(link.location):
            kept = self._link_file(name)
        if kept is not None and object_store.is_marker(kept):
            if (link is None or view is not None) and not object_store.has_arrived(self.storage, kept):
                return None
            if link is not None and object_store.removes(kept, normalize(link.location)):
                return None
            kept = None
        if view is not None:
            return Relation(name, "view", here, f"{view.modified.timestamp()}-{view.size}")
        link = link or kept
        if link is not None and link.format != "delta":
            return Relation(name, "files", link.location, digest(link), link)
        storage = Storage(link.location, self.storage_options) if link is not None else self.storage
        prefix = "" if link is not None else f"{folder}/"
        first = storage.head(f"{prefix}{FIRST_COMMIT}")
        if first is not None or has_commits(storage, prefix):
            stamp = "" if first is None else f"{first.modified.timestamp()}-{first.size}"
            return Relation(name, "table", link.location if link is not None else here, stamp, link)
        return None

    def get(self, name: str | Name) -> Relation:
        """The relation with this name; NotFound if there is no such relation."""
        name = Name.parse(name) if isinstance(name, str) else name
        relation = self.find(name)
        if relation is None:
            raise self.missing(name)
        return relation

    def missing(self, name: Name) -> NotFound:
        """The NotFound error for a name without a relation."""
        link = self.link_of(name)
        if link is None:
            return NotFound(f"There is no relation {name}", where=self.root, fix="`lake.tables()` lists all relations.")
        return NotFound(
            f"There is no Delta table at the location of {name}",
            where=link.location,
            fix="Check its `location`. A source of raw files also needs a `format`.",
        )

    def mentioned(self, text: str) -> set[Name]:
        """The names in a SQL text whose schema exists in this lake."""
        pairs = sql.mentioned(text)
        known = {name.schema for name in self.links} | set(reserved.SCHEMAS)
        schemas = {schema.lower() for schema in self.schemas()} | known if pairs else set()
        names = set()
        for schema, identifier in pairs:
            if schema in schemas:
                try:
                    names.add(Name(schema, identifier))
                except PenstockError:
                    continue  # no relation: a path in backticks, or another invalid folder name
        return names | reserved.hidden_in(text)

    def log_of(self, name: str | Name) -> Table:
        """The Delta log of a table, without a JVM."""
        relation = self.get(name)
        if relation.kind != "table":
            raise PenstockError(f"{relation} is a {relation.kind}, so it has no Delta log")
        return Table.open(relation.location, self.storage_options)

    def columns(self, name: str | Name) -> list[Column]:
        """A relation's columns, from its Delta log or its `_view.json`.

        UnsupportedTable for raw files and for tables that delta-rs can't read: only Spark knows their columns.
        """
        relation = self.get(name)
        if relation.kind == "view":
            return list(self.view(relation).columns)
        if relation.kind == SYSTEM_TABLE:
            return list(reserved.TABLES[relation.name])
        if relation.kind == "files":
            raise UnsupportedTable(f"{relation} stands for raw files, and only Spark knows the columns of raw files")
        return Table.open(relation.location, self.storage_options, files=False).columns

    def last_modified(self, name: str | Name) -> datetime:
        """The time of the last change of a relation's data, without a JVM."""
        relation = self.get(name)
        if relation.kind == SYSTEM_TABLE:
            raise PenstockError(
                f"{relation} is made anew at each read, so it has no time of its last change",
                fix="For the freshness of such a source, set `loaded_at_field`.",
            )
        found = self.change_of(relation)
        if found is None:
            raise PenstockError(f"The view {relation} reads no relation of the lake, so its last change is unknown")
        return found

    def change_of(self, relation: Relation) -> datetime | None:
        """The time of the last change of a relation's data. None for an own table, and for a view that reads no others."""
        if relation.kind == "table":
            return Table.open(relation.location, self.storage_options, files=False).last_modified
        if relation.kind == "view":
            inputs = (self.change_of(self.get(other)) for other in self.view(relation).inputs)
            return max((moment for moment in inputs if moment is not None), default=None)
        if relation.kind == SYSTEM_TABLE:
            return None
        dates = [entry.modified for entry in files_at(relation.location, self.storage_options)]
        if not dates:
            raise NotFound(f"There are no files behind {relation}", where=relation.location)
        return max(dates)

    def view(self, relation: Relation) -> View:
        path = f"{self._folder(relation.name)}/{VIEW_FILE}"
        return View.from_bytes(self.storage.read(path), join(self.root, path))

    # Where the relations are

    def check_name(self, name: Name) -> None:
        """PenstockError if the name is an own table's, or is in a reserved schema that the lake did not have before."""
        if name.schema in reserved.SCHEMAS and name not in self._had_own_names:
            self._check_reserved(name, name.schema)
            if name in reserved.TABLES and self._find(name) is None:
                raise reserved.refusal(name)

    def _check_reserved(self, name: Name | str, schema: str) -> None:
        if not self.storage.has_folder(self._schema_folder(schema)):
            raise reserved.refusal(name)
        self._warn_of_own_schema(schema)

    def _warn_of_own_schema(self, schema: str) -> None:
        if schema not in self._warned_of:
            self._warned_of.add(schema)
            log.warning(
                "The lake has a schema %s of its own, and this name is reserved for the lake's own tables now. Its "
                "relations go on working, and hide own tables of the same name. To see all own tables, move them to "
                "another schema: ALTER TABLE %s.… RENAME TO ….…",
                schema,
                schema,
            )

    def location_of(self, name: Name) -> str:
        """The location of an existing or future table. An error while another process drops or renames it."""
        self.check_name(name)
        self._settle(name)
        link = self.link_of(name)
        return link.location if link is not None else self.folder_of(name)

    def folder_of(self, name: Name) -> str:
        """The folder of a relation in the lake. Its data are there, unless they have a location outside the lake."""
        return join(self.root, self._folder(name))

    def link_of(self, name: Name) -> Link | None:
        """The relation's link from the caller's config, or else from its `_link.json`."""
        return self.links[name] if name in self.links else self.kept_link(name)

    def kept_link(self, name: Name) -> Link | None:
        """The link in the relation's `_link.json`, without the caller's config."""
        link = self._link_file(name)
        return None if object_store.is_marker(link) else link

    def is_ours(self, name: Name, location: str) -> bool:
        """Whether the relation of this name has created or adopted the table at a location."""
        kept = self.kept_link(name)
        return (name, location) in self._released or (kept is not None and normalize(kept.location) == location)

    def _marker(self, name: Name) -> Link | None:
        """The marker of an unfinished drop or rename on an object store; None if there is none."""
        link = self._link_file(name)
        return link if object_store.is_marker(link) else None

    def _link_file(self, name: Name) -> Link | None:
        path = f"{self._folder(name)}/{LINK_FILE}"
        if not self.storage.exists(path):
            return None
        link = Link.from_bytes(self.storage.read(path), join(self.root, path))
        return (
            replace(link, location=one_spelling(link.location, self.storage_options)) if is_uri(link.location) else link
        )

    def _folder(self, name: Name) -> str:
        schema = self._schema_folder(name.schema)
        return f"{schema}/{self._as_on_disk(schema, name.identifier)}"

    def _schema_folder(self, schema: str) -> str:
        return self._as_on_disk("", schema)

    def _as_on_disk(self, parent: str, wanted: str) -> str:
        """The existing folder for a name. Names ignore case, but folders may not; without a folder, the name itself."""
        path = f"{parent}/{wanted}" if parent else wanted
        if not self.storage.local or self.storage.has_folder(path):
            return wanted
        return next((folder for folder in self.storage.folders(parent) if folder.lower() == wanted), wanted)

    # Leftovers of killed processes

    def _settle(self, name: Name) -> None:
        """Finish or undo a killed drop or rename on an object store, before its name is used again."""
        marker = None if self.storage.local and not self._is_elsewhere(name) else self._marker(name)
        if marker is not None and not self.read_only:
            object_store.settle(self.storage, self._folder(name), marker, self.storage_options)

    def _is_elsewhere(self, name: Name) -> bool:
        return name in self.links and is_uri(self.links[name].location)

    def _sweep(self, schema: str) -> None:
        """Delete the leftovers of killed drops in a schema's folder on disk."""
        if self.storage.local:
            leftovers.sweep(join(self.root, self._schema_folder(schema)))
