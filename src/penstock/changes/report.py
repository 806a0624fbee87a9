"""The report of a run of changes."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.protocol.report import Report


@dataclass(frozen=True)
class Merged:
    """One commit of a run: which versions came in, and how many rows it changed.

    >>> print(Merged(ranges="silver.products 4 to 9", inserted=3, updated=1, deleted=2, seconds=1.1, version=7))
    silver.products 4 to 9 · 3 inserted, 1 updated, 2 deleted · 1.1 s
    """

    ranges: str
    inserted: int
    updated: int
    deleted: int
    seconds: float
    version: int
    whole: str = ""
    """Why the model was computed as a whole and compared with the table; empty if it was not."""

    def __str__(self) -> str:
        return (
            f"{self.ranges} · {self.inserted:,} inserted, {self.updated:,} updated, {self.deleted:,} deleted · "
            f"{self.seconds:.1f} s" + (f" · computed as a whole: {self.whole}" if self.whole else "")
        )


@dataclass
class MergeReport(Report):
    """The commits of a run, and the way in which the table is kept."""

    ranges: list[Merged] = field(default_factory=list)
    """The commits of the run, one for each version range."""
    way: str = ""
    """The way in which the table is kept: `rows`, `keys` or `whole`."""

    @property
    def shape(self) -> str:
        """The same as `way`."""
        return self.way

    @property
    def windows(self) -> list[Merged]:
        """The same as `ranges`."""
        return self.ranges

    @property
    def rows_inserted(self) -> int:
        return sum(merged.inserted for merged in self.ranges)

    @property
    def rows_updated(self) -> int:
        return sum(merged.updated for merged in self.ranges)

    @property
    def rows_deleted(self) -> int:
        return sum(merged.deleted for merged in self.ranges)

    @property
    def nothing_new(self) -> bool:
        return not self.ranges
