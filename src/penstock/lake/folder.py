"""Changes to a lake's folder without a JVM: create schemas, views and links, drop and rename relations."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from penstock.delta.table import Column
from penstock.errors import NotFound, PenstockError
from penstock.lake import disk, leftovers, locations, object_store, reserved
from penstock.lake.lookup import Lookup
from penstock.lake.relations import LINK_FILE, VIEW_FILE, Link, Relation, View, digest
from penstock.sql.names import Name, check_for_spark, check_part, is_part
from penstock.steps import Step, no_step
from penstock.storage import Storage, join, normalize


class LakeFolder(Lookup):
    """A lake whose relations can be created, dropped and renamed."""

    def create_schema(self, schema: str) -> None:
        """Create the folder of a schema, if it does not exist."""
        self.check_writable()
        self.storage.check_root(writable=True)
        schema = check_part(schema, "schema").lower()
        check_for_spark(schema)
        if schema in reserved.SCHEMAS:
            self._check_reserved(schema, schema)
        self.storage.make_folder(self._schema_folder(schema))
        self._sweep(schema)

    def drop_schema(self, schema: str, *, cascade: bool = True) -> None:
        """Drop the relations of a schema. Other files in its folder stay, and then the folder stays too."""
        self.check_writable()
        if schema.lower() in reserved.SCHEMAS:
            self._check_reserved(schema, schema.lower())
        relations = self.relations(schema)
        if relations and not cascade:
            raise PenstockError(
                f"The schema {schema} is not empty", where=self.root, fix="Add CASCADE to drop its relations too."
            )
        for relation in relations:
            self.drop(relation.name)
        folder = self._schema_folder(schema.lower())
        if self.storage.local:
            self._sweep(schema.lower())
            disk.remove_empty(join(self.root, folder))
            return
        for identifier in self.storage.folders(folder):
            if is_part(identifier) and self._marker(Name(schema, identifier)) is not None:
                self.drop(Name(schema, identifier), missing_ok=True)

    def drop(self, name: Name, *, missing_ok: bool = False, owns_location: bool = False, step: Step = no_step) -> None:
        """Drop a relation. The data at a location outside the lake is deleted only if the caller owns the location.

        Readers see the whole relation or none. If the process is killed, a later process finishes the drop.
        NotFound if there is no such relation, unless `missing_ok`.
        """
        self.check_writable()
        self.check_name(name)
        if name in reserved.TABLES:
            self._had_own_names.add(name)
        folder = self._folder(name)
        self._sweep(name.schema)
        marker = self._marker(name)
        if marker is not None and not object_store.is_arriving(marker):
            object_store.finish_drop(self.storage, folder, marker, self.storage_options)
            self._drop_folder(name, no_step)
            return
        if marker is not None:
            object_store.settle(self.storage, folder, marker, self.storage_options)
        relation = self.find(name)
        kept = self.kept_link(name)
        if relation is None and kept is None:
            if not missing_ok:
                raise NotFound(f"There is no relation {name} to drop", where=self.root)
            return
        if relation is not None and relation.link is not None and relation.kind == "table":
            if owns_location:
                self._drop_elsewhere(relation, step)
            elif kept is not None:
                self._released.add((name, normalize(kept.location)))
        self._drop_folder(name, step)

    def rename(self, old: Name, new: Name, *, step: Step = no_step) -> None:
        """Rename a relation. Readers see it under one of the two names. An error if the new name is taken."""
        self.check_writable()
        self.check_name(old)
        self.check_name(new)
        relation = self.get(old)
        check_for_spark(new.schema, new.identifier)
        if self.find(new) is not None:
            raise PenstockError(
                f"{old} can't be renamed to {new}: {new} exists already",
                where=self.root,
                fix=f"Drop {new} first, or choose another name.",
            )
        self._settle(new)
        old_folder, new_folder = self._folder(old), self._folder(new)
        if self.storage.local:
            self._sweep(new.schema)
            if self.storage.has_folder(old_folder):
                disk.rename_folder(join(self.root, old_folder), join(self.root, new_folder), step)
        elif relation.link is None:
            beside_view = self.kept_link(old)
            object_store.move_objects(self.storage, old_folder, new_folder, step)
            if beside_view is not None:
                self.link(new, beside_view)
        if relation.link is not None and self.kept_link(new) is None:
            self.link(new, relation.link)
            self._drop_folder(old, step)

    def write_view(
        self,
        name: Name,
        query: str,
        columns: Sequence[Column],
        *,
        description: str | None = None,
        comments: Mapping[str, str] | None = None,
    ) -> View:
        """Write a view that every later process sees. The caller must have checked the SQL with Spark."""
        self.check_name(name)
        documented = {column.lower(): text for column, text in (comments or {}).items()}
        kept = tuple(
            Column(column.name, column.type, column.nullable, documented.get(column.name.lower(), column.comment))
            for column in columns
        )
        view = View(query, kept, description, self._digests(self.mentioned(query) - {name}))
        self.create_schema(name.schema)
        self._settle(name)
        self._keep_links(view)
        self.storage.write(f"{self._folder(name)}/{VIEW_FILE}", view.to_bytes())
        return view

    def check_cycle(self, name: Name, query: str, through: tuple[Name, ...] = ()) -> None:
        """Raise an error if a view with this query would read itself, directly or through other views."""
        for read in self.mentioned(query) - set(through):
            if read == name:
                way = "".join(f" through {view}" for view in through)
                raise PenstockError(f"The view {name} reads itself{way}", fix=f"Read the tables behind {name} instead.")
            relation = self.find(read)
            if relation is not None and relation.kind == "view":
                self.check_cycle(name, self.view(relation).sql, (*through, read))

    def view_is_current(
        self,
        name: Name,
        query: str,
        *,
        description: str | None = None,
        comments: Mapping[str, str] | None = None,
    ) -> bool:
        """Whether a view with the same SQL, docs and inputs exists already, so that writing it changes nothing."""
        relation = self.find(name)
        if relation is None or relation.kind != "view":
            return False
        view = self.view(relation)
        documented = {column.lower(): text for column, text in (comments or {}).items()}
        return (
            view.sql == query
            and view.description == description
            and all(documented.get(column.name.lower(), column.comment) == column.comment for column in view.columns)
            and view.inputs == self._digests(map(Name.parse, view.inputs))
        )

    def link(self, name: Name, link: Link) -> None:
        """Write a link: for every later reader, the name stands for the data at the link's location."""
        self.check_writable()
        self.check_name(name)
        self.create_schema(name.schema)
        self.storage.write(f"{self._folder(name)}/{LINK_FILE}", link.to_bytes())

    def table_made(self, name: Name, link: Link | None) -> None:
        """Record a new table after its first commit: write its link, and delete the view that had its name."""
        folder = self._folder(name)
        if link is not None:
            self.link(name, link)
        if self.storage.exists(f"{folder}/{VIEW_FILE}"):
            self.storage.delete(f"{folder}/{VIEW_FILE}")

    def _digests(self, names: Iterable[Name]) -> dict[str, str]:
        """A digest of each relation's columns, by name. Names without a relation are left out."""
        found = {name: self.find(name) for name in sorted(names, key=str)}
        return {str(name): self._digest(relation) for name, relation in found.items() if relation is not None}

    def _digest(self, relation: Relation) -> str:
        if relation.kind == "files":
            return digest(relation.link)
        columns = [(column.name, column.type) for column in self.columns(relation.name)]
        return digest(relation.kind, relation.location, columns)

    def _keep_links(self, view: View) -> None:
        """Write the links of a view's inputs, so that the view is readable without the project's config."""
        for other in map(Name.parse, view.inputs):
            if other in self.links and self.kept_link(other) is None:
                self.link(other, self.links[other])

    def _drop_elsewhere(self, relation: Relation, step: Step) -> None:
        """Delete a table's data outside the lake. An error if other files would be deleted with it."""
        locations.check_removable(self, relation)
        storage = Storage(normalize(relation.location), self.storage_options)
        if storage.local:
            leftovers.sweep(os.path.dirname(storage.root))
            disk.drop_folder(storage.root, step)
        else:
            object_store.drop_objects(self.storage, self._folder(relation.name), elsewhere=storage, step=step)

    def _drop_folder(self, name: Name, step: Step) -> None:
        folder = self._folder(name)
        if self.storage.local:
            disk.drop_folder(join(self.root, folder), step)
        else:
            object_store.drop_objects(self.storage, folder, step=step)
