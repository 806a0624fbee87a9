"""Reads, from a source's Delta log, how its rows and columns changed in a version range. No JVM starts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from penstock.changes.version_range import REFRESH, Gap, VersionRange
from penstock.delta.log import actions_of, commit_file
from penstock.delta.table import Table, spark_type
from penstock.errors import NotFound, PenstockError
from penstock.spark.change_feed import Segment
from penstock.sql.quoting import quote
from penstock.storage import Storage, with_keys

FEED = "delta.enableChangeDataFeed"
_ID = "delta.columnMapping.id"
Columns = tuple[tuple[str, str], ...]
Path = tuple[str, ...]


@dataclass(frozen=True)
class SourceChanges:
    """The changes of a source's rows and columns in a version range."""

    segments: tuple[Segment, ...]
    """How to read the row changes; empty if no row changed."""
    before: Columns
    """The columns and types at the first version, in their order; empty if no commit of the range has metadata."""
    after: Columns
    again: frozenset[str] = frozenset()
    """Columns that were dropped and added again. Rows that no commit has changed have lost their old values."""

    @property
    def has_other_columns(self) -> bool:
        return self.before != self.after or bool(self.again)

    @property
    def added(self) -> set[str]:
        return set(_types(self.after).keys() - _types(self.before).keys())

    @property
    def dropped(self) -> set[str]:
        return set(_types(self.before).keys() - _types(self.after).keys())

    @property
    def reread(self) -> set[str]:
        """Columns whose values changed in rows that no commit has changed: the int 1 becomes the text 1.0 as a double."""
        before, after = _types(self.before), _types(self.after)
        return {*self.again} | {name for name in before.keys() & after.keys() if before[name] != after[name]}


@dataclass(frozen=True)
class Commit:
    """The facts about one commit that this package uses."""

    version: int
    changes_rows: bool
    metadata: Mapping[str, Any] | None
    digest: str


class SourceLog:
    """The Delta log of one source, read commit by commit."""

    def __init__(
        self, name: str, location: str, storage_options: dict[str, str] | None, *, linked: bool = False
    ) -> None:
        self.name = name
        # A source with a `location` has its name only in the dbt project; Spark knows the location.
        self._in_sql = f"delta.{quote(location)}" if linked else name
        self.location = location
        self._options = storage_options
        self._storage = Storage(location, storage_options)

    def commit(self, version: int) -> Commit | None:
        """One commit; None if the log no longer has it."""
        try:
            data = self._storage.read(commit_file(version))
        except NotFound:
            return None
        actions = actions_of(data)
        changes = any(
            "cdc" in action
            or any(kind in action and action[kind].get("dataChange", True) for kind in ("add", "remove"))
            for action in actions
        )
        metadata = next((action["metaData"] for action in actions if "metaData" in action), None)
        return Commit(version, changes, metadata, hashlib.sha256(data).hexdigest()[:16])

    def digest(self, version: int) -> str:
        """A digest of a commit; empty if the log no longer has it."""
        found = self.commit(version)
        return "" if found is None else found.digest

    def current(self, processed: int | None = None) -> Table:
        """The table as it is now; an error if its change data feed is off.

        `processed` is the last version that is already in; the error names it.
        """
        table = Table.open(self.location, self._options, files=False)
        if table.properties.get(FEED, "false").lower() != "true":
            needed = "" if processed is None else f" after version {processed}"
            raise PenstockError(
                f"{self.name} has no change data feed at version {table.version}, so its changes{needed} cannot be "
                "followed",
                where=self.location,
                fix=f"Set `change_data_feed: true` on its model, or run ALTER TABLE {self._in_sql} SET TBLPROPERTIES "
                f"('{FEED}' = 'true'). If rows changed while the feed was off, run once with --full-refresh.",
            )
        return table

    def check_continuous(self, versions: VersionRange, current: int) -> None:
        """A Gap if the log is not the one that was read last time, continued; `current` is the newest version."""
        known = self.commit(versions.end)
        if current < versions.end or (known is not None and known.digest != versions.commit):
            raise Gap(
                f"The log of {self.name} was created again: version {versions.end}, which was processed last, is another "
                f"commit now (the newest version is {current})",
                where=self.location,
            )

    def changes(self, start: int, end: int) -> SourceChanges:
        """The changes after the version `start`, up to `end`; a Gap if some of them can no longer be read."""
        walk = _Walk(self, start, end)
        segments = tuple(_joined(walk.steps()))
        return SourceChanges(segments, _columns(walk.first or []), _columns(walk.fields or []), frozenset(walk.again))

    def schema_at(self, version: int) -> tuple[list[dict[str, Any]], str]:
        """The columns at a version, and the table's id; a Gap if the version can no longer be read."""
        try:
            delta = DeltaTable(
                self.location,
                version,
                storage_options=with_keys(self.location, self._options) or None,
                without_files=True,
            )
            return json.loads(delta.schema().to_json())["fields"], str(delta.metadata().id)
        except DeltaError as error:
            raise Gap(
                f"The log of {self.name} was cleaned up: its version {version} can no longer be read",
                where=self.location,
            ) from error


class _Walk:
    """Reads the commits of a version range in order, and keeps track of the columns."""

    def __init__(self, log: SourceLog, start: int, end: int) -> None:
        self._log, self._start, self._end = log, start, end
        self.first: list[dict[str, Any]] | None = None
        """The columns at the start; None until a commit has metadata."""
        self.fields: list[dict[str, Any]] | None = None
        """The columns at the commit that was read last."""
        self.again: set[str] = set()
        self._table_id: str | None = None
        self._names: dict[int, Path] = {}
        """The name of every column so far, by the number that column mapping gives the column for good."""
        self._off_since: int | None = None
        """The version that turned the change data feed off; None while it is on."""

    def steps(self) -> Iterator[Segment | None]:
        """A segment for each commit that changes rows; None where the next segment cannot be read with the last one."""
        for version in range(self._start + 1, self._end + 1):
            commit = self._log.commit(version)
            if commit is None:
                raise Gap(
                    f"The log of {self._log.name} was cleaned up: its versions {self._start + 1} to {self._end} are "
                    f"needed, and {version} is gone",
                    where=self._log.location,
                )
            fits = commit.metadata is None or self._fits(commit, commit.metadata)
            if not fits:
                yield None
            if commit.changes_rows:
                self._refuse_off(version)
                yield Segment(version, version, not fits)
                if not fits:
                    yield None

    def _fits(self, commit: Commit, metadata: Mapping[str, Any]) -> bool:
        """Whether the feed can read this commit together with the commits before it."""
        if self.fields is None:
            self.first, self._table_id = self._log.schema_at(self._start)
            self.fields = self.first
            self._names = _numbered(self.first)
        before, now = self.fields, _fields(metadata["schemaString"])
        if metadata["id"] == self._table_id:
            self._compare(now, commit.version)
        else:
            self._names = {}
        self._names |= _numbered(now)
        self.fields, self._table_id = now, metadata["id"]
        on = (metadata.get("configuration") or {}).get(FEED, "false").lower() == "true"
        self._off_since = None if on else (self._off_since or commit.version)
        return on and _types(_columns(before)).items() <= _types(_columns(now)).items()

    def _compare(self, now: list[dict[str, Any]], version: int) -> None:
        """A Gap if a column was renamed. A column that takes the name of a dropped one is noted in `again`."""
        taken = {_lower(path): number for number, path in self._names.items()}
        for number, path in _numbered(now).items():
            known = self._names.get(number, path)
            if _lower(known) != _lower(path):
                raise Gap(
                    f"The column {'.'.join(known)} of {self._log.name} was renamed to {'.'.join(path)} by version "
                    f"{version}, and its earlier changes have the old name",
                    where=self._log.location,
                )
            if taken.get(_lower(path), number) != number:
                self.again.add(path[0].lower())

    def _refuse_off(self, version: int) -> None:
        if self._off_since is not None:
            raise Gap(
                f"The change data feed of {self._log.name} was off at version {version} (since {self._off_since}), and "
                f"its changes from version {self._start + 1} to {self._end} are needed",
                where=self._log.location,
                fix=f"Keep `{FEED}` on. {REFRESH}",
            )


def _joined(walk: Iterator[Segment | None]) -> Iterator[Segment]:
    """Segments that follow each other, joined as far as they can be read together."""
    held: Segment | None = None
    for segment in walk:
        if segment is None:
            if held is not None:
                yield held
            held = None
        else:
            held = segment if held is None else Segment(held.first, segment.last, held.by_snapshot)
    if held is not None:
        yield held


def _fields(schema: str) -> list[dict[str, Any]]:
    return list(json.loads(schema)["fields"])


def _numbered(fields: list[dict[str, Any]], within: Path = ()) -> dict[int, Path]:
    """The paths of the columns and of the fields inside of them, by their numbers of column mapping."""
    found = {}
    for field in fields:
        path = (*within, field["name"])
        if _ID in (field.get("metadata") or {}):
            found[field["metadata"][_ID]] = path
        for part, inner in _inside(field["type"]):
            found |= _numbered(inner, (*path, *part))
    return found


def _inside(type: Any) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The structs in a type, each with its path."""
    if isinstance(type, dict):
        yield (), type.get("fields") or []
        for part, name in (("elementType", "element"), ("keyType", "key"), ("valueType", "value")):
            for below, fields in _inside(type.get(part)):
                yield (name, *below), fields


def _lower(path: Path) -> Path:
    return tuple(part.lower() for part in path)


def _columns(fields: list[dict[str, Any]]) -> Columns:
    return tuple((field["name"], spark_type(field["type"])) for field in fields)


def _types(columns: Columns) -> dict[str, str]:
    return {name.lower(): type for name, type in columns}
