"""What happened to a source between two of its versions, from its log alone: never a JVM."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from penstock.errors import NotFound, PenstockError
from penstock.storage import Storage
from penstock.table import Table, spark_type

FEED = "delta.enableChangeDataFeed"
_REFRESH = "Run with --full-refresh (or set `on_cdf_gap: full_refresh`) to build the table anew."
_ID = "delta.columnMapping.id"


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
class Commit:
    """The little that must be known of a commit."""

    version: int
    changes_rows: bool
    metadata: Mapping[str, Any] | None
    digest: str


class SourceLog:
    """A source's log, read commit by commit."""

    def __init__(self, name: str, location: str, storage_options: dict[str, str] | None) -> None:
        self.name = name
        self.location = location
        self._options = storage_options
        self._storage = Storage(location, storage_options)

    def commit(self, version: int) -> Commit | None:
        """None where the log does not have it any more."""
        try:
            data = self._storage.read(f"_delta_log/{version:020}.json")
        except NotFound:
            return None
        actions = [json.loads(line) for line in data.splitlines() if line.strip()]
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

    def current(self) -> Table:
        """The table as it is now; one whose feed is off is refused."""
        table = Table.open(self.location, self._options, files=False)
        if table.properties.get(FEED, "false").lower() != "true":
            raise PenstockError(
                f"{self.name} has no change data feed, so its changes can't be followed",
                where=self.location,
                fix=f"Set `change_data_feed: true` on its model, or run ALTER TABLE {self.name} SET TBLPROPERTIES "
                f"('{FEED}' = 'true'); a table that was built before that needs --full-refresh.",
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

    def segments(self, start: int, end: int) -> list[Segment]:
        """How to read the row changes after `start`, up to `end`; none where there are none."""
        return list(_joined(self._walk(start, end)))

    def has_other_columns(self, start: int, end: int) -> bool:
        """Whether the table has other columns, or other types of them, at `end` than at `start`."""
        commits = (self.commit(version) for version in range(end, start, -1))
        last = next((found.metadata for found in commits if found is not None and found.metadata is not None), None)
        if last is None:
            return False
        return _types(self._schema_at(start)[0]) != _types(_fields(last["schemaString"]))

    def _walk(self, start: int, end: int) -> Iterator[Segment | None]:
        """A segment for each commit that changes rows; None where the next one can't be read with the last."""
        fields: list[dict[str, Any]] | None = None
        table_id: str | None = None
        off_since: int | None = None
        for version in range(start + 1, end + 1):
            commit = self.commit(version)
            if commit is None:
                raise Gap(
                    f"The log of {self.name} was cleaned up: its versions {start + 1} to {end} are needed, and "
                    f"{version} is gone",
                    where=self.location,
                )
            by_snapshot = False
            if commit.metadata is not None:
                if fields is None:
                    fields, table_id = self._schema_at(start)
                now = _fields(commit.metadata["schemaString"])
                replaced = commit.metadata["id"] != table_id
                if not replaced:
                    self._refuse_renamed(fields, now, version)
                if not _only_adds(fields, now):
                    by_snapshot = commit.changes_rows
                    yield None
                fields, table_id = now, commit.metadata["id"]
                on = (commit.metadata.get("configuration") or {}).get(FEED, "false").lower() == "true"
                off_since = None if on else (off_since or version)
                if not on:
                    yield None
            if commit.changes_rows:
                if off_since is not None:
                    raise Gap(
                        f"The change data feed of {self.name} was off at version {version} (since {off_since}), and "
                        f"its changes from version {start + 1} to {end} are needed",
                        where=self.location,
                        fix=f"Keep `{FEED}` on. {_REFRESH}",
                    )
                yield Segment(version, version, by_snapshot)
                if by_snapshot:
                    yield None

    def _schema_at(self, version: int) -> tuple[list[dict[str, Any]], str]:
        try:
            delta = DeltaTable(self.location, version, storage_options=self._options or None, without_files=True)
            return json.loads(delta.schema().to_json())["fields"], str(delta.metadata().id)
        except DeltaError as error:
            raise Gap(
                f"The log of {self.name} was cleaned up: its version {version} can't be read any more",
                where=self.location,
            ) from error

    def _refuse_renamed(self, before: list[dict[str, Any]], now: list[dict[str, Any]], version: int) -> None:
        was = {field["metadata"][_ID]: field["name"] for field in before if _ID in (field.get("metadata") or {})}
        ids = {
            field["name"].lower(): field["metadata"][_ID] for field in before if _ID in (field.get("metadata") or {})
        }
        for field in now:
            number, name = (field.get("metadata") or {}).get(_ID), field["name"]
            if number in was and was[number].lower() != name.lower():
                raise Gap(
                    f"The column {was[number]} of {self.name} was renamed to {name} by version {version}, and its "
                    "changes from before that have the old name",
                    where=self.location,
                )
            if number is not None and ids.get(name.lower(), number) != number:
                raise Gap(
                    f"The column {name} of {self.name} was dropped and added again by version {version}, which "
                    "changed rows without telling the feed",
                    where=self.location,
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


def _only_adds(before: list[dict[str, Any]], now: list[dict[str, Any]]) -> bool:
    return _types(before).items() <= _types(now).items()


def _types(fields: list[dict[str, Any]]) -> dict[str, str]:
    return {field["name"].lower(): spark_type(field["type"]) for field in fields}
