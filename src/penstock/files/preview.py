"""What a file model would read, with nothing coming in: for `dbt show`, `--empty` and unit tests."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from penstock.errors import PenstockError
from penstock.files.config import FileSource
from penstock.files.ledger import Ledger
from penstock.files.plan import INGESTED, Backlog, FilePlan, lines
from penstock.files.query import Model
from penstock.files.reading.frame import VIRTUAL_TYPES, Frames, Shape, format_of
from penstock.files.source import Listings, matching
from penstock.protocol.journal import Journal
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
    """A query that reads like the model does, over some of the files.

    `@data` is the oldest files of the roots, new or not: one batch of them, or as many as `files` says, limited to
    `rows` rows.
    """
    model = Model.read(select, str(name))
    some = _Some(lake, name, source, runner, listings, files)
    frame = some.frames.frame([] if rows == 0 else some.paths, some.shape, model.virtual)
    view = f"penstock_preview_{uuid.uuid4().hex}"
    (frame if rows is None else frame.limit(rows)).createOrReplaceTempView(view)
    query = model.bind(view)
    return model.once(query, runner.query(query).columns) or query


def data_columns(
    lake: LakeFolder,
    name: Name,
    source: FileSource,
    *,
    runner: Backend,
    listings: Listings | None = None,
) -> dict[str, str]:
    """The columns that `@data` has, with their types; the virtual ones too."""
    some = _Some(lake, name, source, runner, listings)
    rescued = {} if source.rescued_data_column is None else {source.rescued_data_column: "string"}
    return some.shape.types | rescued | VIRTUAL_TYPES


class _Some:
    """Some files of a model, and what they are read as."""

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
        filled = listed.filter(pc.greater(listed["size"], 0))
        self.paths = (
            Backlog(lines(filled, INGESTED), files or source.max_files_per_trigger, None).head()["path"].to_pylist()
        )
        journal: Journal[FilePlan] = Journal(lake.location_of(name), lake.storage_options)
        ledger = Ledger(journal)
        ledger.follow(journal.state())
        self.frames = Frames(runner, source, ledger.format or format_of(self.paths, source))
        known = None if ledger.schema is None else Shape(ledger.schema, ledger.folders)
        shape = self.frames.given() or known or (self.frames.infer(self.paths) if self.paths else None)
        if shape is None:
            raise PenstockError(
                "There is no file yet that would show the columns of @data",
                where=", ".join(source.source_roots),
                fix="Declare them in `source_columns`, or let a file land.",
            )
        self.shape = shape
