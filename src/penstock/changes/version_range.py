"""What happened to a source between two of its versions, from its log alone: never a JVM."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from penstock.delta.log import actions_of, commit_file
from penstock.delta.table import Table, spark_type
from penstock.errors import NotFound, PenstockError
from penstock.sql.quoting import quote
from penstock.storage import Storage

FEED = "delta.enableChangeDataFeed"
_REFRESH = "Run with --full-refresh (or set `on_cdf_gap: full_refresh`) to build the table anew."
_ID = "delta.columnMapping.id"
Columns = tuple[tuple[str, str], ...]
Path = tuple[str, ...]


class Gap(PenstockError):
    """Changes that are needed and can't be read any more."""

    def __init__(self, what: str, *, where: str, fix: str = _REFRESH) -> None:
        super().__init__(what, where=where, fix=fix)


@dataclass(frozen=True)
class Span:
    """A source's part of a plan: which of its versions are taken."""

    name: str
    location: str
    id: str
    start: int | None
    """The version last processed; None where the table is built anew from `end`."""
    end: int
    commit: str
    """A digest of the commit `end`: another one later means that the log was made anew."""
    before: str = ""
    """The same of the commit `start`."""

    @property
    def is_empty(self) -> bool:
        return self.start == self.end

    def __str__(self) -> str:
        return f"{self.name} at {self.end}" if self.start is None else f"{self.name} {self.start + 1} to {self.end}"


@dataclass(frozen=True)
class Segment:
    """Versions that are read in one go: by the feed, or, where the feed can't, as two snapshots."""

    first: int
    last: int
    by_snapshot: bool = False


@dataclass(frozen=True)
class Between:
    """What happened to a source between two of its versions."""

    segments: tuple[Segment, ...]
    """How to read the row changes; none where there are none."""
    before: Columns
    """Its columns and their types at the first version, in their order; none where no commit told any."""
    after: Columns
    again: frozenset[str] = frozenset()
    """Columns that were dropped and added again: what was in them is gone from rows that no commit has changed."""

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
        """Columns whose values read otherwise in rows that no commit has changed: 1 as a double is the text 1.0."""
        before, after = _types(self.before), _types(self.after)
        return {*self.again} | {name for name in before.keys() & after.keys() if before[name] != after[name]}


@dataclass(frozen=True)
class Commit:
    """The little that must be known of a commit."""

    version: int
    changes_rows: bool
    metadata: Mapping[str, Any] | None
    digest: str


class SourceLog:
    """A source's log, read commit by commit."""

    def __init__(
        self, name: str, location: str, storage_options: dict[str, str] | None, *, linked: bool = False
    ) -> None:
        self.name = name
        # A name that only dbt's project knows is nothing to run a statement on.
        self._in_sql = f"delta.{quote(location)}" if linked else name
        self.location = location
        self._options = storage_options
        self._storage = Storage(location, storage_options)

    def commit(self, version: int) -> Commit | None:
        """None where the log does not have it any more."""
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
        found = self.commit(version)
        return "" if found is None else found.digest

    def current(self, processed: int | None = None) -> Table:
        """The table as it is now; one whose feed is off is refused. `processed` is the version that is in already."""
        table = Table.open(self.location, self._options, files=False)
        if table.properties.get(FEED, "false").lower() != "true":
            needed = "" if processed is None else f", those after version {processed},"
            raise PenstockError(
                f"{self.name} has no change data feed at version {table.version}, so its changes{needed} can't be "
                "followed",
                where=self.location,
                fix=f"Set `change_data_feed: true` on its model, or run ALTER TABLE {self._in_sql} SET TBLPROPERTIES "
                f"('{FEED}' = 'true'); where rows have changed without it, --full-refresh is needed once.",
            )
        return table

    def check_continuous(self, span: Span, current: int) -> None:
        """The log is the one that was read last time, only longer."""
        known = self.commit(span.end)
        if current < span.end or (known is not None and known.digest != span.commit):
            raise Gap(
                f"The log of {self.name} was made anew: version {span.end}, which was processed last, is not the same "
                f"commit any more (it is at version {current} now)",
                where=self.location,
            )

    def between(self, start: int, end: int) -> Between:
        """What happened after `start`, up to `end`."""
        walk = _Walk(self, start, end)
        segments = tuple(_joined(walk.steps()))
        return Between(segments, _columns(walk.first or []), _columns(walk.fields or []), frozenset(walk.again))

    def schema_at(self, version: int) -> tuple[list[dict[str, Any]], str]:
        try:
            delta = DeltaTable(self.location, version, storage_options=self._options or None, without_files=True)
            return json.loads(delta.schema().to_json())["fields"], str(delta.metadata().id)
        except DeltaError as error:
            raise Gap(
                f"The log of {self.name} was cleaned up: its version {version} can't be read any more",
                where=self.location,
            ) from error


class _Walk:
    """A source's commits, one after the other."""

    def __init__(self, log: SourceLog, start: int, end: int) -> None:
        self._log, self._start, self._end = log, start, end
        self.first: list[dict[str, Any]] | None = None
        """The columns before; None where no commit told any."""
        self.fields: list[dict[str, Any]] | None = None
        self.again: set[str] = set()
        self._table_id: str | None = None
        self._names: dict[int, Path] = {}
        """The name of each column that there was, by the number that column mapping gives it for life."""
        self._off_since: int | None = None

    def steps(self) -> Iterator[Segment | None]:
        """A segment for each commit that changes rows; None where the next one can't be read with the last."""
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
        """Whether what this commit and those before it changed can be read together."""
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
        """A column that goes by another name is a gap; one that has another's name holds nothing of it."""
        taken = {_lower(path): number for number, path in self._names.items()}
        for number, path in _numbered(now).items():
            known = self._names.get(number, path)
            if _lower(known) != _lower(path):
                raise Gap(
                    f"The column {'.'.join(known)} of {self._log.name} was renamed to {'.'.join(path)} by version "
                    f"{version}, and its changes from before that have the old name",
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
                fix=f"Keep `{FEED}` on. {_REFRESH}",
            )


def _joined(walk: Iterator[Segment | None]) -> Iterator[Segment]:
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
    """The columns, and the fields inside of them, by the numbers of column mapping."""
    found = {}
    for field in fields:
        path = (*within, field["name"])
        if _ID in (field.get("metadata") or {}):
            found[field["metadata"][_ID]] = path
        for part, inner in _inside(field["type"]):
            found |= _numbered(inner, (*path, *part))
    return found


def _inside(type: Any) -> Iterator[tuple[Path, list[dict[str, Any]]]]:
    """The structs in a type, and where in it they are."""
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
