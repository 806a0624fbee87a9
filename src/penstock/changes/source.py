"""The tables whose changes a model follows: where they stand, and what happened to them since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.changes.config import ChangeSource
from penstock.changes.incremental.classify import Keys, Rows
from penstock.changes.query import ChangeModel
from penstock.changes.version_range import Between, Gap, SourceLog, Span
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.sql.names import Name

if TYPE_CHECKING:
    from penstock.lake.folder import LakeFolder


class Followed:
    """The sources of one run, as they were when it began: it goes so far, and no further."""

    def __init__(self, lake: LakeFolder, source: ChangeSource, model: ChangeModel, where: str) -> None:
        read = {place.name: place.location for place in model.places}
        named = {name: _tables(lake, name) for name in source.cdf_source}
        unknown = [str(name) for name, tables in named.items() if not tables or not tables <= read.keys()]
        if unknown:
            raise PenstockError(
                f"`cdf_source` names {', '.join(unknown)}, which the model does not read",
                where=where,
                fix=f"It reads {', '.join(sorted(map(str, read))) or 'no table'}.",
            )
        # Once each, in the order in which they are named.
        wanted = dict.fromkeys(table for tables in named.values() for table in sorted(tables, key=str)) or read
        if not wanted:
            raise PenstockError(
                "The model reads no Delta table, so there are no changes to follow",
                where=where,
                fix="Use another strategy.",
            )
        self._model = model
        self._options = lake.storage_options
        self._logs = {
            name: SourceLog(str(name), read[name], self._options, linked=name in lake.links) for name in wanted
        }
        self._current: dict[Name, Table] = {}

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(self._logs)

    def look(self, position: Mapping[str, Span]) -> None:
        """Where they stand, once; `position` is what is in already."""
        if not self._current:
            self._current = {
                name: log.current(position[str(name)].end if str(name) in position else None)
                for name, log in self._logs.items()
            }

    def look_again(self) -> None:
        self._current = {}

    def anew(self) -> tuple[Span, ...]:
        """All of them, as they stand."""
        return tuple(
            Span(str(name), log.location, table.id, None, table.version, log.digest(table.version))
            for name, log, table in ((name, log, self._current[name]) for name, log in self._logs.items())
        )

    def since(self, position: Mapping[str, Span], limit: int | None) -> tuple[Span, ...]:
        """The versions of each after those that are in, at most so many."""
        return tuple(self._since(name, log, position.get(str(name)), limit) for name, log in self._logs.items())

    def _since(self, name: Name, log: SourceLog, known: Span | None, limit: int | None) -> Span:
        current = self._current[name]
        if known is None:
            raise Gap(
                f"The model reads {name} now, which it did not when the table was built: nothing says which of its "
                f"changes, up to version {current.version}, are in",
                where=log.location,
            )
        log.check_continuous(known, current.version)
        end = current.version if limit is None else min(current.version, known.end + limit)
        return Span(str(name), log.location, current.id, known.end, end, log.digest(end), known.commit)

    def between(self, spans: Iterable[Span]) -> dict[Name, Between]:
        """What happened in these versions."""
        return {Name.parse(span.name): self._between(span) for span in spans}

    def _between(self, span: Span) -> Between:
        if span.start is None:
            return Between((), (), ())
        return self._logs[Name.parse(span.name)].between(span.start, span.end)

    def check(self, spans: Mapping[Name, Span], where: str) -> None:
        """Before a plan is run that may be of an earlier process: it is of these sources, and their logs go on."""
        if set(spans) != set(self.names):
            raise Gap(f"The plan was made for other sources ({', '.join(map(str, spans))})", where=where)
        for name, span in spans.items():
            self._logs[name].check_continuous(span, self._version(span))

    def why_whole(self, shape: Rows | Keys) -> str:
        """Why changes alone do not tell which rows go: what a row was made from may be gone from a table that is not
        followed. Where such a table is the right side of a LEFT JOIN, no row depends on it."""
        followed = {index for index, place in enumerate(self._model.places) if place.name in self._logs}
        if len(followed) == len(self._model.places) and not self._model.reads_files:
            return ""
        if isinstance(shape, Keys):
            others = [leaf for leaf in shape.core.leaves if not leaf.places or set(leaf.places) - followed]
            if all(leaf.join == "LEFT" for leaf in others):
                return ""
        return "it joins what is not followed other than by LEFT JOIN"

    def have_moved_on(self, spans: Iterable[Span]) -> bool:
        return any(self._version(span) > span.end for span in spans)

    def _version(self, span: Span) -> int:
        return Table.open(span.location, self._options, files=False).version


def _tables(lake: LakeFolder, name: Name) -> set[Name]:
    """A table, or those behind a view."""
    relation = lake.find(name)
    if relation is None or relation.kind != "view":
        return {name}
    return {place.name for place in ChangeModel.read(lake, lake.view(relation).sql, name).places}
