"""What a run of changes did."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.protocol.report import Report


@dataclass(frozen=True)
class Merged:
    """One window that came in.

    >>> print(Merged(spans="silver.products 4 to 9", inserted=3, updated=1, deleted=2, seconds=1.1, version=7))
    silver.products 4 to 9 · 3 inserted, 1 updated, 2 deleted · 1.1 s
    """

    spans: str
    inserted: int
    updated: int
    deleted: int
    seconds: float
    version: int
    whole: str = ""
    """Why the model was computed as a whole, and compared with the table; nothing where it was not."""

    def __str__(self) -> str:
        return (
            f"{self.spans} · {self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted · "
            f"{self.seconds:.1f} s" + (f" · computed as a whole: {self.whole}" if self.whole else "")
        )


@dataclass
class MergeReport(Report):
    """What a run did."""

    windows: list[Merged] = field(default_factory=list)
    shape: str = ""
    """How the table is kept: by rows, by keys, or as a whole."""

    @property
    def rows_inserted(self) -> int:
        return sum(window.inserted for window in self.windows)

    @property
    def rows_updated(self) -> int:
        return sum(window.updated for window in self.windows)

    @property
    def rows_deleted(self) -> int:
        return sum(window.deleted for window in self.windows)

    @property
    def nothing_new(self) -> bool:
        return not self.windows
