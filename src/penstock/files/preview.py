"""Queries over the files of a model that ingest nothing: for `dbt show`, `--empty` and unit tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.compute as pc

from penstock.errors import PenstockError
from penstock.files.backlog import Backlog
from penstock.files.config import FileSource
from penstock.files.ledger import Ledger
from penstock.files.plan import FilePlan
from penstock.files.query import FileQuery
from penstock.files.reading.options import format_of, read_options
from penstock.files.records import INGESTED, lines
from penstock.files.source import Listings, matching
from penstock.protocol.journal import Journal
from penstock.spark.reading import virtual_columns
from penstock.sql.names import Name

if TYPE_CHECKING:
    from penstock.lake.folder import LakeFolder
    from penstock.spark.backend import Backend


def preview(
    lake: LakeFolder,
    name: Name,
    source: FileSource,
    select: str,
    *,
    runner: Backend,
    rows: int | None = None,
    files: int | None = None,
    listings: Listings | None = None,
) -> str:
    """The model's query over some of its files. Nothing is ingested; Spark reads rows when the query runs.

    `@data` is the oldest files of the roots, ingested or not: as many as one batch has, or `files`, limited to `rows`
    rows.
    """
    query = FileQuery.read(select, str(name))
    sample = _Sample(lake, name, source, runner, listings, files)
    frame = sample.frames.rows([] if rows == 0 else sample.paths, sample.schema, query.virtual)
    text = query.bind(sample.frames.as_view(frame if rows is None else frame.limit(rows)))
    return query.once(text, runner.query(text).columns) or text


def data_columns(
    lake: LakeFolder,
    name: Name,
    source: FileSource,
    *,
    runner: Backend,
    listings: Listings | None = None,
) -> dict[str, str]:
    """The columns of `@data` with their types, the virtual columns too."""
    sample = _Sample(lake, name, source, runner, listings)
    rescued = {} if source.rescued_data_column is None else {source.rescued_data_column: "string"}
    return sample.frames.types(sample.schema) | rescued | virtual_columns.TYPES


def no_file_yet(where: str | None, fix: str) -> PenstockError:
    """The error of a preview without any file."""
    return PenstockError("The columns of @data are unknown, because no file has arrived", where=where, fix=fix)


class _Sample:
    """The oldest files of a model, and the schema that they are read with."""

    def __init__(
        self,
        lake: LakeFolder,
        name: Name,
        source: FileSource,
        runner: Backend,
        listings: Listings | None,
        files: int | None = None,
    ) -> None:
        listed = matching((listings or Listings(lake.storage_options)).of(source.source_roots), source)
        filled = lines(listed.filter(pc.greater(listed["size"], 0)), INGESTED)
        oldest = Backlog(filled, files or source.max_files_per_trigger, None).head()
        self.paths: list[str] = oldest["path"].to_pylist()
        journal: Journal[FilePlan] = Journal(lake.location_of(name), lake.storage_options)
        ledger = Ledger(journal)
        ledger.follow(journal.state())
        self.frames = runner.frames(read_options(source, ledger.format or format_of(self.paths, source)))
        schema = self.frames.declared() or ledger.schema or (self.frames.infer(self.paths) if self.paths else None)
        if schema is None:
            raise no_file_yet(", ".join(source.source_roots), "Declare `source_columns`, or add a first file.")
        self.schema = schema
