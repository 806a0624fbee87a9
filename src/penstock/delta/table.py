"""A Delta table as its log describes it, read through delta-rs without a JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError

from penstock.delta.data_files import DataFiles, Statistics
from penstock.delta.log import Checkpoint, actions_of, commit_file, commit_info, domains_of
from penstock.errors import NotFound, PenstockError, UnreadableTable, UnsupportedTable
from penstock.sql.quoting import field_name
from penstock.storage import Storage, is_uri, with_keys
from penstock.storage.failures import explain, is_of_store, plain

T = TypeVar("T")

MARK = "penstock"
"""The application id of our transaction marks. Its numbers never restart during the life of a table."""
VOID = "penstock.void"
"""The application id of a second mark, on commits whose number belongs to a cancelled plan."""

_SPARK_TYPES = {
    "long": "bigint",
    "integer": "int",
    "short": "smallint",
    "byte": "tinyint",
}
_DELETION_VECTORS = "deletionVectors"
_CLUSTERING = "clustering"
_IMPLIED_FEATURES = {
    "appendOnly": 2,
    "invariants": 2,
    "checkConstraints": 3,
    "changeDataFeed": 4,
    "generatedColumns": 4,
    "columnMapping": 5,
    "identityColumns": 6,
}
"""Features of older protocols, which list no features: the lowest writer version that has each feature."""
# delta-rs raises OSError for a store's failure.
_FAILURES = (DeltaError, OSError, ValueError)
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Column:
    """A column, with its type as Spark's SQL spells it."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None


def spark_type(delta_type: Any, metadata: dict[str, Any] | None = None) -> str:
    """A type in a Delta schema as Spark's SQL spells it.

    >>> spark_type({"type": "array", "elementType": "long", "containsNull": True})
    'array<bigint>'
    """
    if metadata and _CHAR_TYPE in metadata:
        return str(metadata[_CHAR_TYPE])
    if isinstance(delta_type, str):
        return _SPARK_TYPES.get(delta_type, delta_type)
    kind = delta_type["type"]
    if kind == "array":
        return f"array<{spark_type(delta_type['elementType'])}>"
    if kind == "map":
        return f"map<{spark_type(delta_type['keyType'])},{spark_type(delta_type['valueType'])}>"
    fields = ",".join(
        f"{field_name(field['name'])}:{spark_type(field['type'], field.get('metadata'))}"
        for field in delta_type["fields"]
    )
    return f"struct<{fields}>"


class Table:
    """A Delta table, at the version that it had when it was opened.

    >>> Table.open("/lake/silver/orders").version    # doctest: +SKIP
    12
    """

    def __init__(self, location: str, delta: DeltaTable, storage_options: dict[str, str] | None = None) -> None:
        self.location = location
        self._delta = delta
        self._storage_options = storage_options

    @classmethod
    def open(cls, location: str, storage_options: dict[str, str] | None = None, *, files: bool = True) -> Table:
        """The table at its newest version. `files=False` is faster, but gives only metadata and history.

        NotFound if there is no Delta table, UnreadableTable or UnsupportedTable if its log can't be read.
        """
        try:
            delta = DeltaTable(
                location, storage_options=with_keys(location, storage_options) or None, without_files=not files
            )
            return cls(location, delta, storage_options)
        except TableNotFoundError as error:
            if is_of_store(str(error)):
                raise _unreadable(location, error, storage_options) from error
            raise NotFound("There is no Delta table", where=location) from error
        except _FAILURES as error:
            raise _unreadable(location, error, storage_options) from error

    @property
    def version(self) -> int:
        return int(self._delta.version())

    @cached_property
    def _metadata(self) -> Any:
        return self._delta.metadata()

    @property
    def id(self) -> str:
        return str(self._metadata.id)

    @property
    def description(self) -> str | None:
        return self._metadata.description or None

    @property
    def partition_columns(self) -> list[str]:
        return list(self._metadata.partition_columns)

    @property
    def properties(self) -> dict[str, str]:
        return dict(self._metadata.configuration)

    @property
    def protocol_versions(self) -> tuple[int, int]:
        """The protocol versions that a reader and a writer must support."""
        protocol = self._delta.protocol()
        return protocol.min_reader_version, protocol.min_writer_version

    @cached_property
    def features(self) -> set[str]:
        """The table features of its protocol. Older protocols imply them by their version."""
        protocol = self._delta.protocol()
        if protocol.writer_features is None:
            return {name for name, version in _IMPLIED_FEATURES.items() if version <= protocol.min_writer_version}
        return {str(name) for name in [*protocol.writer_features, *(protocol.reader_features or ())]}

    @cached_property
    def clustering_columns(self) -> list[str]:
        """The liquid clustering columns, from the newest action that set them. delta-rs does not provide them."""
        if _CLUSTERING not in self.features:
            return []
        newest = next((domain for domain in self._domains() if domain["domain"] == "delta.clustering"), None)
        if newest is None or newest["removed"]:
            return []
        paths = json.loads(newest["configuration"])["clusteringColumns"]
        return [".".join(map(self._logical_name, path)) for path in paths]

    def _domains(self) -> Iterator[dict[str, Any]]:
        """The domain metadata of table features, newest first, from the commits and from the newest checkpoint."""
        checkpoint = Checkpoint.newest(self.location, self._storage_options, self.version)
        for version, data in self._commits():
            if checkpoint and version <= checkpoint.version:
                break
            yield from domains_of(self._parsed(actions_of, data))
        if checkpoint:
            try:
                yield from checkpoint.domains()
            except (OSError, ValueError) as error:
                raise self._unreadable(error) from error

    def _logical_name(self, physical: str) -> str:
        """A column's name in SQL. With column mapping, the log uses a physical name."""
        fields = json.loads(self._delta.schema().to_json())["fields"]
        mapped = {
            (field.get("metadata") or {}).get("delta.columnMapping.physicalName"): field["name"] for field in fields
        }
        return str(mapped.get(physical, physical))

    @property
    def created(self) -> datetime | None:
        created = self._metadata.created_time
        return None if created is None else _from_millis(created)

    @cached_property
    def columns(self) -> list[Column]:
        schema = json.loads(self._delta.schema().to_json())
        return [
            Column(
                name=field["name"],
                type=spark_type(field["type"], field.get("metadata")),
                nullable=field["nullable"],
                comment=(field.get("metadata") or {}).get("comment"),
            )
            for field in schema["fields"]
        ]

    def history(self, limit: int | None = None) -> list[dict[str, Any]]:
        """The commits as dicts, newest first, at most `limit`."""
        return list(islice(self.commits(), limit))

    def commits(self) -> Iterator[dict[str, Any]]:
        """The commits as dicts, newest first. Each is read only when the caller asks for it.

        This does not use delta-rs, which fails on the history of a clone: a clone's first commit reads version -1.
        """
        for version, data in self._commits():
            yield self._parsed(commit_info, data) | {"version": version}

    def _parsed(self, parse: Callable[[bytes], T], data: bytes) -> T:
        try:
            return parse(data)
        except ValueError as error:
            raise self._unreadable(error) from error

    def _commits(self) -> Iterator[tuple[int, bytes]]:
        storage = Storage(self.location, self._storage_options)
        for version in range(self.version, -1, -1):
            try:
                yield version, storage.read(commit_file(version))
            except NotFound:
                return  # log cleanup has deleted the older commits

    @property
    def last_modified(self) -> datetime:
        """The time of the newest commit."""
        newest = self.history(1)
        if not newest:
            raise UnreadableTable(
                "The Delta log of this table has no readable commit",
                where=self.location,
                fix="Nothing was changed. Repair or restore its `_delta_log`, or move the folder away.",
            )
        return _from_millis(newest[0]["timestamp"])

    def statistics(self) -> Statistics:
        """Files, bytes and rows of the table, from the statistics in its log."""
        try:
            return self._data_files.statistics()
        except _FAILURES as error:
            raise self._unreadable(error) from error

    def extremes(self, column: str) -> list[tuple[Any, Any]] | None:
        """The minimum and the maximum of a column in each file with values; None if the log does not have them."""
        try:
            return self._data_files.extremes(column)
        except _FAILURES as error:
            raise self._unreadable(error) from error

    @property
    def _data_files(self) -> DataFiles:
        return DataFiles(self._delta, deletion_vectors=_DELETION_VECTORS in self.features)

    @cached_property
    def mark(self) -> int | None:
        """The number of penstock's last commit on this table; None if there is no such commit."""
        return self._number_of(MARK)

    @cached_property
    def void(self) -> int | None:
        """The number of the last cancelled plan; None if no plan was cancelled."""
        return self._number_of(VOID)

    def failure_of_commit(self, error: BaseException) -> PenstockError:
        """The error of a commit without data that neither succeeded nor was refused because of another commit."""
        known = explain(str(error), self.location, self._storage_options or {}) if is_uri(self.location) else None
        return PenstockError(
            f"A commit without data failed: {known.what if known else plain(str(error))}",
            where=self.location,
            fix=known.fix if known else "Check the table's log and its permissions, and run again.",
        )

    def commit_marks(self, marks: Mapping[str, int], note: str, properties: Mapping[str, str] | None = None) -> None:
        """Commit transaction marks, and properties if there are some, without data.

        delta-rs's CommitFailedError if another commit with one of the marks was first. With properties, any commit
        since this table was opened is a conflict.
        """
        committed = CommitProperties(
            custom_metadata={"userMetadata": note},
            app_transactions=[Transaction(application, number) for application, number in marks.items()],
            max_commit_retries=0 if properties else None,
        )
        if properties:
            self._delta.alter.set_table_properties(
                dict(properties), raise_if_not_exists=False, commit_properties=committed
            )
        else:
            self._delta.create_write_transaction([], "append", self._delta.schema(), commit_properties=committed)

    @property
    def is_there(self) -> bool:
        """Whether the opened version is still in the log: the table was not dropped in the meantime."""
        return Storage(self.location, self._storage_options).exists(commit_file(self.version))

    def _number_of(self, application: str) -> int | None:
        try:
            number = self._delta.transaction_version(application)
        except _FAILURES as error:  # delta-rs reads the log only now, and the log may be gone
            raise self._unreadable(error) from error
        return None if number is None else int(number)

    def _unreadable(self, error: BaseException) -> PenstockError:
        return _unreadable(self.location, error, self._storage_options)


def _from_millis(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, tz=timezone.utc)


def _unreadable(location: str, error: BaseException, options: dict[str, str] | None = None) -> PenstockError:
    text = str(error).strip()
    reason = text.splitlines()[0]
    if "Unsupported" in reason or "not supported" in reason:
        return UnsupportedTable(
            f"This table has a newer Delta protocol than this version of penstock supports: {reason}",
            where=location,
            fix="Upgrade dbt-penstock and delta-spark, or drop the table feature.",
        )
    if is_uri(location) and is_of_store(text):
        known = explain(text, location, options or {})
        # A missing object may be of a table that is dropped now; then a second look helps. Other failures stay.
        kind = UnreadableTable if known is None and "404 Not Found" in text else PenstockError
        return kind(
            f"The Delta log of this table could not be read: {known.what if known else plain(text)}",
            where=location,
            fix=known.fix if known else "Nothing was changed. Check the location and `storage_options`.",
        )
    return UnreadableTable(
        f"The Delta log of this table can't be read: {reason}",
        where=location,
        fix="Nothing was changed. Repair or restore its `_delta_log`, or move the folder away.",
    )
