"""What a run of batches did, for people."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.protocol.report import Report


@dataclass(frozen=True)
class Batch:
    """One batch that came in.

    >>> print(Batch(number=2, of=20, place=3, files=50, bytes=1_600_000, rows=100_000, seconds=1.1, version=4))
    batch 3 of 20 · 50 files · 1.6 MB · 100,000 rows · 1.1 s
    """

    number: int
    place: int
    of: int
    files: int
    bytes: int
    rows: int
    seconds: float
    version: int

    def __str__(self) -> str:
        return (
            f"batch {self.place} of {self.of} · {count(self.files, 'file')} · {size(self.bytes)} · "
            f"{count(self.rows, 'row')} · {self.seconds:.1f} s"
        )


@dataclass
class IngestReport(Report):
    """What a run did."""

    batches: list[Batch] = field(default_factory=list)
    skipped: int = 0
    """Files recorded as not to be read: empty ones, and those before `starting_timestamp`."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Unreadable files that were recorded and left out, each with its reason."""
    waiting: int = 0
    """Files younger than the safety buffer, left for the next run."""

    @property
    def files(self) -> int:
        return sum(batch.files for batch in self.batches)

    @property
    def bytes(self) -> int:
        return sum(batch.bytes for batch in self.batches)

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)

    @property
    def nothing_new(self) -> bool:
        return not self.batches


def count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(number: int) -> str:
    """
    >>> size(999), size(1_600_000)
    ('999 B', '1.6 MB')
    """
    value = float(number)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if value < 1000 or unit == "TB":
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    raise AssertionError("unreachable")
