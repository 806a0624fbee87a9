"""The report of a run of batches: for callers, and a line for each batch in the log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from penstock.files.records import QUARANTINED, SKIPPED
from penstock.files.roots import located
from penstock.protocol.report import Report
from penstock.secrets import logger
from penstock.wording import count, size

if TYPE_CHECKING:
    from penstock.files.plan import FilePlan
    from penstock.files.progress import Progress
    from penstock.protocol.job import Running
    from penstock.protocol.state import State
    from penstock.sql.names import Name

log = logger("penstock.files")


@dataclass(frozen=True)
class Batch:
    """One batch that was ingested.

    >>> print(Batch(number=2, of=20, place=3, files=50, bytes=1_600_000, rows=100_000, seconds=1.1, version=4))
    batch 3 of 20 · 50 files · 1.6 MB · 100,000 rows · 1.1 s
    """

    number: int
    place: int
    """Its position among the batches of this run, from 1 on."""
    of: int
    """How many batches this run has, as far as it knows."""
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
    """The outcome of a run."""

    batches: list[Batch] = field(default_factory=list)
    skipped: int = 0
    """Files that were recorded without reading them: empty ones, and those before `starting_timestamp`."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Unreadable files that were recorded and left out, each with the reason."""
    waiting: int = 0
    """Files younger than the safety buffer; a later run ingests them."""

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


class FileReporter:
    """Reports the plans of one run."""

    def __init__(
        self,
        name: Name,
        report: IngestReport,
        progress: Progress,
        *,
        on_batch: Callable[[Batch], None] | None,
        warn: Callable[[str], None],
    ) -> None:
        self._name = name
        self._report = report
        self._progress = progress
        self._on_batch = on_batch or (lambda batch: log.info("%s: %s", name, batch))
        self._warn = warn

    def committed(self, running: Running[FilePlan], state: State, left: int) -> None:
        """Report a plan that was run, if it is in the table; `left` is how many batches come after it."""
        plan = running.plan
        if state.table is None or state.mark is None:
            return
        if state.mark < plan.number or (state.last_is_void and state.mark == plan.number):
            return
        self._report.skipped += plan.with_status(SKIPPED).num_rows
        for row in located(plan.with_status(QUARANTINED)).to_pylist():
            self._report.quarantined[row["path"]] = row["reason"]
            self._warn(f"{row['path']} can't be read and was left out: {row['reason']}")
        if running.note:
            self._batch_committed(running, state, left)

    def _batch_committed(self, running: Running[FilePlan], state: State, left: int) -> None:
        plan, metrics = running.plan, running.outcome(state)
        if metrics is None:
            log.info("%s: another run has committed batch %d", self._name, plan.batch_id)
            return
        place = len(self._report.batches) + 1
        batch = Batch(
            number=plan.batch_id,
            place=place,
            of=place + left,
            files=plan.read.num_rows,
            bytes=pc.sum(plan.read["size"]).as_py() or 0,
            rows=metrics.rows_inserted,
            seconds=running.seconds,
            version=metrics.version,
        )
        self._report.batches.append(batch)
        self._progress.clear()
        self._on_batch(batch)
        self._progress.show(batch.place, batch.of)

    def warn_across_rows(self, part: str | None) -> None:
        """Warns once if the SELECT aggregates or compares rows: it sees one batch only."""
        if part is not None:
            self._warn(
                f"{self._name} has {part}: it is computed within each batch of files, not across batches, so the result "
                "depends on how the files are split into batches"
            )

    def close(self) -> None:
        """Remove the progress bar."""
        self._progress.clear()
