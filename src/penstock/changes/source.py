"""The tables whose changes a model follows: their newest versions, and their version ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from penstock.changes.config import ChangeSource
from penstock.changes.incremental.way import Keys, Rows
from penstock.changes.query import ChangeQuery
from penstock.changes.source_log import SourceChanges, SourceLog
from penstock.changes.version_range import Gap, VersionRange
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.sql.names import Name

if TYPE_CHECKING:
    from penstock.lake.folder import LakeFolder


class FollowedSources:
    """The followed sources of one run. The run goes up to the versions that it found first, and no further."""

    def __init__(self, lake: LakeFolder, source: ChangeSource, query: ChangeQuery, where: str) -> None:
        read = {table.name: table.location for table in query.reads}
        named = {name: _tables(lake, name) for name in source.cdf_source}
        unknown = [str(name) for name, tables in named.items() if not tables or not tables <= read.keys()]
        if unknown:
            raise PenstockError(
                f"`cdf_source` names {', '.join(unknown)}, which the model does not read",
                where=where,
                fix=f"It reads {', '.join(sorted(map(str, read))) or 'no table'}.",
            )
        # Each table once, in the order of `cdf_source`.
        wanted = dict.fromkeys(table for tables in named.values() for table in sorted(tables, key=str)) or read
        if not wanted:
            raise PenstockError(
                "The model reads no Delta table, so there are no changes to follow",
                where=where,
                fix="Use `incremental_strategy: merge`.",
            )
        self._query = query
        self._options = lake.storage_options
        self._logs = {
            name: SourceLog(str(name), read[name], self._options, linked=name in lake.links) for name in wanted
        }
        self._current: dict[Name, Table] = {}
        """The sources at the versions that this run goes up to; empty until they are looked up."""

    @property
    def names(self) -> tuple[Name, ...]:
        return tuple(self._logs)

    # Version ranges

    def look_up(self, position: Mapping[str, VersionRange]) -> None:
        """Read the newest versions, unless they are known; `position` holds what is already in, by source."""
        if not self._current:
            self._current = {
                name: log.current(position[str(name)].end if str(name) in position else None)
                for name, log in self._logs.items()
            }

    def forget(self) -> None:
        """Read the newest versions again the next time."""
        self._current = {}

    def whole(self) -> tuple[VersionRange, ...]:
        """The sources as they are, to build a table from."""
        return tuple(
            VersionRange(str(name), log.location, table.id, None, table.version, log.digest(table.version))
            for name, log, table in ((name, log, self._current[name]) for name, log in self._logs.items())
        )

    def since(self, position: Mapping[str, VersionRange], limit: int | None) -> tuple[VersionRange, ...]:
        """The versions of each source after those that are in, at most `limit` of them."""
        return tuple(self._since(name, log, position.get(str(name)), limit) for name, log in self._logs.items())

    def _since(self, name: Name, log: SourceLog, known: VersionRange | None, limit: int | None) -> VersionRange:
        current = self._current[name]
        if known is None:
            raise Gap(
                f"The model did not read {name} when the table was built, so it is unknown which changes up to "
                f"version {current.version} are in the table",
                where=log.location,
            )
        log.check_continuous(known, current.version)
        end = current.version if limit is None else min(current.version, known.end + limit)
        return VersionRange(str(name), log.location, current.id, known.end, end, log.digest(end), known.commit)

    def have_moved_on(self, ranges: Iterable[VersionRange]) -> bool:
        """Whether any source has a version after these."""
        return any(self._version(versions) > versions.end for versions in ranges)

    def _version(self, versions: VersionRange) -> int:
        return Table.open(versions.location, self._options, files=False).version

    # What happened in version ranges

    def changes(self, ranges: Iterable[VersionRange]) -> dict[Name, SourceChanges]:
        """The changes of each source; none where the table is built from its version."""
        return {Name.parse(versions.name): self._changes(versions) for versions in ranges}

    def _changes(self, versions: VersionRange) -> SourceChanges:
        if versions.start is None:
            return SourceChanges((), (), ())
        return self._logs[Name.parse(versions.name)].changes(versions.start, versions.end)

    def check(self, ranges: Mapping[Name, VersionRange], where: str) -> None:
        """A Gap if a plan, perhaps of an earlier process, is of other sources, or if a log was created again since."""
        if set(ranges) != set(self.names):
            raise Gap(f"The plan was made for other sources ({', '.join(map(str, ranges))})", where=where)
        for name, versions in ranges.items():
            self._logs[name].check_continuous(versions, self._version(versions))

    def why_whole(self, way: Rows | Keys) -> str:
        """Why the changes alone do not say which rows leave; empty if they do.

        An old row is found again from the rows that it was made from. A table that is not followed may no longer have
        its part. No row depends on such a table if it is the right side of a LEFT JOIN.
        """
        followed = {index for index, table in enumerate(self._query.reads) if table.name in self._logs}
        if len(followed) == len(self._query.reads) and not self._query.reads_files:
            return ""
        if isinstance(way, Keys):
            others = [leaf for leaf in way.affected.leaves if not leaf.reads or set(leaf.reads) - followed]
            if all(leaf.join == "LEFT" for leaf in others):
                return ""
        return "it joins a table that is not followed by another join than LEFT JOIN"


def _tables(lake: LakeFolder, name: Name) -> set[Name]:
    """The table itself, or the tables that a view reads."""
    relation = lake.find(name)
    if relation is None or relation.kind != "view":
        return {name}
    return {table.name for table in ChangeQuery.read(lake, lake.view(relation).sql, name).reads}
