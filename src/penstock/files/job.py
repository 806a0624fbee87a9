"""The job of a file model: ingests new files into its table, each exactly once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from penstock.delta.layout import Layout
from penstock.errors import PenstockError, StatementError
from penstock.files.batch import Batches
from penstock.files.config import FileSource
from penstock.files.landing import Landing
from penstock.files.ledger import Ledger
from penstock.files.plan import KIND, FilePlan
from penstock.files.progress import Progress
from penstock.files.query import FileQuery
from penstock.files.reading.bad_files import BadFiles
from penstock.files.reading.reader import Reader, Reading
from penstock.files.records import LINES, summary_of
from penstock.files.report import Batch, FileReporter, IngestReport
from penstock.files.source import Listings, none
from penstock.files.tidying import Tidier
from penstock.files.validity import changed_files, unlike_config
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import digest
from penstock.protocol.job import Contract, Job, Running
from penstock.protocol.plan import InvalidPlan, StartOver, new_ledger
from penstock.protocol.run import run_job
from penstock.protocol.schema import adapt
from penstock.protocol.state import State
from penstock.protocol.target import replaces
from penstock.secrets import logger
from penstock.spark.backend import Backend
from penstock.sql.names import Name
from penstock.steps import Step, no_step

log = logger("penstock.files")


def ingest(
    lake: LakeFolder,
    name: Name,
    source: FileSource,
    select: str,
    *,
    runner: Backend,
    full_refresh: bool = False,
    max_batches: int | None = None,
    table: Layout | None = None,
    listings: Listings | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    warn: Callable[[str], None] = log.warning,
    contract: Contract | None = None,
    step: Step = no_step,
) -> IngestReport:
    """Ingest every new file into a table, batch by batch, each file exactly once. No Spark starts if no file is new.

    Each batch is one commit. `contract` is called with the SELECT over a batch before anything of the batch is written.
    `max_batches` ends the run earlier; the next run continues from there.
    """
    anew = replaces(lake, name, full_refresh=full_refresh)
    job = FileJob(
        lake,
        name,
        source,
        FileQuery.read(select, str(name)),
        runner,
        table or Layout(),
        listings=listings,
        max_batches=max_batches,
        on_batch=on_batch,
        warn=warn,
        contract=contract,
        step=step,
    )
    try:
        run_job(job, replace=anew)
    finally:
        job.close()
    return job.report


class FileJob(Job[FilePlan]):
    """Ingests the new files of one model into its table. A plan is a batch of files."""

    kind = KIND
    report: IngestReport

    def __init__(
        self,
        lake: LakeFolder,
        name: Name,
        source: FileSource,
        query: FileQuery,
        spark: Backend,
        layout: Layout,
        *,
        listings: Listings | None = None,
        max_batches: int | None = None,
        on_batch: Callable[[Batch], None] | None = None,
        warn: Callable[[str], None] = log.warning,
        contract: Contract | None = None,
        step: Step = no_step,
    ) -> None:
        super().__init__(lake, name, spark, layout, IngestReport(), warn=warn, contract=contract, step=step)
        self.source = source
        self.query = query
        self._max_batches = max_batches
        self._ledger = Ledger(self.journal)
        self._tidier = Tidier(
            self.journal, self._ledger, source.source_compaction_interval, source.source_retention_files, step
        )
        self._landing = Landing(name, source, listings or Listings(lake.storage_options), self._ledger, self.warn)
        self._reader = Reader(name, source, query, spark, lake.storage_options)
        self._batches = self._make_batches()
        self._reporter = FileReporter(name, self.report, Progress(str(name)), on_batch=on_batch, warn=self.warn)
        self._running: Running[FilePlan] | None = None
        """The plan that was run last, until it is reported."""
        self._tidied: int | None = None
        """The mark when the ledger was last tidied up; None before that."""
        self._void_reason: str | None = None
        """Why this run's last plan was cancelled."""
        self._reporter.warn_across_rows(self._reader.across_rows)

    def _make_batches(self) -> Batches:
        return Batches(self.location, self.source, self._reader, self._ledger, self.spark, self.step)

    def close(self) -> None:
        """Drop the batches that were read and not written."""
        self._reporter.close()
        self._batches.close()

    # The protocol: catch up, plan, prepare, run

    def decode(self, number: int, data: bytes, where: str) -> FilePlan:
        plan = FilePlan.from_bytes(number, data, where)
        return plan.named(plan.roots)

    def catch_up(self, state: State, *, replace: bool) -> None:
        self.report.version = None if state.table is None else state.table.version
        if _is_unclaimed(state) and not replace:
            return
        if not replace:
            self._follow(state)
        if self._running is not None:
            running, self._running = self._running, None
            self._reporter.committed(running, state, self._landing.batches)
        before, self._tidied = self._tidied, -1 if state.mark is None else state.mark
        if replace or state.table is None or state.mark is None:
            return
        self._summarize(state)
        # Cancelled plans count too: they are files of the ledger as well.
        if before is not None and before != state.mark:
            self._tidier.tidy(state)

    def plan(self, number: int, state: State, *, replace: bool) -> FilePlan | None:
        if _is_unclaimed(state) and not replace:
            return self._planned(number, state, none(LINES), creates=True)
        if self._max_batches is not None and len(self.report.batches) >= self._max_batches:
            return None
        selection = self._landing.look(state, replace=replace)
        self.report.waiting = selection.waiting
        files, aside = selection.backlog.head(), selection.aside
        creates = replace or state.mark is None
        if files.num_rows == 0 and (creates or aside.num_rows == 0):
            # A table can't be created from no file.
            if replace and state.table is not None:
                self.warn(f"{self.name} stays as it is: there is no file to build it from")
            return None
        return self._planned(number, state, pa.concat_tables([files, aside]), creates=creates)

    def prepare(self, plan: FilePlan, state: State) -> FilePlan | StartOver:
        if plan.replace and plan.read.num_rows == 0:
            return plan
        while plan.read.num_rows:
            try:
                plan, reading = self._read(plan, state)
            except BadFiles as error:
                plan = self._quarantined(plan, error)
                continue
            if self._fit_table(reading, state):
                return StartOver("the table's columns were changed to fit the model")
            self._warn_of_values(reading)
            return plan
        return replace(plan, schema=self._ledger.schema, format=self._ledger.format)

    def run(self, plan: FilePlan, state: State) -> InvalidPlan | None:
        if plan.read.num_rows == 0:
            return self._run_without_files(plan, state)
        running = Running(plan, state.note(plan.number))
        reason = unlike_config(plan, self.source) or self._changed_file(plan)
        if reason is not None:
            return self._invalid(reason)
        _, reading = self._read(plan, state)
        self._warn_of_values(reading)
        self._running = running
        self._batches.read_ahead(self._landing.second(), replace(plan, roots=self._landing.roots), state)
        self.step("write")
        try:
            self._write(plan, reading, running.note, state)
        except StatementError as error:
            reason = None if error.is_conflict else self._changed_file(plan) or self._unreadable_file(plan, state)
            if reason is None:
                raise
            return self._invalid(reason)
        finally:
            self._batches.drop()
        self.step("committed")
        return None

    # Catching up

    def _follow(self, state: State) -> None:
        """Read the records that were committed since the last time."""
        covered = self._ledger.covers(state)
        added = self._ledger.follow(state)
        if covered or (self._running is not None and self._running.plan.number == state.generation):
            self._landing.remove(added)
        else:
            # Another run has replaced the table: other files may be in it now.
            self._landing.forget()

    def _summarize(self, state: State) -> None:
        records = self._ledger.records
        self.step("summary")
        self.journal.summarize(state, summary_of(records))

    # Planning

    def _planned(self, number: int, state: State, lines: pa.Table, *, creates: bool) -> FilePlan:
        """The plan of these lines. Without lines, it claims a table that others created, as the table is."""
        voided = None
        if state.mark is not None and state.last_is_void and not creates:
            voided = (state.mark, self._void_reason or "by another run")
        return FilePlan(
            number=number,
            generation=number if creates else state.generation,
            lines=lines,
            replace=creates,
            roots=self._landing.roots,
            voided=voided,
            ledger=new_ledger() if creates else state.ledger,
            model=digest(self.query.text),
            selection=self.source.selection(),
        )

    # Preparing and running

    def _read(self, plan: FilePlan, state: State) -> tuple[FilePlan, Reading]:
        """The plan with its schema, and its files under the model's SELECT; nothing is written yet."""
        plan, reading = self._batches.read(plan, state)
        self._reporter.warn_across_rows(self._reader.across_rows)
        self.check_contract(reading.query, reading.made)
        return plan, reading

    def _warn_of_values(self, reading: Reading) -> None:
        """Warn about values that the table stores in another way than the query returns them."""
        for text in reading.warnings:
            self.warn(text)

    def _fit_table(self, reading: Reading, state: State) -> bool:
        """Change the table's columns if `sync_all_columns` asks for it; returns whether anything was changed."""
        difference = self._batches.misfit(reading)
        if difference is None:
            return False
        self._batches.drop()
        policy = self.source.on_schema_change
        adapt(self.lake, self.name, difference, policy, self.spark, state.note("columns"), self.warn)
        return True

    def _write(self, plan: FilePlan, reading: Reading, note: str, state: State) -> None:
        if plan.replace:
            self.create_table(plan, reading.query, note)
        else:
            self._batches.append(plan, reading, note, state)

    def _run_without_files(self, plan: FilePlan, state: State) -> InvalidPlan | None:
        if not plan.replace:
            self.journal.commit_empty(plan.number, state)
        elif _is_unclaimed(state):
            self.journal.claim(plan, state)
        else:
            return InvalidPlan("the empty table that it was to claim does not exist any more")
        self._running = Running(plan)
        return None

    # Files that changed, and files that can't be read

    def _changed_file(self, plan: FilePlan) -> str | None:
        """Why a plan can't run: one of its files has vanished or changed."""
        for path, how in self._changed_files(plan).items():
            return f"{path} {how} after it was planned"
        return None

    def _changed_files(self, plan: FilePlan) -> dict[str, str]:
        return changed_files(plan, self.lake.storage_options)

    def _unreadable_file(self, plan: FilePlan, state: State) -> str | None:
        """After a failed write: why the plan can't run. The next plan leaves unreadable files out."""
        if self.source.on_bad_file != "quarantine":
            return None
        bad = self._batches.unreadable(plan, state)
        self._landing.quarantine.add(bad, plan.roots)
        return str(BadFiles(bad)) if bad else None

    def _quarantined(self, plan: FilePlan, error: BadFiles) -> FilePlan:
        """The plan without its unreadable files; it has not been written yet."""
        self._landing.quarantine.add(error.files, plan.roots)
        plan = self._landing.quarantine.taken_out_of(plan)
        if plan.replace and plan.read.num_rows == 0:
            raise PenstockError(
                f"None of the files to create the table from can be read: {error}", where=str(self.name)
            )
        return plan

    def _invalid(self, reason: str) -> InvalidPlan:
        self._void_reason = reason
        self._landing.list_again()
        return InvalidPlan(reason)


def _is_unclaimed(state: State) -> bool:
    """Whether others created the table, and no commit of ours is on it."""
    return state.table is not None and state.mark is None
