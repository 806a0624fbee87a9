"""What a Delta table's own log says, through delta-rs: never a JVM."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, TableNotFoundError

from penstock.delta.log import Checkpoint, actions_of, commit_file, domains_of
from penstock.errors import NotFound, UnreadableTable, UnsupportedTable
from penstock.sql.quoting import field_name
from penstock.storage import Storage

if TYPE_CHECKING:
    import pyarrow as pa

MARK = "penstock"
"""The application id of our transaction marks: one for every table's life, its numbers never restart."""
VOID = "penstock.void"
"""The application id that a commit carries as well when its number stands for a plan that was cancelled."""

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
"""The writer versions that had a feature before there were lists of them."""
_CHAR_TYPE = "__CHAR_VARCHAR_TYPE_STRING"


@dataclass(frozen=True)
class Column:
    """A column as Spark's SQL names it."""

    name: str
    type: str
    nullable: bool = True
    comment: str | None = None


@dataclass(frozen=True)
class Statistics:
    files: int
    bytes: int
    rows: int | None
    """None where a file was written without statistics."""


def spark_type(delta_type: Any, metadata: dict[str, Any] | None = None) -> str:
    """A type of the Delta schema as Spark's SQL writes it.

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
    """A Delta table at the version it had when it was opened.

    >>> Table.open("/lake/silver/orders").version    # doctest: +SKIP
    12
    """

    def __init__(self, location: str, delta: DeltaTable, storage_options: dict[str, str] | None = None) -> None:
        self.location = location
        self._delta = delta
        self._storage_options = storage_options

    @classmethod
    def open(cls, location: str, storage_options: dict[str, str] | None = None, *, files: bool = True) -> Table:
        """Open it at its newest version; without its files where only metadata and history are wanted."""
        try:
            delta = DeltaTable(location, storage_options=storage_options or None, without_files=not files)
            return cls(location, delta, storage_options)
        except TableNotFoundError as error:
            raise NotFound("There is no Delta table", where=location) from error
        except (DeltaError, OSError, ValueError) as error:
            raise _unreadable(location, error) from error

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
        """The versions that a reader and a writer must know."""
        protocol = self._delta.protocol()
        return protocol.min_reader_version, protocol.min_writer_version

    @cached_property
    def features(self) -> set[str]:
        """The table features that its protocol has, by name or by version."""
        protocol = self._delta.protocol()
        if protocol.writer_features is None:
            return {name for name, version in _IMPLIED_FEATURES.items() if version <= protocol.min_writer_version}
        return {str(name) for name in [*protocol.writer_features, *(protocol.reader_features or ())]}

    @cached_property
    def clustering_columns(self) -> list[str]:
        """The liquid clustering columns; delta-rs does not tell them, the newest action that set them does."""
        if _CLUSTERING not in self.features:
            return []
        newest = next((domain for domain in self._domains() if domain["domain"] == "delta.clustering"), None)
        if newest is None or newest["removed"]:
            return []
        paths = json.loads(newest["configuration"])["clusteringColumns"]
        return [".".join(map(self._logical_name, path)) for path in paths]

    def _domains(self) -> Iterator[dict[str, Any]]:
        """What features have written down for themselves, newest first: commits before a checkpoint may be gone."""
        checkpoint = Checkpoint.newest(self.location, self._storage_options, self.version)
        for version, actions in self._commits():
            if checkpoint and version <= checkpoint.version:
                break
            yield from domains_of(actions)
        if checkpoint:
            try:
                yield from checkpoint.domains()
            except (OSError, ValueError) as error:
                raise _unreadable(self.location, error) from error

    def _logical_name(self, physical: str) -> str:
        """A column's name in SQL: with column mapping the log has another."""
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
        """The commits, newest first, as the log tells them."""
        return list(islice(self.commits(), limit))

    def commits(self) -> Iterator[dict[str, Any]]:
        """The same, each read when it is asked for.

        Not by delta-rs: it gives up on the whole history of a clone, whose first commit reads version -1.
        """
        for version, actions in self._commits():
            info: dict[str, Any] = next((action["commitInfo"] for action in actions if "commitInfo" in action), {})
            yield info | {"version": version}

    def _commits(self) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        storage = Storage(self.location, self._storage_options)
        for version in range(self.version, -1, -1):
            try:
                yield version, actions_of(storage.read(commit_file(version)))
            except NotFound:
                return  # older commits were cleaned up
            except ValueError as error:
                raise _unreadable(self.location, error) from error

    @property
    def last_modified(self) -> datetime:
        """When the newest commit was made."""
        newest = self.history(1)
        if not newest:
            raise UnreadableTable("The log of this table has no commit to read", where=self.location)
        return _from_millis(newest[0]["timestamp"])

    def statistics(self) -> Statistics:
        """Files, bytes and rows, from the log's own statistics."""
        import pyarrow.compute as pc

        adds = self._files()
        records = adds.column("num_records") if "num_records" in adds.column_names else None
        rows: int | None = 0
        if records is not None and adds.num_rows:
            rows = None if records.null_count else int(pc.sum(records).as_py()) - self._deleted_rows()
        elif adds.num_rows:
            rows = None
        total = int(pc.sum(adds.column("size_bytes")).as_py() or 0) if adds.num_rows else 0
        return Statistics(files=adds.num_rows, bytes=total, rows=rows)

    def _deleted_rows(self) -> int:
        """The rows that are in files and, by deletion vectors, not in the table any more."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if _DELETION_VECTORS not in self.features:
            return 0
        kept = pa.table(self._delta.deletion_vectors().read_all())["selection_vector"]
        flags = pc.list_flatten(kept)
        return len(flags) - int(pc.sum(flags).as_py() or 0)

    def _files(self) -> pa.Table:
        """A row for each data file, with what the log knows of it."""
        import pyarrow as pa

        try:
            return pa.table(self._delta.get_add_actions(flatten=True))
        except DeltaError as error:
            raise _unreadable(self.location, error) from error

    def extremes(self, column: str) -> list[tuple[Any, Any]] | None:
        """The least and the greatest value of a column in each file that has any; None where the log does not tell."""
        if self._deleted_rows():
            return None
        adds = self._files()
        named = {name.lower(): name for name in adds.column_names}
        if (partition := named.get(f"partition.{column}".lower())) is not None:
            return [(value, value) for value in adds[partition].to_pylist() if value is not None]
        keys = [named.get(f"{kind}.{column}".lower()) for kind in ("min", "max", "null_count")]
        if not all(keys):
            return None if adds.num_rows else []
        found = []
        for row in adds.select([*keys, "num_records"]).to_pylist():
            least, most, nulls, records = row.values()
            if least is None or most is None:
                if records is None or nulls != records:
                    return None
            else:
                found.append((least, most))
        return found

    @property
    def mark(self) -> int | None:
        """The last number that penstock committed here; None where it never did."""
        return self._number_of(MARK)

    @property
    def void(self) -> int | None:
        """The last number whose plan was cancelled; None where none was."""
        return self._number_of(VOID)

    def commit_marks(self, marks: Mapping[str, int], note: str, properties: Mapping[str, str] | None = None) -> None:
        """A commit without data that carries transaction marks, and sets properties where some are given.

        It fails with delta-rs's CommitFailedError when another commit with one of the marks was first; one that sets
        properties, when the table has moved on at all.
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
        """Whether the version that was opened is still in the log, and not dropped since."""
        return Storage(self.location, self._storage_options).exists(commit_file(self.version))

    def _number_of(self, application: str) -> int | None:
        try:
            number = self._delta.transaction_version(application)
        except DeltaError as error:  # the log is read only now, and may be gone by now
            raise _unreadable(self.location, error) from error
        return None if number is None else int(number)


def _from_millis(millis: int) -> datetime:
    return datetime.fromtimestamp(millis / 1000, tz=timezone.utc)


def _unreadable(location: str, error: BaseException) -> UnreadableTable | UnsupportedTable:
    reason = str(error).strip().splitlines()[0]
    if "Unsupported" in reason or "not supported" in reason:
        return UnsupportedTable(
            f"This table was written by a newer Delta protocol than is known here: {reason}",
            where=location,
            fix="Upgrade dbt-penstock and delta-spark, or drop the table feature.",
        )
    return UnreadableTable(
        f"The Delta log of this table can't be read: {reason}",
        where=location,
        fix="Nothing was changed. Repair or restore its `_delta_log`, or move the folder away.",
    )
