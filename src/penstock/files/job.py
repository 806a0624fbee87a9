"""Files into a table, each exactly once: the job of a file model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from penstock.delta.layout import Layout
from penstock.errors import PenstockError, StatementError
from penstock.files.batch import Batches
from penstock.files.config import FileSource
from penstock.files.landing import Landing
from penstock.files.ledger import Ledger
from penstock.files.plan import KIND, LINES, QUARANTINED, SKIPPED, FilePlan
from penstock.files.progress import Progress
from penstock.files.query import Model
from penstock.files.reading.reader import BadFiles, Reader, Reading
from penstock.files.report import Batch, IngestReport
from penstock.files.roots import located
from penstock.files.selection import set_aside
from penstock.files.source import Listings, matching, none
from penstock.files.status import changed
from penstock.lake.folder import LakeFolder
from penstock.lake.relations import digest
from penstock.protocol.job import Contract, Job, Running
from penstock.protocol.plan import InvalidPlan, new_ledger
from penstock.protocol.run import run_job
from penstock.protocol.schema import adapt
from penstock.protocol.state import State
from penstock.secrets import logger, redact
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
    """Bring every new file into a table, batch by batch, each exactly once. No Spark starts if no file is new.

    `contract` is called with the SELECT over a batch before anything of the batch is written. `max_batches` ends the run
    earlier; the next run continues from there.
    """
    lake.check_writable()
    found = lake.find(name)
    if found is not None and found.kind == "files":
        raise PenstockError(f"{name} stands for files elsewhere, and can't be a table", where=found.location)
    job = FileJob(
        lake,
        name,
        source,
        Model.read(select, str(name)),
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
        run_job(job, replace=full_refresh or (found is not None and found.kind == "view"))
    finally:
        job.close()
    return job.report


class FileJob(Job[FilePlan]):
    """Brings the new files of one model into its table: a plan is a batch of files."""

    kind = KIND
    report: IngestReport

    def __init__(
        self,
        lake: LakeFolder,
        name: Name,
        source: FileSource,
        query: Model,
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
        self._on_batch = on_batch or (lambda batch: log.info("%s: %s", name, batch))
        self._ledger = Ledger(self.journal)
        self._landing = Landing(name, source, listings or Listings(lake.storage_options), self._ledger, self.warn)
        self._reader = Reader(name, source, query, spark, lake.storage_options)
        self._batches = self._make_batches()
        self._progress = Progress(str(name))
        self._running: Running[FilePlan] | None = None
        """The plan that was run last, until its outcome is reported."""
        self._tidied: int | None = None
        """The mark when the ledger was last tidied; None before that."""
        self._void_reason: str | None = None
        self._warn_across_rows()

    def _make_batches(self) -> Batches:
        return Batches(self.location, self.source, self._reader, self._ledger, self.spark, self.step)

    def close(self) -> None:
        """Let go of what was read and not written."""
        self._progress.clear()
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
        before, self._tidied = self._tidied, -1 if state.mark is None else state.mark
        self._report(state)
        if replace or state.table is None or state.mark is None:
            return
        self._summarize(state)
        if before is not None and before != state.mark:
            # Cancelled plans count too: they are records as well.
            source = self.source
            self._ledger.tidy(state, source.source_compaction_interval, source.source_retention_files, self.step)

    def plan(self, number: int, state: State, *, replace: bool) -> FilePlan | None:
        if _is_unclaimed(state) and not replace:
            return self._claim(number)
        if self._max_batches is not None and len(self.report.batches) >= self._max_batches:
            return None
        selection = self._landing.look(state, replace=replace)
        self.report.waiting = selection.waiting
        files, aside = selection.backlog.head(), selection.aside
        made = replace or state.mark is None
        if files.num_rows == 0 and (made or aside.num_rows == 0):
            # Without a file to read there is nothing that a table could be made from.
            if replace and state.table is not None:
                self.warn(f"{self.name} stays as it is: there is no file to make it anew from")
            return None
        voided = (state.mark, self._void_reason or "by another run") if state.mark is not None else None
        return FilePlan(
            number=number,
            generation=number if made else state.generation,
            lines=pa.concat_tables([files, aside]),
            replace=made,
            roots=self._landing.roots,
            voided=voided if state.last_is_void and not made else None,
            ledger=new_ledger() if made else state.ledger,
            model=digest(self.query.text),
        )

    def prepare(self, plan: FilePlan, state: State) -> FilePlan | None:
        if plan.replace and plan.read.num_rows == 0:
            return plan
        while plan.read.num_rows:
            try:
                plan, reading = self._read(plan, state)
            except BadFiles as error:
                plan = self._quarantine(plan, error)
                continue
            if self._fit_table(reading, state):
                return None
            self._warn_of_values(reading)
            return plan
        return replace(plan, schema=self._ledger.schema, folders=self._ledger.folders, format=self._ledger.format)

    def run(self, plan: FilePlan, state: State) -> InvalidPlan | None:
        if plan.read.num_rows == 0:
            return self._run_without_files(plan, state)
        running = Running(plan, state.note(plan.number))
        reason = self._unlike_config(plan) or self._changed_file(plan)
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
            if error.is_conflict:
                raise
            reason = self._changed_file(plan) or self._unreadable_file(plan, state)
            if reason is None:
                raise
            return self._invalid(reason)
        finally:
            self._batches.drop()
        self.step("committed")
        return None

    # Planning

    def _follow(self, state: State) -> None:
        """Read what came into the ledger since the last time."""
        covered = self._ledger.covers(state)
        added = self._ledger.follow(state)
        if covered or (self._running is not None and self._running.plan.number == state.generation):
            self._landing.remove(added)
        else:
            # Another run has replaced the table: other files may be in now.
            self._landing.forget()

    def _claim(self, number: int) -> FilePlan:
        """The plan by which an empty table that others made becomes ours, as it is. Batches come after it."""
        return FilePlan(
            number=number,
            generation=number,
            lines=none(LINES),
            replace=True,
            roots=self._landing.roots,
            ledger=new_ledger(),
            model=digest(self.query.text),
        )

    # Running

    def _read(self, plan: FilePlan, state: State) -> tuple[FilePlan, Reading]:
        """The plan with its schema, and its files under the model's SELECT; nothing is written yet."""
        plan, reading = self._batches.read(plan, state)
        self._warn_across_rows()
        self.check_contract(reading.query, reading.made)
        return plan, reading

    def _warn_of_values(self, reading: Reading) -> None:
        """Warn of values that the table stores other than the query makes them."""
        for text in reading.warnings:
            self.warn(text)

    def _fit_table(self, reading: Reading, state: State) -> bool:
        """Change the table's columns where `sync_all_columns` asks for it; whether anything was changed."""
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
            return InvalidPlan("the empty table that it was to take over is not there any more")
        self._running = Running(plan)
        return None

    # What may be wrong with a file

    def _unlike_config(self, plan: FilePlan) -> str | None:
        """Why a plan to create the table is not run: an earlier run with another config has left it."""
        if not plan.replace:
            return None
        files = located(plan.read)
        for path in files["path"].to_pylist():
            if not any(path.startswith(root.rstrip("/") + "/") for root in self.source.source_roots):
                return f"{path} is below none of the roots that the model has now"
        if matching(files, self.source).num_rows < files.num_rows:
            return "it has files that the model's patterns leave out now"
        return None

    def _changed_file(self, plan: FilePlan) -> str | None:
        """Why a plan cannot run: one of its files is gone, or is no longer as it was listed."""
        for path, why in self._changed(plan).items():
            return f"{path} {why} after it was planned"
        return None

    def _changed(self, plan: FilePlan) -> dict[str, str]:
        return changed(located(plan.read), plan.roots.roots, self.lake.storage_options)

    def _unreadable_file(self, plan: FilePlan, state: State) -> str | None:
        """After a failure: unreadable files are left out of the next plan, where `on_bad_file` says so."""
        if self.source.on_bad_file != "quarantine":
            return None
        bad = self._batches.unreadable(plan, state)
        self._landing.bad |= {plan.roots.known_as(path): redact(reason) for path, reason in bad.items()}
        return str(BadFiles(bad)) if bad else None

    def _quarantine(self, plan: FilePlan, error: BadFiles) -> FilePlan:
        """The plan with its unreadable files recorded as such; it has not been written yet."""
        found = {plan.roots.known_as(path): redact(reason) for path, reason in error.files.items()}
        self._landing.bad |= found
        bad = pc.is_in(plan.lines["path"], pa.array(list(found), pa.string()))
        aside = set_aside(plan.lines.filter(bad), self._landing.bad)
        plan = replace(plan, lines=pa.concat_tables([plan.lines.filter(pc.invert(bad)), aside]))
        if plan.replace and plan.read.num_rows == 0:
            raise PenstockError(
                f"None of the files that the table would be made from can be read: {error}", where=str(self.name)
            )
        return plan

    def _invalid(self, reason: str) -> InvalidPlan:
        self._void_reason = reason
        self._landing.list_again()
        return InvalidPlan(reason)

    # Reporting

    def _warn_across_rows(self) -> None:
        """As soon as the text, or Spark's plan, shows that the model looks across rows."""
        if self._reader.across_rows is not None:
            self.warn(
                f"{self.name} has {self._reader.across_rows}: it holds within each batch of files, not across batches, "
                "so the result depends on how the files were cut"
            )

    def _report(self, state: State) -> None:
        """Report the plan that was run last, if it is in the table."""
        running, self._running = self._running, None
        if running is None or state.table is None or state.mark is None:
            return
        plan = running.plan
        if state.mark < plan.number or (state.last_is_void and state.mark == plan.number):
            return
        self.report.skipped += plan.with_status(SKIPPED).num_rows
        for row in located(plan.with_status(QUARANTINED)).to_pylist():
            self.report.quarantined[row["path"]] = row["reason"]
            self.warn(f"{row['path']} can't be read and was left out: {row['reason']}")
        if running.note:
            self._report_batch(running, state)

    def _report_batch(self, running: Running[FilePlan], state: State) -> None:
        plan, metrics = running.plan, running.outcome(state)
        if metrics is None:
            log.info("%s: batch %d came in by another run", self.name, plan.batch_id)
            return
        place = len(self.report.batches) + 1
        batch = Batch(
            number=plan.batch_id,
            place=place,
            of=max(place, len(self.report.batches) + self._landing.batches),
            files=plan.read.num_rows,
            bytes=pc.sum(plan.read["size"]).as_py() or 0,
            rows=metrics.rows_inserted,
            seconds=running.seconds,
            version=metrics.version,
        )
        self.report.batches.append(batch)
        self._progress.clear()
        self._on_batch(batch)
        self._progress.show(batch.place, batch.of)

    def _summarize(self, state: State) -> None:
        records = self._ledger.records
        self.step("summary")
        facts = {
            "modifiedTime": pc.max(records["modificationTime"]).as_py(),
            "files": records.num_rows,
            "bytes": pc.sum(records["size"]).as_py() or 0,
        }
        self.journal.summarize(state, facts)


def _is_unclaimed(state: State) -> bool:
    """Whether there is a table that others made, without a commit of ours."""
    return state.table is not None and state.mark is None
