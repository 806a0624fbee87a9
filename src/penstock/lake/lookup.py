"""Which relations a lake has, and where each one is; read from disk, without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from penstock.config import store_options
from penstock.delta.log import FIRST_COMMIT, has_commits
from penstock.delta.table import Column, Table
from penstock.errors import NotFound, PenstockError, UnsupportedTable
from penstock.lake import removal
from penstock.lake.relations import LINK_FILE, VIEW_FILE, Link, Relation, View, digest
from penstock.secrets import redact, remember, remember_environment
from penstock.sql import tokens as sql
from penstock.sql.names import Name, check_part, is_part
from penstock.storage import Storage, files_at, given_location, is_uri, join, normalize


class Lookup:
    """The relations of a lake, `<root>/<schema>/<identifier>/`."""

    def __init__(
        self,
        root: str,
        *,
        storage_options: Mapping[str, Any] | None = None,
        read_only: bool = False,
    ) -> None:
        remember_environment()
        self.root = given_location(root, key="root")
        if wrong := store_options.problems(storage_options):
            raise PenstockError("The options of the store are wrong: " + "; ".join(wrong))
        remember(storage_options or {})
        self.storage_options = store_options.normalized(storage_options)
        self.read_only = read_only
        self.storage = Storage(self.root, self.storage_options)
        self.links: dict[Name, Link] = {}
        """Locations from the caller's config. `_link.json` files tell of further ones. A drop does not change these."""
        self._let_go: set[tuple[Name, str]] = set()
        """Locations of relations that this process has dropped: their tables may be made there again."""

    def __repr__(self) -> str:
        return f"Lake({redact(self.root)!r})"

    def check_writable(self) -> None:
        if self.read_only:
            raise PenstockError("This lake is open for reading only", where=self.root, fix="Connect without read_only.")

    # Which relations there are

    def schemas(self) -> list[str]:
        """The schemas on disk."""
        self.storage.check_root(writable=False)
        folders = self.storage.folders("")
        return [folder for folder in folders if not folder.startswith((".", "_")) and is_part(folder)]

    def tables(self) -> list[Relation]:
        """Every relation of the lake, read from disk."""
        return [relation for schema in self.schemas() for relation in self.relations(schema)]

    def relations(self, schema: str) -> list[Relation]:
        """The relations of one schema, those with a location elsewhere included."""
        schema = check_part(schema, "schema").lower()
        folder = self._schema_folder(schema)
        folders = self.storage.folders(folder)
        if any(map(removal.is_hidden, folders)) and not self.read_only:
            self._sweep(schema)
            folders = self.storage.folders(folder)
        on_disk = {Name(schema, identifier) for identifier in folders if is_part(identifier)}
        linked = {name for name in self.links if name.schema == schema}
        found = (self.find(name) for name in sorted(on_disk | linked, key=str))
        return [relation for relation in found if relation is not None]

    def find(self, name: Name) -> Relation | None:
        """What a name stands for; None only when there is no such relation."""
        folder = self._folder(name)
        here = join(self.root, folder)
        if (entry := self.storage.head(f"{folder}/{VIEW_FILE}")) is not None:
            return Relation(name, "view", here, f"{entry.modified.timestamp()}-{entry.size}")
        link, kept = self.links.get(name), None
        if link is None or is_uri(link.location):
            kept = self._link_file(name)
        if kept is not None and removal.is_marker(kept):
            if link is None and not removal.has_arrived(self.storage, kept):
                return None
            if link is not None and removal.removes(kept, normalize(link.location)):
                return None
            kept = None
        link = link or kept
        if link is not None and link.format != "delta":
            return Relation(name, "files", link.location, digest(link), link)
        place = Storage(link.location, self.storage_options) if link is not None else self.storage
        prefix = "" if link is not None else f"{folder}/"
        first = place.head(f"{prefix}{FIRST_COMMIT}")
        if first is not None or has_commits(place, prefix):
            stamp = "" if first is None else f"{first.modified.timestamp()}-{first.size}"
            return Relation(name, "table", link.location if link is not None else here, stamp, link)
        return None

    def get(self, name: str | Name) -> Relation:
        """What a name stands for; an error where it stands for nothing."""
        name = Name.parse(name) if isinstance(name, str) else name
        relation = self.find(name)
        if relation is None:
            raise self.missing(name)
        return relation

    def missing(self, name: Name) -> NotFound:
        """The error that says why a name stands for nothing."""
        link = self.link_of(name)
        if link is None:
            return NotFound(f"There is no relation {name}", where=self.root, fix="`lake.tables()` lists what there is.")
        return NotFound(
            f"{name} has a location where there is no Delta table",
            where=link.location,
            fix="Check its `location`; a source of raw files has a `format` as well.",
        )

    def mentioned(self, text: str) -> set[Name]:
        """The names in a SQL text that may be relations of this lake."""
        pairs = sql.mentioned(text)
        known = {name.schema for name in self.links}
        schemas = {schema.lower() for schema in self.schemas()} | known if pairs else set()
        names = set()
        for schema, identifier in pairs:
            if schema in schemas:
                try:
                    names.add(Name(schema, identifier))
                except PenstockError:
                    continue  # a path in backticks, or another name that no folder can have
        return names

    def log_of(self, name: str | Name) -> Table:
        """The Delta log of a table, without a JVM."""
        relation = self.get(name)
        if relation.kind != "table":
            raise PenstockError(f"{relation} is a {relation.kind}, and has no Delta log")
        return Table.open(relation.location, self.storage_options)

    def columns(self, name: str | Name) -> list[Column]:
        """A relation's columns, from its log or its `_view.json`.

        UnsupportedTable for raw files, and for a table that delta-rs cannot read: only Spark knows their columns.
        """
        relation = self.get(name)
        if relation.kind == "view":
            return list(self.view(relation).columns)
        if relation.kind == "files":
            raise UnsupportedTable(f"{relation} stands for raw files, and only Spark knows their columns")
        return Table.open(relation.location, self.storage_options, files=False).columns

    def last_modified(self, name: str | Name) -> datetime:
        """When a relation's data last changed, without a JVM."""
        relation = self.get(name)
        if relation.kind == "table":
            return Table.open(relation.location, self.storage_options, files=False).last_modified
        if relation.kind == "view":
            inputs = [self.last_modified(Name.parse(other)) for other in self.view(relation).inputs]
            if not inputs:
                raise PenstockError(f"The view {relation} reads no relation of the lake, so nothing dates it")
            return max(inputs)
        dates = [entry.modified for entry in files_at(relation.location, self.storage_options)]
        if not dates:
            raise NotFound(f"There are no files behind {relation}", where=relation.location)
        return max(dates)

    def view(self, relation: Relation) -> View:
        path = f"{self._folder(relation.name)}/{VIEW_FILE}"
        return View.from_bytes(self.storage.read(path), join(self.root, path))

    # Where they are

    def location_of(self, name: Name) -> str:
        """Where a table of this name is, or would be made; an error while another process drops or renames it."""
        self._settle(name)
        link = self.link_of(name)
        return link.location if link is not None else self.folder_of(name)

    def folder_of(self, name: Name) -> str:
        """The folder of a relation in the lake, where its data are unless they have a location elsewhere."""
        return join(self.root, self._folder(name))

    def link_of(self, name: Name) -> Link | None:
        return self.links[name] if name in self.links else self.kept_link(name)

    def kept_link(self, name: Name) -> Link | None:
        """What the relation's `_link.json` says, whatever the caller knows."""
        link = self._link_file(name)
        return None if removal.is_marker(link) else link

    def is_ours(self, name: Name, location: str) -> bool:
        """Whether the table at a location was made, or adopted, by the relation of this name."""
        kept = self.kept_link(name)
        return (name, location) in self._let_go or (kept is not None and normalize(kept.location) == location)

    def _marker(self, name: Name) -> Link | None:
        """The marker of a drop or a rename that is under way on an object store, or was killed there."""
        link = self._link_file(name)
        return link if removal.is_marker(link) else None

    def _link_file(self, name: Name) -> Link | None:
        path = f"{self._folder(name)}/{LINK_FILE}"
        if not self.storage.exists(path):
            return None
        return Link.from_bytes(self.storage.read(path), join(self.root, path))

    def _folder(self, name: Name) -> str:
        schema = self._schema_folder(name.schema)
        return f"{schema}/{self._as_on_disk(schema, name.identifier)}"

    def _schema_folder(self, schema: str) -> str:
        return self._as_on_disk("", schema)

    def _as_on_disk(self, parent: str, wanted: str) -> str:
        """Names know no case, folders may: take the one that is there."""
        path = f"{parent}/{wanted}" if parent else wanted
        if not self.storage.local or self.storage.has_folder(path):
            return wanted
        return next((folder for folder in self.storage.folders(parent) if folder.lower() == wanted), wanted)

    # What a killed process has left

    def _settle(self, name: Name) -> None:
        """Finish or undo a drop or a rename that was killed on an object store, before its name is used."""
        marker = None if self.storage.local and not self._is_elsewhere(name) else self._marker(name)
        if marker is not None and not self.read_only:
            removal.settle(self.storage, self._folder(name), marker, self.storage_options)

    def _is_elsewhere(self, name: Name) -> bool:
        return name in self.links and is_uri(self.links[name].location)

    def _sweep(self, schema: str) -> None:
        """Remove what drops that were killed have left of a schema's relations on disk."""
        if self.storage.local:
            removal.sweep(join(self.root, self._schema_folder(schema)))
