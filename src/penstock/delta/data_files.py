"""The data files of a Delta table, with the statistics that the table's log has for them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

if TYPE_CHECKING:
    import pyarrow as pa


SMALL = 16 * 1024 * 1024
"""Bytes. Delta's OPTIMIZE joins files up to 1 GB, but a file of this size is read fast enough."""


@dataclass(frozen=True)
class Statistics:
    """Files, bytes and rows of a table."""

    files: int
    bytes: int
    rows: int | None
    """None if the log has no row count for one of the files."""
    small: int = 0
    """Files smaller than SMALL that OPTIMIZE could join: alone in its partition, a small file stays as it is."""
    deleted: int = 0
    """Rows in the files that deletion vectors mark as deleted."""


class DataFiles:
    """The data files of one version of a table. Its methods raise delta-rs's DeltaError if the log can't be read."""

    def __init__(self, delta: DeltaTable, *, deletion_vectors: bool) -> None:
        self._delta = delta
        self._deletion_vectors = deletion_vectors

    def statistics(self) -> Statistics:
        """Files, bytes and rows of the table, without rows that are deleted by deletion vectors."""
        import pyarrow.compute as pc

        adds = self._adds()
        records = adds.column("num_records") if "num_records" in adds.column_names else None
        deleted = self._deleted_rows() if adds.num_rows else 0
        rows: int | None = 0
        if records is not None and adds.num_rows:
            rows = None if records.null_count else int(pc.sum(records).as_py()) - deleted
        elif adds.num_rows:
            rows = None
        total = int(pc.sum(adds.column("size_bytes")).as_py() or 0) if adds.num_rows else 0
        return Statistics(adds.num_rows, total, rows, _small(adds), deleted)

    def extremes(self, column: str) -> list[tuple[Any, Any]] | None:
        """The minimum and the maximum of a column in each file with values; None if the log does not have them."""
        if self._deleted_rows():
            return None
        adds = self._adds()
        names = {name.lower(): name for name in adds.column_names}
        if (partition := names.get(f"partition.{column}".lower())) is not None:
            return [(value, value) for value in adds[partition].to_pylist() if value is not None]
        keys = [names.get(f"{kind}.{column}".lower()) for kind in ("min", "max", "null_count")]
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

    def _adds(self) -> pa.Table:
        """One row for each data file, with its statistics."""
        import pyarrow as pa

        # Not pa.table(), which imports pandas: half a second of a command that reads logs alone.
        return pa.RecordBatchReader.from_stream(self._delta.get_add_actions(flatten=True)).read_all()

    def _deleted_rows(self) -> int:
        """The number of rows in the files that deletion vectors mark as deleted."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._deletion_vectors:
            return 0
        kept = pa.table(self._delta.deletion_vectors().read_all())["selection_vector"]
        flags = pc.list_flatten(kept)
        return len(flags) - int(pc.sum(flags).as_py() or 0)


def _small(adds: pa.Table) -> int:
    """How many small files share a partition with another small file."""
    partitions = [name for name in adds.column_names if name.startswith("partition.")]
    found: Counter[tuple[Any, ...]] = Counter()
    # Row by row: a comparison by pyarrow would import pandas.
    for size, *values in zip(*(adds[name].to_pylist() for name in ("size_bytes", *partitions)), strict=True):
        if size < SMALL:
            found[tuple(values)] += 1
    return sum(number for number in found.values() if number > 1)
