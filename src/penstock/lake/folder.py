"""A lake's folder: schemas, views and links are written here, and relations are dropped and renamed; without a JVM."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from penstock.delta.table import Column
from penstock.errors import NotFound, PenstockError
from penstock.lake import locations, removal
from penstock.lake.lookup import Lookup
from penstock.lake.relations import LINK_FILE, VIEW_FILE, Link, Relation, View, digest
from penstock.sql.names import Name, check_for_spark, check_part, is_part
from penstock.steps import Step, no_step
from penstock.storage import Storage, join, normalize


class LakeFolder(Lookup):
    """A lake that can be changed."""

    def create_schema(self, schema: str) -> None:
        self.check_writable()
        self.storage.check_root(writable=True)
        schema = check_part(schema, "schema").lower()
        check_for_spark(schema)
        self.storage.make_folder(self._schema_folder(schema))
        self._sweep(schema)

    def drop_schema(self, schema: str, *, cascade: bool = True) -> None:
        """Drop the relations of a schema; what is no relation stays, and so does its folder then."""
        self.check_writable()
        relations = self.relations(schema)
        if relations and not cascade:
            raise PenstockError(f"The schema {schema} is not empty", fix="Add CASCADE to drop its relations too.")
        for relation in relations:
            self.drop(relation.name)
        folder = self._schema_folder(schema.lower())
        if self.storage.local:
            self._sweep(schema.lower())
            removal.remove_empty(join(self.root, folder))
            return
        for identifier in self.storage.folders(folder):
            if is_part(identifier) and self._marker(Name(schema, identifier)) is not None:
                self.drop(Name(schema, identifier), missing_ok=True)

    def drop(self, name: Name, *, missing_ok: bool = False, owns_location: bool = False, step: Step = no_step) -> None:
        """Remove one relation's folder; data elsewhere goes only when the caller owns its location.

        Whoever looks sees the whole relation or none, and a drop that is killed is finished by a later process.
        """
        self.check_writable()
        folder = self._folder(name)
        self._sweep(name.schema)
        marker = self._marker(name)
        if marker is not None and not removal.is_arriving(marker):
            removal.finish_drop(self.storage, folder, marker, self.storage_options)
            self._drop_folder(name, no_step)
            return
        if marker is not None:
            removal.settle(self.storage, folder, marker, self.storage_options)
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
                self._let_go.add((name, normalize(kept.location)))
        self._drop_folder(name, step)

    def rename(self, old: Name, new: Name, *, step: Step = no_step) -> None:
        """Give a relation another name; whoever looks sees it under one of the two."""
        self.check_writable()
        relation = self.get(old)
        check_for_spark(new.schema, new.identifier)
        if self.find(new) is not None:
            raise PenstockError(f"{new} is there already, so {old} can't take its name", fix="Drop it first.")
        self._settle(new)
        old_folder, new_folder = self._folder(old), self._folder(new)
        if self.storage.local:
            self._sweep(new.schema)
            if self.storage.has_folder(old_folder):
                removal.rename_folder(join(self.root, old_folder), join(self.root, new_folder), step)
        elif relation.kind == "view":
            self.storage.move_folder(old_folder, new_folder)
        elif relation.link is None:
            removal.move_objects(self.storage, old_folder, new_folder, step)
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
        """Write a view that every later process sees. The caller has had Spark check its SQL."""
        documented = {column.lower(): text for column, text in (comments or {}).items()}
        kept = tuple(
            Column(column.name, column.type, column.nullable, documented.get(column.name.lower(), column.comment))
            for column in columns
        )
        view = View(query, kept, description, self._digests(self.mentioned(query) - {name}))
        self.create_schema(name.schema)
        self._keep_links(view)
        self.storage.write(f"{self._folder(name)}/{VIEW_FILE}", view.to_bytes())
        return view

    def check_cycle(self, name: Name, query: str, through: tuple[Name, ...] = ()) -> None:
        """A view that reads itself, by way of others too, could be read by nobody."""
        for read in self.mentioned(query) - set(through):
            if read == name:
                way = "".join(f" through {view}" for view in through)
                raise PenstockError(f"The view {name} reads itself{way}", fix="Read what it is made from.")
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
        """Whether making this view would change nothing: its SQL, its docs and its inputs are as they were."""
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
        """Let a name stand for data elsewhere, for every later reader."""
        self.check_writable()
        self.create_schema(name.schema)
        self.storage.write(f"{self._folder(name)}/{LINK_FILE}", link.to_bytes())

    def table_made(self, name: Name, link: Link | None) -> None:
        """After the commit that made a table: it is no view any more, and its location is known to all."""
        folder = self._folder(name)
        if link is not None:
            self.link(name, link)
        if self.storage.exists(f"{folder}/{VIEW_FILE}"):
            self.storage.delete(f"{folder}/{VIEW_FILE}")

    def _digests(self, names: Iterable[Name]) -> dict[str, str]:
        """Those names that are relations, each with a digest of what a query can see of it."""
        found = {name: self.find(name) for name in sorted(names, key=str)}
        return {str(name): self._digest(relation) for name, relation in found.items() if relation is not None}

    def _digest(self, relation: Relation) -> str:
        if relation.kind == "files":
            return digest(relation.link)
        columns = [(column.name, column.type) for column in self.columns(relation.name)]
        return digest(relation.kind, relation.location, columns)

    def _keep_links(self, view: View) -> None:
        """A view must be readable without the project that told us where its inputs lie."""
        for other in map(Name.parse, view.inputs):
            if other in self.links and self.kept_link(other) is None:
                self.link(other, self.links[other])

    def _drop_elsewhere(self, relation: Relation, step: Step) -> None:
        """Remove the data of a table outside of its folder, unless that would take more than the table."""
        locations.check_removable(self, relation)
        place = Storage(normalize(relation.location), self.storage_options)
        if place.local:
            removal.sweep(os.path.dirname(place.root))
            removal.drop_folder(place.root, step)
        else:
            removal.drop_objects(self.storage, self._folder(relation.name), elsewhere=place, step=step)

    def _drop_folder(self, name: Name, step: Step) -> None:
        folder = self._folder(name)
        if self.storage.local:
            removal.drop_folder(join(self.root, folder), step)
        else:
            removal.drop_objects(self.storage, folder, step=step)
