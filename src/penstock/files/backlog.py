"""The files that are still to be ingested, oldest first, and how they are cut into batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from penstock.files.records import KEY, without


class Backlog:
    """The batches that are still to be ingested. A batch has at most `max_files` files and `max_bytes` bytes."""

    def __init__(self, files: pa.Table, max_files: int, max_bytes: int | None) -> None:
        """`files` has the columns of a plan's lines."""
        self._max_files = max_files
        self._max_bytes = max_bytes
        self._cut(files)

    def _cut(self, files: pa.Table) -> None:
        self._files = files.sort_by([("modificationTime", "ascending"), ("path", "ascending")]).combine_chunks()
        self._ends = list(_cuts(self._files["size"], self._max_files, self._max_bytes))
        self._start = 0
        self._next = 0

    @property
    def batches(self) -> int:
        """How many batches are left."""
        return len(self._ends) - self._next

    @property
    def files(self) -> pa.Table:
        """The files that are left, oldest first."""
        return self._files.slice(self._start)

    def head(self) -> pa.Table:
        """The files of the next batch; empty if no batch is left."""
        if self.batches == 0:
            return self._files.slice(0, 0)
        return self._files.slice(self._start, self._ends[self._next] - self._start)

    def second(self) -> pa.Table:
        """The files of the batch after the next one; empty if there is none."""
        if self.batches < 2:
            return self._files.slice(0, 0)
        start = self._ends[self._next]
        return self._files.slice(start, self._ends[self._next + 1] - start)

    def remove(self, records: pa.Table) -> None:
        """Take out the files that were ingested, by this run or by another one."""
        if records.num_rows == 0 or self.batches == 0:
            return
        head = self.head()
        if head.num_rows == records.num_rows and head.select(KEY).equals(records.select(KEY).combine_chunks()):
            self._start = self._ends[self._next]
            self._next += 1
        else:
            self._cut(without(self._files.slice(self._start), records))


def _cuts(sizes: pa.ChunkedArray, max_files: int, max_bytes: int | None) -> Iterator[int]:
    """The index after each batch. A batch ends at the first limit, but has at least one file."""
    total = len(sizes)
    if max_bytes is None:
        yield from (min(end, total) for end in range(max_files, total + max_files, max_files))
        return
    files = used = 0
    for index, size in enumerate(sizes.to_pylist()):
        if files and (files >= max_files or used + size > max_bytes):
            yield index
            files = used = 0
        files += 1
        used += size
    if files:
        yield total
