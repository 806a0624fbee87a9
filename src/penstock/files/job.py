"""Files into a table, each exactly once: the work that the journal drives."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.delta.layout import Layout
from penstock.delta.table import MARK, Column
from penstock.errors import PenstockError, StatementError, from_spark
from penstock.files.config import FileSource
from penstock.files.ledger import Ledger
from penstock.files.plan import KIND, LINES, QUARANTINED, RECORDS, REPLACED, SKIPPED, FilePlan, without
from penstock.files.progress import Progress
from penstock.files.query import Model
from penstock.files.reading.frame import Shape
from penstock.files.reading.reader import BadFiles, Reader, Reading, Request
from penstock.files.report import Batch, IngestReport, count
from penstock.files.roots import Roots, below, located
from penstock.files.selection import Selection, Selector, set_aside
from penstock.files.source import Listings, matching, none
from penstock.files.status import changed
from penstock.lake.relations import digest
from penstock.protocol.journal import (
    Journal,
    Lost,
    Running,
    State,
    Step,
    Unrunnable,
    lost_a_race,
    new_ledger,
    no_step,
    properties_of,
)
from penstock.protocol.schema import APPEND, SYNC, Difference, adapt
from penstock.secrets import logger, redact
from penstock.spark.internals.jvm import java_class
from penstock.spark.internals.transaction import Transaction, commit_marks, on_sql
from penstock.sql.names import Name
from penstock.sql.quoting import literal
from penstock.storage import is_uri

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake.lake import Lake
    from penstock.spark.runner import Runner

log = logger("penstock.files")


def ingest(
    lake: Lake,
    name: Name,
    source: FileSource,
    select: str,
    *,
    runner: Runner | None = None,
    full_refresh: bool = False,
    max_batches: int | None = None,
    table: Layout | None = None,
    listings: Listings | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    warn: Callable[[str], None] = log.warning,
    contract: Callable[[str], None] | None = None,
    step: Step = no_step,
) -> IngestReport:
    """Bring every new file in, batch by batch, each exactly once; no Spark is started when none is new.

    `contract` is given the SELECT over a batch's files before anything of the batch is written, and raises where its
    columns are not those that were agreed on.
    `max_batches` ends the run earlier; the next goes on from there.
    """
    lake.check_writable()
    model = Model.read(select, str(name))
    work = FileWork(lake, name, source, model, runner, table or Layout(), listings, step, warn)
    work.contract = contract
    work.max_batches = max_batches
    work.on_batch = on_batch or (lambda batch: log.info("%s: %s", name, batch))
    found = lake.find(name)
    if found is not None and found.kind == "files":
        raise PenstockError(f"{name} stands for files elsewhere, and can't be a table", where=found.location)
    try:
        work.journal.drive(work, replace=full_refresh or (found is not None and found.kind == "view"), step=step)
    finally:
        work.close()
    return work.report


class FileWork:
    """Plans and runs the batches of one table."""

    kind = KIND

    def __init__(
        self,
        lake: Lake,
        name: Name,
        source: FileSource,
        model: Model,
        runner: Runner | None,
        table: Layout,
        listings: Listings | None,
        step: Step,
        warn: Callable[[str], None] = log.warning,
    ) -> None:
        self.lake = lake
        self.name = name
        self.source = source
        self.model = model
        self.table = table
        self.location = lake.location_of(name)
        self.journal: Journal[FilePlan] = Journal(
            self.location, lake.storage_options, lambda *commit: commit_marks(self.runner, *commit)
        )
        self.report = IngestReport()
        self.on_batch: Callable[[Batch], None] = lambda batch: None
        self._warned = warn
        self.max_batches: int | None = None
        self.contract: Callable[[str], None] | None = None
        self._agreed: list[Column] = []
        """The columns that the contract was last asked about."""
        self._runner = runner
        self._listings = listings or Listings(lake.storage_options)
        self._step = step
        self._ledger = Ledger(self.journal)
        self._selector = Selector(name, source)
        self._reader = Reader(name, source, model, lambda: self.runner)
        self._has_told_of_rows = False
        self._progress = Progress(str(name))
        self._selection: Selection | None = None
        self._roots = Roots.first(source.source_roots, source.roots_as_written)
        self._tidied: int | None = None
        """The mark when a batch was last settled; None before that."""
        self._bad: dict[str, str] = {}
        self._relist = False
        self._void_reason: str | None = None
        self._reading: tuple[FilePlan, Reading] | None = None
        self._ahead: tuple[Request, Future[Reading]] | None = None
        self._helper: ThreadPoolExecutor | None = None
        self._running: Running[FilePlan] | None = None
        self._tell_of_rows()

    @property
    def runner(self) -> Runner:
        return self._runner or self.lake.runner

    def _tell_of_rows(self) -> None:
        """Once a run: as soon as the text, or Spark's plan, shows that the model looks across rows."""
        if self._reader.across_rows is not None and not self._has_told_of_rows:
            self._has_told_of_rows = True
            self._warn(
                f"{self.name} has {self._reader.across_rows}: it holds within each batch of files, not across batches, "
                "so the result depends on how the files were cut"
            )

    def close(self) -> None:
        """Let go of what was prepared and not needed."""
        self._progress.clear()
        if self._helper is not None:
            self._helper.shutdown()
        if (reading := self._taken_ahead(None)) is not None:
            reading.drop(self.runner)
        if self._reading is not None:
            self._reading[1].drop(self.runner)

    # What the journal asks for

    def decode(self, number: int, data: bytes, where: str) -> FilePlan:
        plan = FilePlan.from_bytes(number, data, where)
        return plan.named(plan.roots)

    def propose(self, number: int, state: State, *, replace: bool) -> FilePlan | None:
        if state.table is not None and state.mark is None and not replace:
            return self._claim(number)
        replaced_by_another = not replace and not self._ledger.covers(state) and not self._has_made(state)
        added = none(RECORDS) if replace else self._ledger.follow(state)
        self._settle(state, tidy=not replace)
        if self.max_batches is not None and len(self.report.batches) >= self.max_batches:
            return None
        if self._selection is None or replaced_by_another:
            self._look(state, replace=replace)
        else:
            self._selection.remove(added)
        plan = self._next_plan(number, state, replace=replace)
        return None if plan is None else self._read(plan, state)

    def run(self, plan: FilePlan, state: State) -> None:
        read = plan.read
        if read.num_rows == 0:
            self._run_without_files(plan, state)
            return
        running = Running(plan, state.note(plan.number))
        self._refuse_other_files(plan)
        self._refuse_changed(plan)
        if self._reading is None or self._reading[0] is not plan:
            self._read(plan, state)
        assert self._reading is not None
        (_, reading), self._reading = self._reading, None
        self._tell_of_rows()
        self._running = running
        self._read_ahead(plan, state)
        self._step("write")
        try:
            self._write(plan, reading, running.note, state)
        except StatementError as error:
            if lost_a_race(error.condition):
                raise
            self._refuse_changed(plan)
            self._refuse_bad(plan, state)
            raise
        finally:
            reading.drop(self.runner)
        self._step("committed")

    def _run_without_files(self, plan: FilePlan, state: State) -> None:
        if not plan.replace:
            self.journal.commit_empty(plan.number, state)
        elif state.table is not None and state.mark is None:
            self.journal.claim(plan, state)
        else:
            raise Unrunnable("the empty table that it was to take over is not there any more")
        self._running = Running(plan)

    # Planning

    def _has_made(self, state: State) -> bool:
        """Whether the last plan that was run is the one that began the table's ledger."""
        return self._running is not None and self._running.plan.number == state.generation

    def _claim(self, number: int) -> FilePlan:
        """The plan by which an empty table that others made becomes ours, as it is; batches come after it."""
        return FilePlan(
            number=number,
            generation=number,
            lines=none(LINES),
            replace=True,
            roots=self._roots,
            ledger=new_ledger(),
            model=digest(self.model.text),
        )

    def _look(self, state: State, *, replace: bool) -> None:
        """List the roots, and sort out what is there."""
        source = self.source
        # A table that others made empty becomes ours by a plan without files: what follows that is the first batch.
        first = replace or state.mark is None or (state.mark == state.generation and not self._ledger.records.num_rows)
        listed = self._listings.of(source.source_roots, fresh=self._relist)
        self._relist = False
        known = none(RECORDS) if first else self._ledger.records
        if replace or state.mark is None:
            self._roots = Roots.first(source.source_roots, source.roots_as_written)
        else:
            self._roots = self._follow_moves(self._ledger.roots, listed, known)
        self._roots.check(str(self.name))
        self._check_store_roots(known)
        self._selection = self._selector.select(listed, self._roots, known, state.table, self._bad, first=first)
        self.report.waiting = self._selection.waiting

    def _check_store_roots(self, known: pa.Table) -> None:
        """An object store lists a mistyped prefix as nothing: an error where the ledger knows files below it."""
        for root in self.source.source_roots:
            if not self._listings.is_empty_store_root(root):
                continue
            if below(known, self._roots.name_of(root)).num_rows:
                raise PenstockError(
                    "There is no object below this root, from which files came in before",
                    where=root,
                    fix="Correct `source_roots`, or put the files back; remove the root where it is no longer used.",
                )
            self._warn(f"{self.name}: there is no object below {root}")

    def _follow_moves(self, before: Roots, listed: pa.Table, known: pa.Table) -> Roots:
        """The roots as the ledger knows them; a new one with files that came in from another is as `on_moved_root` says."""
        roots = before.then(self.source.source_roots, self.source.roots_as_written)
        for root in roots.unknown_to(before):
            new = below(without(roots.listed(matching(listed, self.source)), known), roots.name_of(root))
            same = {name: new.num_rows - without(new, below(known, name)).num_rows for name in before.names}
            from_names = [name for name, files in same.items() if files]
            if not from_names or self.source.on_moved_root == "ingest":
                continue
            what = f"{count(sum(same.values()), 'file')} below {root} came in from {' and '.join(from_names)} already"
            if self.source.on_moved_root == "fail":
                raise PenstockError(
                    f"{what}, by path, time and size: the folder was moved or copied",
                    where=str(self.name),
                    fix="Set `on_moved_root: accept` where it was moved (the files are those that are in), or "
                    "`on_moved_root: ingest` to bring them in as new ones.",
                )
            if len(from_names) > 1:
                raise PenstockError(
                    f"{what}: one root can't take the place of several",
                    where=str(self.name),
                    fix="Keep a folder for each, or set `on_moved_root: ingest` to bring all of it in as new.",
                )
            roots = roots.moved(root, from_names[0])
        return roots

    def _next_plan(self, number: int, state: State, *, replace: bool) -> FilePlan | None:
        assert self._selection is not None
        files, aside = self._selection.backlog.head(), self._selection.aside
        made = replace or state.mark is None
        if files.num_rows == 0 and (made or aside.num_rows == 0):
            # Without a file to read there is nothing that a table could be made from.
            if replace and state.table is not None:
                self._warn(f"{self.name} stays as it is: there is no file to make it anew from")
            return None
        voided = (state.mark, self._void_reason or "by another run") if state.mark is not None else None
        return FilePlan(
            number=number,
            generation=number if made else state.generation,
            lines=pa.concat_tables([files, aside]),
            replace=made,
            roots=self._roots,
            voided=voided if state.last_is_void and not made else None,
            ledger=new_ledger() if made else state.ledger,
            model=digest(self.model.text),
        )

    # Reading

    def _read(self, plan: FilePlan, state: State) -> FilePlan:
        """The plan with what its files are read as; bad ones among them are set aside."""
        while plan.read.num_rows:
            request = self._request(plan.read, state, plan)
            try:
                reading = self._taken_ahead(request) or self._reader.read(request)
            except BadFiles as error:
                plan = self._set_aside(plan, error)
                continue
            self._check_contract(reading)
            self._sync_columns(reading, state)
            for text in reading.warnings:
                self._warn(text)
            if self._reading is not None:
                self._reading[1].drop(self.runner)
            plan = replace(plan, schema=reading.shape.schema, folders=reading.shape.folders, format=reading.format)
            self._reading = (plan, reading)
            return plan
        return replace(plan, schema=self._ledger.schema, folders=self._ledger.folders, format=self._ledger.format)

    def _request(self, files: pa.Table, state: State, plan: FilePlan, known: Shape | None = None) -> Request:
        if known is None and not plan.replace and self._ledger.schema is not None:
            known = Shape(self._ledger.schema, self._ledger.folders)
        return Request(
            paths=tuple(located(files)["path"].to_pylist()),
            roots=plan.roots.roots,
            format=plan.format,
            shape=None if plan.schema is None else Shape(plan.schema, plan.folders),
            known=known,
            columns=None if plan.replace or state.table is None else tuple(state.table.columns),
        )

    def _read_ahead(self, plan: FilePlan, state: State) -> None:
        """Have Spark take the next batch apart while this one is written."""
        if self._selection is None or state.table is None or plan.replace or plan.schema is None:
            return
        files = self._selection.backlog.second()
        if files.num_rows == 0:
            return
        unplanned = replace(plan, schema=None, folders=(), format=None, roots=self._roots)
        request = self._request(files, state, unplanned, Shape(plan.schema, plan.folders))
        if self._helper is None:
            self._helper = ThreadPoolExecutor(1, "penstock-ahead")
        self._ahead = (request, self._helper.submit(self.runner.joined(lambda: self._reader.read(request))))

    def _taken_ahead(self, request: Request | None) -> Reading | None:
        """What was read ahead, where it is this; what failed is read again, to fail in its own turn."""
        if self._ahead is None:
            return None
        (asked, future), self._ahead = self._ahead, None
        if future.exception() is not None:
            return None
        reading = future.result()
        if request is None or asked == request:
            return reading
        reading.drop(self.runner)
        return None

    def _check_contract(self, reading: Reading) -> None:
        """Refuse a SELECT whose columns are not those of the model's contract, before a plan is written."""
        if self.contract is None or reading.made == self._agreed:
            return
        try:
            self.contract(reading.query)
        except BaseException:
            reading.drop(self.runner)
            raise
        self._agreed = reading.made

    def _sync_columns(self, reading: Reading, state: State) -> None:
        """Under `sync_all_columns` the table takes the SELECT's types, and loses what it no longer makes, before the batch.

        What is only new is added by the batch's own commit.
        """
        columns = reading.request.columns
        if self.source.on_schema_change != SYNC or columns is None or reading.request.shape is not None:
            return
        difference = Difference(reading.made, columns)
        if not (difference.gone or difference.other_than_new):
            return
        reading.drop(self.runner)
        note = state.note("columns")
        adapt(self.lake, self.name, difference, SYNC, self.runner, note, self._warn)
        raise Lost(f"the table's columns were changed: {difference}")

    # Writing

    def _write(self, plan: FilePlan, reading: Reading, note: str, state: State) -> None:
        if plan.replace:
            clauses = self.table.with_properties(properties_of(plan)).clauses()
            text = f"create or replace table {self.name.sql}\n{clauses}\nas\n{reading.query}"
            self.lake.create_schema(self.name.schema)
            self.runner.run(text, on_sql(MARK, plan.number, note))
            return
        assert state.table is not None
        have = {column.name.lower() for column in state.table.columns}
        adds = any(name.lower() not in have for name in reading.frame.columns)
        merge = adds or self.source.on_schema_change in (APPEND, SYNC)
        replaced = plan.with_status(REPLACED)["path"].to_pylist()
        with self.runner.tagged(note):
            if replaced:
                # A plan that an earlier process has left is run before anything was read of the ledger.
                self._ledger.follow(state)
                self._overwrite(plan, reading.frame, replaced, note, merge)
                return
            transaction = Transaction(self.runner, self.runner.place(self.location), state.table)
            transaction.append(reading.frame, {MARK: plan.number}, note, merge_schema=merge, step=self._step)

    def _overwrite(self, plan: FilePlan, frame: DataFrame, replaced: list[str], note: str, merge: bool) -> None:
        """Append, and take the earlier rows of rewritten files out, in one commit."""
        options = {"txnAppId": MARK, "txnVersion": str(plan.number), "userMetadata": note}
        if merge:
            options["mergeSchema"] = "true"
        # By the places that they were read at: the file's root may have been spelled otherwise then.
        known = self._ledger.records
        earlier = located(known.filter(pc.is_in(known["path"], pa.array(replaced, pa.string()))))
        places = dict.fromkeys(earlier["path"].to_pylist())
        uris = ", ".join(literal(self._uri(place)) for place in places)
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", f"source_file_uri in ({uris})")
        # The batch's other files are new, and so not of those that are replaced.
        with self.runner.configured({"spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false"}):
            try:
                writer.options(**options).save(self.runner.place(self.location))
            except Exception as error:
                raise from_spark(error) from error

    def _uri(self, path: str) -> str:
        """A file's path as Spark's `_metadata.file_path` writes it."""
        made = java_class(self.runner.spark, "org.apache.hadoop.fs.Path")(self.lake.for_spark(path))
        uri = str(made.toUri().toString())
        return uri if is_uri(path) else f"file:{uri}"

    # What went wrong with a file

    def _refuse_other_files(self, plan: FilePlan) -> None:
        """A plan to make the table may be left of a run with another config: it is not to bring in what this one has not."""
        if not plan.replace:
            return
        files = located(plan.read)
        for path in files["path"].to_pylist():
            if not any(path.startswith(root.rstrip("/") + "/") for root in self.source.source_roots):
                self._start_over(f"{path} is below none of the roots that the model has now")
        if matching(files, self.source).num_rows < files.num_rows:
            self._start_over("it has files that the model's patterns leave out now")

    def _refuse_changed(self, plan: FilePlan) -> None:
        """A plan is of the files as they were listed: where one is another now, or gone, nothing is read."""
        for path, why in self._changed(plan).items():
            self._start_over(f"{path} {why} after it was planned")

    def _changed(self, plan: FilePlan) -> dict[str, str]:
        return changed(located(plan.read), plan.roots.roots, self.lake.storage_options)

    def _refuse_bad(self, plan: FilePlan, state: State) -> None:
        """After a failure: unreadable files are left out of the next plan, where that is allowed."""
        if self.source.on_bad_file != "quarantine":
            return
        if bad := self._reader.unreadable(self._request(plan.read, state, plan)):
            self._bad |= {plan.roots.known_as(path): redact(reason) for path, reason in bad.items()}
            self._start_over(str(BadFiles(bad)))

    def _set_aside(self, plan: FilePlan, error: BadFiles) -> FilePlan:
        """The plan with its unreadable files recorded as such; it has not been written yet."""
        found = {plan.roots.known_as(path): redact(reason) for path, reason in error.files.items()}
        self._bad |= found
        bad = pc.is_in(plan.lines["path"], pa.array(list(found), pa.string()))
        plan = replace(
            plan,
            lines=pa.concat_tables([plan.lines.filter(pc.invert(bad)), set_aside(plan.lines.filter(bad), self._bad)]),
        )
        if plan.replace and plan.read.num_rows == 0:
            raise PenstockError(
                f"None of the files that the table would be made from can be read: {error}", where=str(self.name)
            )
        return plan

    def _start_over(self, reason: str) -> None:
        self._void_reason = reason
        self._selection, self._relist = None, True
        raise Unrunnable(reason)

    # After a commit: nothing that matters

    def _settle(self, state: State, *, tidy: bool) -> None:
        """Tell what came in, and keep the ledger small; all of it may be lost."""
        self.report.version = None if state.table is None else state.table.version
        before, self._tidied = self._tidied, -1 if state.mark is None else state.mark
        running, self._running = self._running, None
        if running is not None and state.table is not None and state.mark is not None:
            plan = running.plan
            if state.mark >= plan.number and not (state.last_is_void and state.mark == plan.number):
                self._tell(running, state)
        if not tidy or state.table is None or state.mark is None:
            return
        self._summarize(state)
        if before is not None and before != state.mark:
            # Cancelled plans count too: they are records as well.
            source = self.source
            self._ledger.tidy(state, source.source_compaction_interval, source.source_retention_files, self._step)

    def _tell(self, running: Running[FilePlan], state: State) -> None:
        plan = running.plan
        self.report.skipped += plan.with_status(SKIPPED).num_rows
        for row in located(plan.with_status(QUARANTINED)).to_pylist():
            self.report.quarantined[row["path"]] = row["reason"]
            self._warn(f"{row['path']} can't be read and was left out: {row['reason']}")
        if not running.note:
            return
        written = running.outcome(state)
        if written is None:
            log.info("%s: batch %d came in by another run", self.name, plan.batch_id)
            return
        place = len(self.report.batches) + 1
        remaining = 0 if self._selection is None else self._selection.backlog.batches
        batch = Batch(
            number=plan.batch_id,
            place=place,
            of=max(place, len(self.report.batches) + remaining),
            files=plan.read.num_rows,
            bytes=pc.sum(plan.read["size"]).as_py() or 0,
            rows=written.rows_inserted,
            seconds=running.seconds,
            version=written.version,
        )
        self.report.batches.append(batch)
        self._progress.clear()
        self.on_batch(batch)
        self._progress.show(batch.place, batch.of)

    def _summarize(self, state: State) -> None:
        records = self._ledger.records
        self._step("summary")
        facts = {
            "modifiedTime": pc.max(records["modificationTime"]).as_py(),
            "files": records.num_rows,
            "bytes": pc.sum(records["size"]).as_py() or 0,
        }
        self.journal.summarize(state, facts)

    def _warn(self, text: str) -> None:
        if text not in self.report.warnings:
            self._warned(text)
            self.report.warnings.append(text)
