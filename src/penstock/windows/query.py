"""A model's SELECT over one window: over tables, which dbt has filtered, or over files, which are filtered here."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.keys import SIZES
from penstock.delta.schema_changes import IGNORE
from penstock.errors import NotFound, PenstockError
from penstock.files import FileQuery, FileSource, Listings
from penstock.files.preview import no_file_yet
from penstock.files.reading import rescued as rescued_column
from penstock.files.reading.options import format_of, read_options
from penstock.files.source import matching
from penstock.spark.reading.file_schema import FileSchema
from penstock.sql import quoting
from penstock.sql import tokens as sql
from penstock.sql.names import Name
from penstock.windows import bounds, filters
from penstock.windows.config import WindowSettings
from penstock.windows.source import DATE, DatedFiles, DatedPath, refuse_missing
from penstock.windows.window import Window, after, floor, plain

if TYPE_CHECKING:
    from penstock.lake.folder import LakeFolder
    from penstock.spark.backend import Backend, DataFrame, Frames


@dataclass(frozen=True)
class RenderedSelect:
    """The model's SELECT, rendered for one window."""

    text: str
    filtered: bool
    """Whether its inputs are filtered by the window. If not, its rows are."""
    drop: Callable[[], None] = lambda: None
    """Drops the temporary view that the SELECT reads."""
    kept: str | None = None
    """A column that the table gets with any `on_schema_change`: the rescued data."""


class Select(Protocol):
    """A model's SELECT for any window."""

    def schema(self, window: Window, known: dict[str, Any] | None) -> dict[str, Any] | None:
        """The format and columns that a window's files are read with; None for tables, and if no file is known."""

    def is_empty(self, window: Window) -> bool:
        """Whether a window is known to have no rows. No JVM starts."""

    def is_settled(self, window: Window) -> bool:
        """Whether no file of a window is still being written."""

    def over(self, window: Window, schema: dict[str, Any] | None) -> RenderedSelect: ...

    def same_as(self, other: Select) -> bool:
        """Whether the text for another window is the same except for the window."""


class TableSelect:
    """A SELECT over tables that dbt compiled for one window."""

    def __init__(self, lake: LakeFolder, text: str, window: Window, *, fixed: bool) -> None:
        """`fixed`: the text can be used for this window only."""
        self._lake = lake
        self._text = text
        self._window = window
        self._fixed = fixed

    def schema(self, window: Window, known: dict[str, Any] | None) -> dict[str, Any] | None:
        return None

    def is_empty(self, window: Window) -> bool:
        return False

    def is_settled(self, window: Window) -> bool:
        return True

    def over(self, window: Window, schema: dict[str, Any] | None) -> RenderedSelect:
        if self._fixed and window != self._window:
            raise PenstockError(
                f"The model reads `model.batch`, so its SQL for {self._window} can't be used for {window}",
                fix=f"Run it with {command_line(window)} first.",
            )

        def render(found: filters.Filter) -> str:
            wanted = found if self._fixed else found.within(window)
            return wanted.sql(_type_of(self._lake, found.relation, found.column))

        return RenderedSelect(filters.rendered(self._text, render), filters.is_filtered(self._text))

    def same_as(self, other: Select) -> bool:
        return isinstance(other, TableSelect) and self._plain == other._plain

    @cached_property
    def _plain(self) -> str:
        return filters.without_windows(self._text)


class FileSelect:
    """A SELECT over `@data`: the files of a window's folders, or of all folders, filtered."""

    def __init__(
        self,
        lake: LakeFolder,
        runner: Backend,
        model: FileQuery,
        source: FileSource,
        path: DatedPath | None,
        settings: WindowSettings,
        listings: Listings,
    ) -> None:
        self._lake = lake
        self._runner = runner
        self._model = model
        self._source = source
        self._path = path
        self._settings = settings
        self._event_time = settings.event_time.lower()
        self._listings = listings
        # The files of a folder are all in one window if the folder's date is not longer than a window.
        self._folders_are_windows = path is not None and SIZES.index(path.unit) <= SIZES.index(settings.batch_size)
        words = {token.text.lower() for token in sql.tokens(model.text)}
        self._with_date = path is not None and (DATE in words or self._event_time == DATE)

    def schema(self, window: Window, known: dict[str, Any] | None) -> dict[str, Any] | None:
        paths = self._paths(self._files(window))
        if not paths:
            return known
        format = (known or {}).get("format") or format_of(paths, self._source)
        frames = self._frames(format)
        before = None if known is None else FileSchema(known["schema"], tuple(known["folders"]))
        found = frames.declared() or before
        if found is None or (frames.declared() is None and self._source.on_schema_change != IGNORE):
            found = frames.infer(paths, before)
        return {"format": format, "schema": found.struct, "folders": list(found.folders)}

    def is_empty(self, window: Window) -> bool:
        return not self._paths(self._files(window))

    def is_settled(self, window: Window) -> bool:
        return not any(pc.any(self._young(dated.files)).as_py() for dated in self._listed(window))

    def over(self, window: Window, schema: dict[str, Any] | None) -> RenderedSelect:
        assert schema is not None
        frames = self._frames(schema["format"])
        read = FileSchema(schema["schema"], tuple(schema["folders"]))
        frame = self._frame(frames, read, self._files(window))
        found = next((field for field in frame.schema.fields if field.name.lower() == self._event_time), None)
        filtered, rescued = self._folders_are_windows, self._source.rescued_data_column
        if found is not None and not filtered:
            inside = bounds.inside(found.name, found.dataType.simpleString(), window)
            frame = frame.where(
                inside if rescued is None else rescued_column.inside_or_raise(inside, found.name, rescued)
            )
            filtered = True
        view = frames.as_view(frame)
        text = self._model.bind(view)
        columns = [column.name for column in self._runner.columns_of(text)]
        text = self._model.once(text, columns) or text
        try:
            rescued_column.check_selected(rescued, columns, ", ".join(self._source.source_roots))
        except PenstockError:
            self._forget(view)
            raise
        return RenderedSelect(text, filtered, lambda: self._forget(view), rescued)

    def _forget(self, view: str) -> None:
        self._runner.drop_view(view)

    def preview(self) -> str:
        """The model's query over the newest window that has files; nothing is ingested."""
        begin, size = self._settings.begin, self._settings.batch_size
        whole = Window(floor(begin, size), after(datetime.now(timezone.utc), size))
        for window in reversed(list(whole.steps(size))):
            if not self.is_empty(window):
                return self.over(window, self.schema(window, None)).text
        where = ", ".join(self._source.source_roots) if self._path is None else self._path.text
        raise no_file_yet(where, "Add a first file, or correct `source_path` or `begin`.")

    def same_as(self, other: Select) -> bool:
        return isinstance(other, FileSelect) and self._model.text == other._model.text

    def _frame(self, frames: Frames, schema: FileSchema, dated: list[DatedFiles]) -> DataFrame:
        if not self._with_date or not dated:
            return frames.rows(self._paths(dated), schema, self._model.virtual)
        assert self._path is not None
        parts = []
        for item in dated:
            text = item.moment.strftime("%Y-%m-%d" if self._path.type == "date" else "%Y-%m-%d %H:%M:%S+00:00")
            rows = frames.rows(self._paths([item]), schema, self._model.virtual)
            parts.append(frames.with_literal(rows, DATE, text, self._path.type))
        return reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)

    def _frames(self, format: str) -> Frames:
        return self._runner.frames(read_options(self._source, format))

    def _files(self, window: Window) -> list[DatedFiles]:
        """The files to read: without empty files and files that may still be written."""
        found = []
        for dated in self._listed(window):
            kept = dated.files.filter(pc.and_(pc.invert(self._young(dated.files)), pc.greater(dated.files["size"], 0)))
            if kept.num_rows:
                found.append(DatedFiles(dated.moment, kept))
        return found

    def _listed(self, window: Window) -> list[DatedFiles]:
        source = self._source
        if self._path is not None:
            found = self._path.files(window, self._listings)
        else:
            found = [DatedFiles(floor(window.start, "day"), self._listings.of(source.source_roots))]
            for root in source.source_roots:
                if self._listings.is_empty_store_root(root):
                    refuse_missing(root, self._listings, "source_roots")
        return [DatedFiles(dated.moment, matching(dated.files, source)) for dated in found]

    def _young(self, files: pa.Table) -> pa.ChunkedArray:
        limit = int((time.time() - self._source.safety_buffer_seconds) * 1000)
        young = pc.greater(files["modificationTime"], limit)
        return young if self._source.safety_buffer_seconds else pc.and_(young, False)

    @staticmethod
    def _paths(dated: list[DatedFiles]) -> list[str]:
        return sorted(path for item in dated for path in item.files["path"].to_pylist())


def _type_of(lake: LakeFolder, relation: str, column: str) -> str | None:
    """The type of a relation's column; None where it is not known without a JVM."""
    try:
        name = Name.parse(relation)
        found = lake.find(name)
        if found is None or found.kind == "files":
            return None
        columns = lake.columns(name)
    except (NotFound, PenstockError):
        return None
    wanted = quoting.plain(column).lower()
    return next((item.type for item in columns if item.name.lower() == wanted), None)


def command_line(window: Window) -> str:
    return f"--event-time-start {plain(window.start)} --event-time-end {plain(window.end)}"
