"""The lake's own tables in Spark: made from its logs and ledgers at the time of each statement, in memory.

In Spark's catalog an own table is a table without data, so that DESCRIBE, SHOW and views know it. While a statement is
parsed, its session keeps the rows for it. So each statement reads the lake as it is then, and two threads never read
each other's rows.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from penstock.errors import PenstockError
from penstock.lake import reserved
from penstock.lake.folder import LakeFolder
from penstock.spark.internals import table_cache
from penstock.sql.names import Name
from penstock.sql.quoting import literal, quote
from penstock.sql.statement import read
from penstock.sql.wanted import Wanted, wanted_by

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

Mentions = Mapping[Name, list[str]]
"""The own tables that a statement reads, each with the texts that name it: the statement's own, and those of views."""

# Where a statement hides the name of an own table, Spark reads this file and names it in its error.
_NO_DATA = "write_the_name_of_this_own_table_of_the_lake_into_the_statement.parquet"


def definition(name: Name, folder: str) -> str:
    """The statement that makes Spark's catalog know an own table; its only file is written into a folder."""
    Path(folder, _NO_DATA).write_text("The rows of this table are made when a statement names it.\n")
    columns = ", ".join(
        f"{quote(column.name)} {column.type} comment {literal(column.comment or '')}"
        for column in reserved.TABLES[name]
    )
    return (
        f"create table if not exists {name.sql} ({columns}) using parquet location {literal(Path(folder).as_uri())} "
        f"comment {literal(reserved.DESCRIPTIONS[name])}"
    )


class TemporaryViews:
    """The temporary views that read own tables, by session: Spark parses their SQL again at each use. Thread-safe."""

    def __init__(self) -> None:
        self._views: WeakKeyDictionary[SparkSession, dict[str, Mentions]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def note(self, spark: SparkSession, text: str, mentions: Mentions) -> None:
        """Remember a temporary view if this statement has created one that reads own tables."""
        if not mentions:
            return
        statement = read(text)
        if statement.verb == "CREATE" and statement.temporary and statement.parts:
            with self._lock:
                self._views.setdefault(spark, {})[statement.parts[-1].lower()] = mentions

    def read_by(self, spark: SparkSession, text: str) -> Mentions:
        """The own tables that a text reads through temporary views."""
        with self._lock:
            views = dict(self._views.get(spark, {}))
        lower = text.lower() if views else ""
        return joined(*(mentions for view, mentions in views.items() if view in lower))


def joined(*parts: Mentions) -> Mentions:
    """All mentions of some texts."""
    found: dict[Name, list[str]] = {}
    for part in parts:
        for name, texts in part.items():
            found.setdefault(name, []).extend(texts)
    return found


@contextmanager
def filled(spark: SparkSession, lake: LakeFolder, mentions: Mentions) -> Iterator[None]:
    """Statements that are parsed inside read the rows that the own tables have now."""
    kept = []
    try:
        for name, texts in mentions.items():
            wanted = Wanted.any_of(wanted_by(text, name.schema, name.identifier) for text in texts)
            # In one chunk: createDataFrame of PySpark 4.2 stops at an empty one, and leaves out the rows after it.
            table_cache.keep(spark, name, spark.createDataFrame(_rows(lake, name, wanted).combine_chunks()))
            kept.append(name)
        yield
    finally:
        for name in kept:
            table_cache.drop(spark, name)


def _rows(lake: LakeFolder, name: Name, wanted: Wanted) -> pa.Table:
    if lake.own_rows is None:
        raise PenstockError(f"{name} can only be read through penstock.connect", where=lake.root)
    return lake.own_rows.rows(name, wanted)
