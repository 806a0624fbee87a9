"""The lake: which relations there are and where. A folder each; no catalog, and no JVM to find them."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from penstock.config import store_options
from penstock.config.session_settings import SessionSettings
from penstock.delta.layout import Layout
from penstock.delta.table import Column, Table
from penstock.errors import NotFound, PenstockError, UnsupportedTable
from penstock.lake import locations, removal
from penstock.lake.relations import LINK_FILE, VIEW_FILE, Link, Relation, View, digest
from penstock.protocol.journal import Step, no_step
from penstock.secrets import redact, remember, remember_environment
from penstock.spark.runner import Runner
from penstock.sql import statement as sql
from penstock.sql.names import Name, check_for_spark, check_part, is_part
from penstock.storage import Storage, files_at, given_location, is_uri, join, normalize

if TYPE_CHECKING:
    from delta.tables import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

    from penstock.changes import MergeReport
    from penstock.files import IngestReport

_WRITE_MODES = ("append", "overwrite", "error", "ignore")
# Spark reads S3 and ADLS through Hadoop's clients, which have schemes of their own.
_HADOOP_SCHEMES = {"s3": "s3a", "az": "abfss", "adl": "abfss"}


class Lake:
    """A folder of relations, `<root>/<schema>/<identifier>/`.

    >>> lake = connect("./lake")                          # doctest: +SKIP
    >>> lake.sql("select * from silver.orders").show()    # doctest: +SKIP
    """

    def __init__(
        self,
        root: str,
        *,
        settings: SessionSettings | None = None,
        storage_options: Mapping[str, Any] | None = None,
        read_only: bool = False,
    ) -> None:
        remember_environment()
        self.root = given_location(root, key="root")
        self.settings = settings or SessionSettings()
        if wrong := store_options.problems(storage_options):
            raise PenstockError("The options of the store are wrong: " + "; ".join(wrong))
        remember(storage_options or {})
        remember(self.settings.spark_config)
        self.storage_options = store_options.normalized(storage_options)
        self.read_only = read_only
        self.storage = Storage(self.root, self.storage_options)
        self.links: dict[Name, Link] = {}
        """Locations that the caller knows of, besides those that `_link.json` files tell; a drop does not change them."""
        self._let_go: set[tuple[Name, str]] = set()
        """Locations that were ours until this process dropped the name: it may be made there again."""
        self._threads = threading.local()

    def __repr__(self) -> str:
        return f"Lake({redact(self.root)!r})"

    # What there is

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
        first = place.head(f"{prefix}{locations.FIRST_COMMIT}")
        if first is not None or locations.has_commits(place, prefix):
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
        """A relation's columns: from its log or its `_view.json`; from Spark where only Spark can tell."""
        relation = self.get(name)
        if relation.kind == "view":
            return list(self.view(relation).columns)
        if relation.kind == "table":
            try:
                return Table.open(relation.location, self.storage_options, files=False).columns
            except UnsupportedTable:
                pass
        return self.runner.columns_of_relation(relation.name.sql)

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

    # Python's way in

    @property
    def runner(self) -> Runner:
        """This thread's runner."""
        if not hasattr(self._threads, "runner"):
            self._threads.runner = Runner(self)
        runner: Runner = self._threads.runner
        return runner

    @property
    def spark(self) -> SparkSession:
        """This thread's Spark session; the first use starts Spark."""
        return self.runner.spark

    def sql(self, text: str) -> DataFrame:
        """Run a statement; the names in it are found on disk.

        What the lake does itself (DROP, RENAME, CREATE VIEW, CREATE SCHEMA) has no rows and needs no Spark: None.
        """
        return self.runner.run(text).frame  # type: ignore[return-value]

    def table(self, name: str) -> DataFrame:
        """A relation as a PySpark DataFrame."""
        return self.runner.table(self.get(name).name)

    def delta(self, name: str) -> DeltaTable:
        """A table as Delta's own DeltaTable: merge, update, delete, history, optimize, vacuum."""
        from delta.tables import DeltaTable

        relation = self.get(name)
        if relation.kind != "table":
            raise PenstockError(f"{relation} is a {relation.kind}, not a Delta table")
        self.check_writable()
        return DeltaTable.forPath(self.spark, self.runner.place(relation.location))

    def write(
        self,
        frame: DataFrame,
        name: str,
        mode: str = "append",
        *,
        partition_by: list[str] | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        """Write a DataFrame to a table by name; schema and table are made where they are not there."""
        self.check_writable()
        if mode not in _WRITE_MODES:
            raise PenstockError(f"{mode!r} is not a mode", fix=f"Use one of {', '.join(_WRITE_MODES)}.")
        target = Name.parse(name)
        existing = self.find(target)
        if existing is not None and existing.kind != "table":
            raise PenstockError(f"{target} is a {existing.kind}, not a table", fix="Drop it first.")
        writer = frame.write.format("delta").mode(mode).options(**dict(properties or {}))
        if mode == "overwrite":
            writer = writer.option("overwriteSchema", "true")
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        self.create_schema(target.schema)
        self.runner.save(writer, self.location_of(target))

    def ingest(
        self,
        name: str,
        *,
        select: str = "select * from @data",
        full_refresh: bool = False,
        partition_by: str | list[str] | None = None,
        cluster_by: str | list[str] | None = None,
        properties: Mapping[str, str] | None = None,
        **source: Any,
    ) -> IngestReport:
        """Bring new files into a table, each exactly once; every key of `docs/files.md` is taken.

        >>> lake.ingest("bronze.events", roots=["landing"], max_files_per_trigger=50)    # doctest: +SKIP
        """
        from penstock import files

        config = files.FileSource.from_mapping(source, where=name)
        table = Layout.from_config(
            {"partition_by": partition_by, "cluster_by": cluster_by, "table_properties": properties}
        )
        return files.ingest(self, Name.parse(name), config, select, full_refresh=full_refresh, table=table)

    def merge_changes(
        self,
        name: str,
        *,
        key: str | list[str],
        select: str,
        source: str | None = None,
        full_refresh: bool = False,
        partition_by: str | list[str] | None = None,
        cluster_by: str | list[str] | None = None,
        properties: Mapping[str, str] | None = None,
        **config: Any,
    ) -> MergeReport:
        """Bring the row changes of tables into a table, deletes included; `@changes` stands for `source`.

        >>> lake.merge_changes("gold.products", source="silver.products", key=["code"],
        ...                    select="select code, name from @changes where active")    # doctest: +SKIP
        """
        from penstock import changes

        if (source is None) != (not sql.parameters(select, "changes")):
            raise PenstockError(
                "`@changes` in the SELECT and `source` go together", where=name, fix="Give both, or name the tables."
            )
        if source is not None:
            select = sql.bind(select, "changes", Name.parse(source).sql)
        table = Layout.from_config(
            {"partition_by": partition_by, "cluster_by": cluster_by, "table_properties": properties}
        )
        if "unique_key" in config:
            raise PenstockError("`unique_key` is given twice: it is another name of `key`", where=name)
        followed = changes.ChangeSource.from_mapping({"unique_key": key, **config}, where=name)
        return changes.merge_changes(self, Name.parse(name), followed, select, full_refresh=full_refresh, table=table)

    # Changing the lake

    def check_writable(self) -> None:
        if self.read_only:
            raise PenstockError("This lake is open for reading only", where=self.root, fix="Connect without read_only.")

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

    def create_view(
        self,
        name: Name,
        query: str,
        *,
        description: str | None = None,
        comments: Mapping[str, str] | None = None,
        runner: Runner | None = None,
    ) -> View:
        """Make a view that every later process sees; Spark checks its SQL first."""
        self.check_writable()
        self._refuse_cycle(name, query)
        documented = {column.lower(): text for column, text in (comments or {}).items()}
        runner = runner or self.runner
        columns = tuple(
            Column(column.name, column.type, column.nullable, documented.get(column.name.lower(), column.comment))
            for column in runner.columns_of(query)
        )
        runner.check_view(name, query)
        view = View(query, columns, description, self._digests(self.mentioned(query) - {name}))
        self.create_schema(name.schema)
        self._keep_links(view)
        self.storage.write(f"{self._folder(name)}/{VIEW_FILE}", view.to_bytes())
        return view

    def _refuse_cycle(self, name: Name, query: str, through: tuple[Name, ...] = ()) -> None:
        """A view that reads itself, by way of others too, could be read by nobody."""
        for read in self.mentioned(query) - set(through):
            if read == name:
                way = "".join(f" through {view}" for view in through)
                raise PenstockError(f"The view {name} reads itself{way}", fix="Read what it is made from.")
            relation = self.find(read)
            if relation is not None and relation.kind == "view":
                self._refuse_cycle(name, self.view(relation).sql, (*through, read))

    def view(self, relation: Relation) -> View:
        path = f"{self._folder(relation.name)}/{VIEW_FILE}"
        return View.from_bytes(self.storage.read(path), join(self.root, path))

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

    def clone(self, source: Name, target: Name, runner: Runner | None = None, *, step: Step = no_step) -> None:
        """A shallow clone, with the source's ledger and transaction marks, so that it goes on where that stopped.

        All of it is read at one version of the source. A relation that has the target's name stays until the clone
        takes its place.
        """
        from penstock.protocol.clone import clone

        clone(self, source, target, runner or self.runner, step)

    # Where things lie

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

    def _marker(self, name: Name) -> Link | None:
        """The marker of a drop or a rename that is under way on an object store, or was killed there."""
        link = self._link_file(name)
        return link if removal.is_marker(link) else None

    def _link_file(self, name: Name) -> Link | None:
        path = f"{self._folder(name)}/{LINK_FILE}"
        if not self.storage.exists(path):
            return None
        return Link.from_bytes(self.storage.read(path), join(self.root, path))

    def is_ours(self, name: Name, location: str) -> bool:
        """Whether the table at a location was made, or adopted, by the relation of this name."""
        kept = self.kept_link(name)
        return (name, location) in self._let_go or (kept is not None and normalize(kept.location) == location)

    def for_spark(self, location: str) -> str:
        """A location as Hadoop's file systems spell it."""
        if not is_uri(location):
            return location
        scheme, rest = location.split("://", 1)
        return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"

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


def connect(
    root: str,
    *,
    session: Mapping[str, Any] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    read_only: bool = False,
) -> Lake:
    """Open a lake. Nothing is started, and nothing is written.

    >>> connect("./lake", session={"memory": "4g"})    # doctest: +SKIP
    """
    lake = Lake(
        root,
        settings=SessionSettings.from_mapping(session),
        storage_options=storage_options,
        read_only=read_only,
    )
    lake.storage.check_root(writable=not read_only)
    return lake
