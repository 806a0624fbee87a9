"""The names of a lake in Spark's in-memory catalog, added as statements need them."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.config.formats import IN_PLACE
from penstock.errors import NotFound, PenstockError, from_spark
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import LINK_FILE, Relation
from penstock.lake.reserved import SYSTEM_TABLE
from penstock.spark import own_tables
from penstock.spark.file_systems import Stores
from penstock.spark.internals.delta_log import forget_log
from penstock.spark.startup.temporary import TemporaryFolder
from penstock.sql.names import Name, check_for_spark
from penstock.sql.quoting import literal, quote
from penstock.storage import files_at, hadoop_uri

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Catalog:
    """The relations that are in Spark's catalog, each as it was when it was attached. Thread-safe."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._attached: dict[Name, Relation] = {}
        self._schemas: set[str] = set()
        self.temporary_views = own_tables.TemporaryViews()
        self._no_data: TemporaryFolder | None = None
        """The folder of the lake's own tables: they have no data on disk."""
        self._lock = threading.RLock()

    def attach(
        self, spark: SparkSession, lake: LakeFolder, names: Iterable[Name], text: str = ""
    ) -> own_tables.Mentions:
        """Attach these relations as they are on disk now, and forget those that are gone.

        `text` is the text that names them. Returns the lake's own tables that are read, also through views.
        """
        found = [self._attach_one(spark, lake, name, text) for name in sorted(names, key=str)]
        return own_tables.joined(*found, self.temporary_views.read_by(spark, text))

    def _attach_one(self, spark: SparkSession, lake: LakeFolder, name: Name, text: str) -> own_tables.Mentions:
        relation = lake.find(name)
        if relation is None:
            self.forget(spark, name)
            if lake.link_of(name) is not None:
                raise lake.missing(name)
            return {}
        mentions = self._attach(spark, lake, relation)
        return {name: [text]} if relation.kind == SYSTEM_TABLE else mentions

    def attached(self, schema: str) -> set[Name]:
        """The relations of a schema that are attached."""
        with self._lock:
            return {name for name in self._attached if name.schema == schema}

    def attach_schema(self, spark: SparkSession, schema: str) -> None:
        """Have Spark know a schema."""
        check_for_spark(schema)
        with self._lock:
            if schema not in self._schemas:
                _run(spark, f"create database if not exists {quote(schema)}")
                self._schemas.add(schema)

    def forget(self, spark: SparkSession, name: Name) -> None:
        """Remove a name from the catalog; its data stay, because all tables are external."""
        with self._lock:
            relation = self._attached.pop(name, None)
            if relation is not None:
                _run(spark, f"drop {'view' if relation.kind == 'view' else 'table'} if exists {name.sql}")
                if relation.kind == "table":
                    forget_log(spark, relation.location)

    def note(self, relation: Relation) -> None:
        """Remember a table that Spark attached itself, by CREATE TABLE."""
        with self._lock:
            self._attached[relation.name] = relation

    def _attach(self, spark: SparkSession, lake: LakeFolder, relation: Relation) -> own_tables.Mentions:
        check_for_spark(relation.name.schema, relation.name.identifier)
        with self._lock:
            known = self._attached.get(relation.name)
            mentions: own_tables.Mentions = {}
            if relation.kind == "view":
                # Its inputs may have changed though the view has not.
                query = lake.view(relation).sql
                mentions = self.attach(spark, lake, lake.mentioned(query), query)
            if known == relation and known.stamp == relation.stamp:
                if relation.kind == "files":
                    _run(spark, f"refresh table {relation.name.sql}")
                return mentions
            if known is not None and (known.kind != "view" or relation.kind != "view"):
                self.forget(spark, relation.name)
            if relation.kind == "files" and next(files_at(relation.location, lake.storage_options), None) is None:
                raise NotFound(f"There are no files behind {relation}", where=relation.location)
            self.attach_schema(spark, relation.name.schema)
            if relation.kind not in ("view", SYSTEM_TABLE):
                self._stores.check(spark, hadoop_uri(relation.location))
            _run(spark, self._definition(lake, relation))
            self._attached[relation.name] = relation
            return mentions

    def _definition(self, lake: LakeFolder, relation: Relation) -> str:
        if relation.kind != SYSTEM_TABLE:
            return _definition(lake, relation)
        if self._no_data is None:
            self._no_data = TemporaryFolder()
        return own_tables.definition(relation.name, self._no_data.path)


def _definition(lake: LakeFolder, relation: Relation) -> str:
    """The statement that attaches a relation of the lake."""
    if relation.kind == "view":
        return f"create or replace view {relation.name.sql} with schema evolution as\n{lake.view(relation).sql}"
    options = ""
    format = "delta"
    if relation.kind == "files" and relation.link is not None:
        format = relation.link.format
        if format not in IN_PLACE:
            # `_link.json` is a file that anyone may have written.
            raise PenstockError(
                f"{relation} is linked to files of the format {format!r}, which is none of {', '.join(IN_PLACE)}",
                where=relation.location,
                fix=f"Correct `format` in its {LINK_FILE}, or remove that file.",
            )
        pairs = ", ".join(f"{literal(key)} {literal(value)}" for key, value in relation.link.options.items())
        options = f" options ({pairs})" if pairs else ""
    return (
        f"create table if not exists {relation.name.sql} using {format}{options}"
        f" location {literal(hadoop_uri(relation.location))}"
    )


def _run(spark: SparkSession, text: str) -> None:
    try:
        spark.sql(text)
    except Exception as error:
        raise from_spark(error, text) from None
