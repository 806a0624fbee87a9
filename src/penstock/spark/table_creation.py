"""CREATE TABLE and CREATE OR REPLACE TABLE for the lake's tables, in one commit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.delta.layout import Layout
from penstock.errors import StatementError
from penstock.lake import locations
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import Link
from penstock.spark.application import application_of
from penstock.spark.resolution import resolve
from penstock.sql.creation import string_after, with_location, without_replace
from penstock.sql.names import Name, check_for_spark
from penstock.sql.quoting import literal
from penstock.sql.statement import Statement
from penstock.storage import given_location, hadoop_uri, normalize

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# CREATE TABLE met a table, or files of others: CREATE OR REPLACE TABLE would have replaced them.
_TAKEN = ("TABLE_OR_VIEW_ALREADY_EXISTS", "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION", "DELTA_TABLE_ALREADY_EXISTS")
# Delta would run a job over the empty state before a table's first commit, to write down that it has no files.
_NEW_TABLE = {"spark.databricks.delta.allFilesInCrc.enabled": "false"}


@dataclass(frozen=True)
class TableStatement:
    """A statement that creates a table at a known location."""

    text: str
    """The statement; CREATE OR REPLACE if it may replace a table."""
    create: str
    """The same statement as CREATE, for a name without a table."""
    names: frozenset[Name]
    """The relations of the lake that it names."""

    @classmethod
    def of_user(cls, lake: LakeFolder, statement: Statement, location: str) -> TableStatement:
        """A user's own statement, with the location where its relation lies."""
        text = with_location(statement, location)
        return cls(text, without_replace(text), frozenset(lake.mentioned(text)))

    @classmethod
    def of_query(cls, lake: LakeFolder, name: Name, query: str, layout: Layout, location: str) -> TableStatement:
        """The statement that creates or replaces a table from a query."""
        rest = f"table {name.sql} using delta location {literal(location)}\n{layout.clauses()}\nas\n{query}"
        return cls(f"create or replace {rest}", f"create {rest}", frozenset(lake.mentioned(query) | {name}))


class TableCreation:
    """The creation of one table: look at the lake, run the statement, then tell the lake and the catalog."""

    def __init__(
        self,
        spark: SparkSession,
        lake: LakeFolder,
        name: Name,
        statement: Callable[[str], TableStatement],
        link: Link | None,
    ) -> None:
        """`statement` gives the statement for a location; `link` is the location that a user's statement names.

        An error if the location is another relation's, or Spark can't work on its store.
        """
        self._spark, self._lake, self._name = spark, lake, name
        self._catalog = application_of(spark).catalog
        check_for_spark(name.schema, name.identifier)
        self._link = link or lake.link_of(name)
        if self._link is not None:
            locations.check(lake, name, normalize(self._link.location))
        location = hadoop_uri(lake.location_of(name))
        application_of(spark).stores.check(spark, location)
        self._statement = statement(location)
        self._catalog.attach_schema(spark, name.schema)
        found = lake.find(name)
        self._is_new = found is None or found.kind != "table"
        if self._is_new:
            self._catalog.forget(spark, name)

    @property
    def conf(self) -> dict[str, str]:
        """The settings that the statement runs with."""
        return _NEW_TABLE if self._is_new else {}

    def run(self) -> DataFrame:
        """Commit the table. StatementError if another writer was first; then it may run again."""
        if not self._is_new:
            return resolve(self._spark, self._lake, self._statement.text, self._statement.names)
        others = self._statement.names - {self._name}
        try:
            # To replace no table, Delta would run a job that lists the files of none.
            return resolve(self._spark, self._lake, self._statement.create, others)
        except StatementError as error:
            may_replace = self._statement.create != self._statement.text
            if not may_replace or not (error.condition or "").startswith(_TAKEN):
                raise
        return resolve(self._spark, self._lake, self._statement.text, others)

    def finish(self) -> None:
        """After the commit: the lake knows the table's location, and the catalog the table."""
        self._lake.table_made(self._name, self._link)
        if (made := self._lake.find(self._name)) is not None:
            self._catalog.note(made)


def link_named(statement: Statement) -> Link | None:
    """The location that a user's CREATE TABLE names."""
    if "LOCATION" not in statement.after:
        return None
    # Normalized, so that readers in any folder find it.
    return Link(given_location(string_after(statement, "LOCATION"), key="LOCATION"))
