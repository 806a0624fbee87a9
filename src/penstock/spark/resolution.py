"""SQL texts for Spark: the relations of the lake that a text names are attached before Spark reads it."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.errors import PenstockError, condition_of, from_spark
from penstock.lake.folder import LakeFolder
from penstock.lake.reserved import SCHEMAS
from penstock.spark.application import application_of
from penstock.spark.own_tables import filled, joined
from penstock.sql import statement as sql
from penstock.sql.names import Name, check_for_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def resolve(spark: SparkSession, lake: LakeFolder, text: str, names: Collection[Name] | None = None) -> DataFrame:
    """A text as Spark takes it: a query has not run yet, a statement has.

    `names` are the relations to attach first; the text's own by default.
    """
    catalog = application_of(spark).catalog
    mentions = catalog.attach(spark, lake, lake.mentioned(text) if names is None else names, text)
    tried: set[Name] = set()
    while True:
        with filled(spark, lake, {} if sql.describes(text) else mentions):
            try:
                frame = spark.sql(text)
                catalog.temporary_views.note(spark, text, mentions)
                return frame
            except Exception as error:
                name = _missing(error)
                if name is None or name in tried or lake.find(name) is None:
                    raise from_spark(error, text) from error
        tried.add(name)
        mentions = joined(mentions, catalog.attach(spark, lake, [name]))


def read_table(spark: SparkSession, lake: LakeFolder, name: Name) -> DataFrame:
    """A relation of the lake."""
    mentions = application_of(spark).catalog.attach(spark, lake, [name])
    with filled(spark, lake, mentions):
        return spark.table(name.sql)


def attach_shown(spark: SparkSession, lake: LakeFolder, text: str) -> None:
    """Attach the schemas or relations on disk that a SHOW lists: Spark lists what is in its catalog."""
    catalog = application_of(spark).catalog
    shown = sql.shown(text)
    for schema in {*lake.schemas(), *SCHEMAS} if shown.schemas else ():
        catalog.attach_schema(spark, schema.lower())
    if shown.relations_of is not None:
        schema = shown.relations_of.lower()
        catalog.attach_schema(spark, schema)
        on_disk = {relation.name for relation in [*lake.relations(schema), *lake.own_relations(schema)]}
        catalog.attach(spark, lake, on_disk | catalog.attached(schema))


def check_view(spark: SparkSession, lake: LakeFolder, name: Name, query: str) -> None:
    """Fail if Spark refuses a view of this query: it is created under another name, and dropped."""
    check_for_spark(name.schema, name.identifier)
    tried = Name(name.schema, f"{name.identifier}__{uuid.uuid4().hex[:8]}")
    application_of(spark).catalog.attach_schema(spark, name.schema)
    resolve(spark, lake, f"create view {tried.sql} as\n{query}")
    resolve(spark, lake, f"drop view {tried.sql}")


def _missing(error: Exception) -> Name | None:
    """The relation that Spark did not find."""
    if condition_of(error) != "TABLE_OR_VIEW_NOT_FOUND":
        return None
    parameters = error.getMessageParameters() if hasattr(error, "getMessageParameters") else None
    try:
        return Name.parse((parameters or {}).get("relationName", ""))
    except PenstockError:
        return None
