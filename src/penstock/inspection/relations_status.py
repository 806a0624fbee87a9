"""Where every relation of a lake stands, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

import pyarrow.compute as pc

from penstock.changes.plan import KIND as CHANGES
from penstock.delta.data_files import Statistics
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.files.plan import KIND as FILES
from penstock.files.records import QUARANTINED, known
from penstock.files.source import Listings
from penstock.inspection.table_ledger import TableLedger
from penstock.lake.lookup import Lookup
from penstock.lake.relations import Relation
from penstock.windows.plan import KIND as WINDOWS
from penstock.wording import count

MANY_SMALL = 50
"""From this number on, small files need attention, and `penstock maintain` joins them."""
MANY_DELETED = 0.2
"""From this share of a table's rows on, deleted rows need attention."""
_READERS = 8


@dataclass(frozen=True)
class RelationStatus:
    """One relation. A number is None where it has no meaning for the relation's kind, or where it is unknown."""

    name: str
    kind: str
    """`files`, `changes`, `windows`, `table`, `view` or `raw files`."""
    rows: int | None = None
    bytes: int | None = None
    files: int | None = None
    version: int | None = None
    changed: datetime | None = None
    """The time of the newest commit."""
    last_run: datetime | None = None
    """The end of the last run that wrote its summary, or that committed."""
    waiting: int | None = None
    """Files of the roots that are not in the table yet, those younger than the safety buffer included."""
    behind: int | None = None
    """Versions of the followed tables that are not in the table yet."""
    quarantined: int | None = None
    holes: int | None = None
    small_files: int | None = None
    deleted_rows: int | None = None
    error: str | None = None
    """Why the next run would fail, or why the relation can't be read."""
    attention: tuple[str, ...] = ()
    """What needs attention, the most urgent first; without `error`."""

    @property
    def urgency(self) -> int:
        """What the relations are sorted by: 3 for an error, 2 for missing rows, 1 for work that waits, 0 for nothing."""
        if self.error is not None:
            return 3
        if self.quarantined or self.holes:
            return 2
        return 1 if self.attention else 0


@dataclass
class _Found:
    """A status while it is read: a failure in one part leaves the other parts as they are."""

    status: RelationStatus
    errors: list[str] = field(default_factory=list)
    attention: list[str] = field(default_factory=list)

    def done(self) -> RelationStatus:
        error = "; ".join(dict.fromkeys(self.errors)) or None
        return replace(self.status, error=error, attention=tuple(self.attention))

    def set(self, **values: Any) -> None:
        self.status = replace(self.status, **values)


def relations_status(lake: Lookup, names: Iterable[str] = ()) -> list[RelationStatus]:
    """The status of these relations, or of all; those that need attention first. No JVM starts, nothing is written."""
    wanted = list(names)
    relations = [lake.get(name) for name in wanted] if wanted else lake.tables()
    listings = Listings(lake.storage_options)
    versions = _Versions(lake.storage_options)
    with ThreadPoolExecutor(_READERS) as pool:
        found = list(pool.map(lambda relation: _status(lake, relation, listings, versions), relations))
    return sorted(found, key=lambda status: (-status.urgency, status.name))


class _Versions:
    """The newest versions of tables, each read once."""

    def __init__(self, storage_options: dict[str, str]) -> None:
        self._options = storage_options
        self._known: dict[str, int] = {}

    def add(self, location: str, version: int) -> None:
        self._known[location] = version

    def of(self, location: str) -> int:
        if location not in self._known:
            self._known[location] = Table.open(location, self._options, files=False).version
        return self._known[location]


def _status(lake: Lookup, relation: Relation, listings: Listings, versions: _Versions) -> RelationStatus:
    found = _Found(RelationStatus(str(relation), "raw files" if relation.kind == "files" else relation.kind))
    try:
        if relation.kind == "table":
            _read_table(found, lake, relation, listings, versions)
        else:
            found.set(changed=lake.change_of(relation))
    except PenstockError as error:
        found.errors.append(str(error))
    return found.done()


def _read_table(found: _Found, lake: Lookup, relation: Relation, listings: Listings, versions: _Versions) -> None:
    table = Table.open(relation.location, lake.storage_options)
    versions.add(relation.location, table.version)
    found.set(version=table.version, changed=table.last_modified)
    _count(found, table.statistics())
    ledger = TableLedger.of(lake, relation, table)
    if (lost := ledger.lost_rows) is not None:
        found.errors.append(lost)
    found.set(kind=ledger.kind, last_run=last_run(ledger) or found.status.changed)
    part = {FILES: _read_files, CHANGES: _read_changes, WINDOWS: _read_windows}.get(ledger.kind)
    if part is not None:
        part(found, ledger, listings, versions)
    _add_upkeep(found)


def _count(found: _Found, statistics: Statistics) -> None:
    found.set(
        rows=statistics.rows,
        bytes=statistics.bytes,
        files=statistics.files,
        small_files=statistics.small,
        deleted_rows=statistics.deleted,
    )


def last_run(ledger: TableLedger) -> datetime | None:
    """The time in the summary of the table's ledger; None if there is no summary of this life of the table."""
    summary = ledger.summary
    if summary.get("ledger") != ledger.state.ledger:
        return None
    try:
        moment = datetime.strptime(str(summary["updated"]), "%Y-%m-%dT%H:%M:%SZ")
    except (KeyError, ValueError):
        return None
    return moment.replace(tzinfo=timezone.utc)


def _read_files(found: _Found, ledger: TableLedger, listings: Listings, versions: _Versions) -> None:
    records = known(ledger.files.records)
    statuses = {item["values"]: item["counts"] for item in pc.value_counts(records["status"]).to_pylist()}
    quarantined = int(statuses.get(QUARANTINED, 0))
    found.set(quarantined=quarantined)
    if quarantined:
        found.attention.append(f"{count(quarantined, 'file')} in quarantine")
    selection = ledger.landing(listings, lambda text: None)
    ready = selection.backlog.files.num_rows + selection.aside.num_rows
    found.set(waiting=ready + selection.waiting)
    if ready:
        found.attention.append(f"{count(ready, 'file')} to come in")
    elif selection.waiting:
        found.attention.append(f"{count(selection.waiting, 'file')} younger than the safety buffer")


def _read_changes(found: _Found, ledger: TableLedger, listings: Listings, versions: _Versions) -> None:
    behind = 0
    for range_ in ledger.changes.position(void=ledger.state.last_is_void).values():
        try:
            behind += max(0, versions.of(range_.location) - range_.end)
        except PenstockError as error:
            found.errors.append(f"{range_.name}: {error}")
    found.set(behind=behind)
    if behind:
        found.attention.append(f"{count(behind, 'version')} behind")


def _read_windows(found: _Found, ledger: TableLedger, listings: Listings, versions: _Versions) -> None:
    holes = ledger.windows.holes(()).windows
    found.set(holes=len(holes))
    if holes:
        more = f" and {len(holes) - 1} more" if len(holes) > 1 else ""
        found.attention.append(f"never built: {holes[0]}{more}")


def _add_upkeep(found: _Found) -> None:
    status = found.status
    if needs_join(status.small_files):
        found.attention.append(f"{count(status.small_files or 0, 'small file')}")
    if needs_purge(status.rows, status.deleted_rows):
        found.attention.append(f"{count(status.deleted_rows or 0, 'deleted row')}")


def needs_join(small: int | None) -> bool:
    """Whether a table has so many small files that OPTIMIZE pays."""
    return (small or 0) >= MANY_SMALL


def needs_purge(rows: int | None, deleted: int | None) -> bool:
    """Whether so many rows are deleted by deletion vectors that a rewrite of their files pays."""
    return bool(deleted) and (deleted or 0) >= MANY_DELETED * ((rows or 0) + (deleted or 0))


def totals(statuses: Iterable[RelationStatus]) -> Mapping[str, int]:
    """Relations by urgency, for the last line of the answer."""
    found = list(statuses)
    return {
        "relations": len(found),
        "errors": sum(status.urgency == 3 for status in found),
        "attention": sum(0 < status.urgency < 3 for status in found),
    }
