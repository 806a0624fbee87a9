"""Files into a table, each exactly once: the work that the journal drives."""

from __future__ import annotations

import json
import logging
import os
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import PenstockError, StatementError, from_spark
from penstock.files.frame import Frames, Shape, format_of
from penstock.files.ledger import Ledger
from penstock.files.listing import Listings, matching, none
from penstock.files.model import Model
from penstock.files.plan import (
    INGESTED,
    KEY,
    QUARANTINED,
    READ,
    RECORDS,
    REPLACED,
    SKIPPED,
    Backlog,
    FilePlan,
    lines,
    without,
)
from penstock.files.source import FileSource
from penstock.journal import (
    FORMAT,
    GENERATION,
    OURS,
    SUMMARY,
    Journal,
    Lost,
    State,
    Step,
    Unrunnable,
    lost_a_race,
    no_step,
)
from penstock.layout import Layout, literal
from penstock.names import Name, quote
from penstock.runner import Written
from penstock.storage import Storage, is_uri
from penstock.table import MARK
from penstock.transaction import MovedOn, Transaction, commit_marks, on_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from penstock.lake import Lake
    from penstock.runner import Runner

log = logging.getLogger("penstock.files")

_CHECKERS = 16


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
class IngestReport:
    """What a run did."""

    batches: list[Batch] = field(default_factory=list)
    skipped: int = 0
    """Files recorded as not to be read: empty ones, and those before `starting_timestamp`."""
    quarantined: dict[str, str] = field(default_factory=dict)
    """Unreadable files that were recorded and left out, each with its reason."""
    waiting: int = 0
    """Files younger than the safety buffer, left for the next run."""
    version: int | None = None
    """The table's Delta version after the run; None where there is no table yet."""
    warnings: list[str] = field(default_factory=list)

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


def ingest(
    lake: Lake,
    name: Name,
    source: FileSource,
    select: str,
    *,
    runner: Runner | None = None,
    full_refresh: bool = False,
    table: Layout | None = None,
    listings: Listings | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    step: Step = no_step,
) -> IngestReport:
    """Bring every new file in, batch by batch, each exactly once; no Spark is started when none is new."""
    lake.check_writable()
    work = FileWork(lake, name, source, Model.read(select, str(name)), runner, table or Layout(), listings, step)
    work.on_batch = on_batch or (lambda batch: log.info("%s: %s", name, batch))
    found = lake.find(name)
    if found is not None and found.kind == "files":
        raise PenstockError(f"{name} stands for files elsewhere, and can't be a table", where=found.location)
    work.journal.drive(work, replace=full_refresh or (found is not None and found.kind == "view"), step=step)
    return work.report


def preview(
    lake: Lake,
    name: Name,
    source: FileSource,
    select: str,
    *,
    runner: Runner | None = None,
    rows: int | None = None,
    files: int | None = None,
    listings: Listings | None = None,
) -> str:
    """A query that reads like the model does, over some of the files, and brings nothing in.

    `@data` is the oldest files of the roots, new or not: one batch of them, or as many as `files` says, limited to
    `rows` rows: for `dbt show`, `--sample`, and, with no rows, `--empty`.
    """
    work = FileWork(lake, name, source, Model.read(select, str(name)), runner, Layout(), listings, no_step)
    return work.preview(rows, files)


class FileWork:
    """Plans and runs the batches of one table."""

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
    ) -> None:
        self.lake = lake
        self.name = name
        self.source = source
        self.model = model
        self.table = table
        self.location = lake.location_of(name)
        self.journal: Journal[FilePlan] = Journal(
            self.location, lake.storage_options, lambda known, marks: commit_marks(self.runner, known, marks)
        )
        self.report = IngestReport()
        self.on_batch: Callable[[Batch], None] = lambda batch: None
        self._runner = runner
        self._listings = listings or Listings(lake.storage_options)
        self._step = step
        self._ledger = Ledger(self.journal)
        self._backlog: Backlog | None = None
        self._aside: pa.Table | None = None
        """Files that the next plan records without reading them."""
        self._bad: dict[str, str] = {}
        self._relist = False
        self._void_reason: str | None = None
        self._running: _Running | None = None
        self._prepared: _Prepared | None = None
        if model.across_rows is not None:
            self._warn(
                f"{name} has {model.across_rows}: it holds within each batch of files, not across batches, "
                "so the result depends on how the files were cut"
            )

    @property
    def runner(self) -> Runner:
        return self._runner or self.lake.runner

    # What the journal asks for

    def decode(self, number: int, data: bytes, where: str) -> FilePlan:
        return FilePlan.from_bytes(number, data, where)

    def propose(self, number: int, state: State, *, replace: bool) -> FilePlan | None:
        added = none(RECORDS) if replace else self._ledger.follow(state)
        self._settle(state, tidy=not replace)
        if self._backlog is None:
            self._look(state, first=replace or state.mark is None, replace=replace)
        else:
            self._backlog.remove(added)
            self._aside = None if self._aside is None else without(self._aside, added)
        assert self._backlog is not None
        files, aside = self._backlog.head(), self._aside
        made = replace or state.table is None
        if files.num_rows == 0 and (made or aside is None or aside.num_rows == 0):
            # Without a file to read there is nothing that a table could be made from.
            return None
        listed = pa.concat_tables([files] if aside is None else [files, aside])
        plan = FilePlan(
            number=number,
            generation=number if made else state.generation,
            lines=listed,
            replace=made,
            roots=self.source.source_roots,
            voided=(state.mark, self._void_reason or "by another run")
            if state.last_is_void and state.mark is not None
            else None,
        )
        return self._prepare(plan, state)

    def run(self, plan: FilePlan, state: State) -> None:
        read = plan.read
        began = time.monotonic()
        if read.num_rows == 0 and not plan.replace:
            self.journal.commit_empty(plan.number, state)
            self._running = _Running(plan, "", began)
            return
        self._refuse_changed(read)
        if self._prepared is None or self._prepared.plan is not plan:
            self._prepare(plan, state)
        prepared, self._prepared = self._prepared, None
        assert prepared is not None
        note = f"{OURS}{plan.number} {uuid.uuid4()}"
        self._running = _Running(plan, note, began)
        self._step("write")
        try:
            self._write(plan, prepared, note, state)
        except StatementError as error:
            if lost_a_race(error.condition):
                raise Lost(str(error)) from error
            self._refuse_changed(read)
            self._refuse_bad(plan)
            raise
        finally:
            prepared.drop(self.runner)
        self._step("committed")

    def preview(self, rows: int | None, files: int | None) -> str:
        found = matching(self._listings.of(self.source.source_roots), self.source)
        found = found.filter(pc.greater(found["size"], 0))
        head = Backlog(lines(found, INGESTED), files or self.source.max_files_per_trigger, None).head()
        paths = head["path"].to_pylist()
        state = self.journal.state()
        self._ledger.follow(state)
        frames = Frames(self.runner, self.source, self._ledger.format or format_of(paths, self.source))
        known = None if self._ledger.schema is None else Shape(self._ledger.schema, self._ledger.folders)
        shape = frames.given() or known or (frames.infer(paths) if paths else None)
        if shape is None:
            raise PenstockError(
                "There is no file yet that would show the columns of @data",
                where=", ".join(self.source.source_roots),
                fix="Declare them in `source_columns`, or let a file land.",
            )
        frame = frames.frame([] if rows == 0 else paths, shape, self.model.virtual)
        view = f"penstock_preview_{uuid.uuid4().hex}"
        (frame if rows is None else frame.limit(rows)).createOrReplaceTempView(view)
        query = self.model.bind(view)
        return self.model.once(query, self._select(query).columns) or query

    # Planning

    def _look(self, state: State, *, first: bool, replace: bool) -> None:
        """List the roots, and take out what is known, what is not wanted and what must wait."""
        source = self.source
        known = none(RECORDS) if replace else self._ledger.records
        files = without(self._listings.of(source.source_roots, fresh=self._relist), known)
        self._relist = False
        files = matching(files, source)
        self._aside = None
        if files.num_rows == 0:
            # The common case, and one that must stay cheap.
            self._backlog = Backlog(lines(files, INGESTED), source.max_files_per_trigger, None)
            return
        if source.safety_buffer_seconds:
            limit = int((time.time() - source.safety_buffer_seconds) * 1000)
            old = pc.less_equal(files["modificationTime"], limit)
            self.report.waiting = files.num_rows - (pc.sum(old).as_py() or 0)
            files = files.filter(old)
        aside = []
        if self._bad:
            bad = pc.is_in(files["path"], pa.array(list(self._bad), pa.string()))
            aside += [lines(file, QUARANTINED, self._bad[file["path"][0].as_py()]) for file in _rows(files.filter(bad))]
            files = files.filter(pc.invert(bad))
        if first and source.starting_timestamp is not None:
            early = pc.less(files["modificationTime"], int(source.starting_timestamp.timestamp() * 1000))
            aside.append(lines(files.filter(early), SKIPPED, "before starting_timestamp"))
            files = files.filter(pc.invert(early))
        empty = pc.equal(files["size"], 0)
        aside.append(lines(files.filter(empty), SKIPPED, "empty"))
        files = self._rewritten(files.filter(pc.invert(empty)), known, state)
        self._backlog = Backlog(files, source.max_files_per_trigger, source.max_bytes_per_trigger)
        together = pa.concat_tables(aside)
        self._aside = together if together.num_rows else None

    def _rewritten(self, files: pa.Table, known: pa.Table, state: State) -> pa.Table:
        """Files whose path is in already, with another time or size: as `on_rewritten_file` says."""
        policy = self.source.on_rewritten_file
        if files.num_rows == 0 or known.num_rows == 0:
            return lines(files, INGESTED)
        read = known.filter(pc.is_in(known["status"], pa.array(READ, pa.string())))
        again = pc.is_in(files["path"], value_set=read["path"].combine_chunks())
        if not pc.any(again).as_py():
            return lines(files, INGESTED)
        changed, new = files.filter(again), files.filter(pc.invert(again))
        example = changed["path"][0].as_py()
        if policy == "fail":
            raise PenstockError(
                f"{count(changed.num_rows, 'file')} that came in already changed since: {example}",
                where=str(self.name),
                fix="Set `on_rewritten_file` to skip (leave the rows as they are), ingest (again, as a new file) or "
                "replace (its earlier rows leave), or restore the file.",
            )
        if policy == "skip":
            log.info("%s: %s that came in already changed since, and stay as they were", self.name, example)
            return lines(new, INGESTED)
        if policy == "ingest":
            return lines(files, INGESTED)
        columns = {column.name.lower() for column in state.table.columns} if state.table is not None else set()
        if "source_file_uri" not in columns:
            raise PenstockError(
                "`on_rewritten_file: replace` finds a file's earlier rows by source_file_uri, which the table lacks",
                where=str(self.name),
                fix="Add source_file_uri to the SELECT, and run once with --full-refresh.",
            )
        return pa.concat_tables([lines(new, INGESTED), lines(changed, REPLACED)])

    # Reading

    def _prepare(self, plan: FilePlan, state: State) -> FilePlan:
        """Have Spark take the SELECT over the plan's files apart, so that what is wrong with it shows before the plan
        is written; returns the plan with what its files are read as."""
        read = plan.read
        if read.num_rows == 0:
            return _with(plan, schema=self._ledger.schema, folders=self._ledger.folders, format=self._ledger.format)
        paths = read["path"].to_pylist()
        format = plan.format or format_of(paths, self.source)
        frames = Frames(self.runner, self.source, format, plan.roots)
        shape = self._shape(plan, frames, paths)
        if self._bad:
            left = [path for path in paths if path not in self._bad]
            if len(left) < len(paths) and plan.schema is None:
                return self._prepare(self._set_aside(plan), state)
        plan = _with(plan, schema=shape.schema, folders=shape.folders, format=format)
        view = f"penstock_data_{uuid.uuid4().hex}"
        frames.frame(paths, shape, self.model.virtual).createOrReplaceTempView(view)
        prepared = _Prepared(plan, view, self.model.bind(view))
        try:
            frame = self._select(prepared.query)
            if once := self.model.once(prepared.query, frame.columns):
                prepared.query = once
                frame = self._select(once)
            prepared.frame = frame if plan.replace else self._fit(frame, state)
        except PenstockError:
            prepared.drop(self.runner)
            raise
        if self._prepared is not None:
            self._prepared.drop(self.runner)
        self._prepared = prepared
        return plan

    def _select(self, query: str) -> DataFrame:
        frame = self.runner.run(query).frame
        assert frame is not None
        return frame

    def _shape(self, plan: FilePlan, frames: Frames, paths: list[str]) -> Shape:
        """What the files are read as: written in the plan, declared, known from earlier batches, or inferred."""
        if plan.schema is not None:
            return Shape(plan.schema, plan.folders)
        given = frames.given()
        if given is not None:
            return given
        known = None
        if not plan.replace and self._ledger.schema is not None:
            known = Shape(self._ledger.schema, self._ledger.folders)
            if self.source.on_schema_change == "ignore":
                return known
        try:
            return frames.infer(paths, known)
        except StatementError:
            if self.source.on_bad_file != "quarantine":
                raise
            self._bad |= self._probe(lambda path: frames.infer([path]), paths)
            left = [path for path in paths if path not in self._bad]
            if not left or len(left) == len(paths):
                raise
            return frames.infer(left, known)

    def _fit(self, frame: DataFrame, state: State) -> DataFrame:
        """The SELECT's columns as the table has them, by name; new and missing ones as `on_schema_change` says."""
        from pyspark.sql import functions as F

        assert state.table is not None
        target = {column.name.lower(): column for column in state.table.columns}
        made = {column.name.lower(): column for column in frame.schema.fields}
        new = [column.name for key, column in made.items() if key not in target]
        gone = [column.name for key, column in target.items() if key not in made]
        policy = self.source.on_schema_change
        if policy == "fail" and (new or gone):
            raise PenstockError(
                f"The SELECT's columns are not the table's: new {new or 'none'}, missing {gone or 'none'}",
                where=str(self.name),
                fix="Set `on_schema_change`, or run with --full-refresh.",
            )
        columns = []
        for key, column in made.items():
            if key not in target:
                if policy != "ignore":
                    columns.append(F.col(quote(column.name)))
                continue
            wanted = target[key]
            same = column.dataType.simpleString() == wanted.type
            value = F.col(quote(column.name)) if same else F.col(quote(column.name)).cast(wanted.type)
            columns.append(value.alias(wanted.name))
        return frame.select(*columns)

    # Writing

    def _write(self, plan: FilePlan, prepared: _Prepared, note: str, state: State) -> None:
        if plan.replace:
            properties = {GENERATION: str(plan.number)}
            clauses = self.table.with_properties(properties).clauses()
            text = f"create or replace table {self.name.sql}\n{clauses}\nas\n{prepared.query}"
            self.lake.create_schema(self.name.schema)
            self.runner.run(text, on_sql(MARK, plan.number, note))
            return
        assert prepared.frame is not None
        assert state.table is not None
        merge = self.source.on_schema_change in ("append_new_columns", "sync_all_columns")
        replaced = plan.with_status(REPLACED)["path"].to_pylist()
        with self.runner.tagged(note):
            if replaced:
                self._overwrite(plan, prepared.frame, replaced, note, merge)
                return
            if state.mark is not None and state.mark >= plan.number:
                raise Lost(f"{plan.number} is in already")
            try:
                transaction = Transaction(self.runner, self.lake.for_spark(self.location), state.table)
            except MovedOn as error:
                raise Lost(str(error)) from error
            transaction.append(prepared.frame, {MARK: plan.number}, note, merge_schema=merge)

    def _overwrite(self, plan: FilePlan, frame: DataFrame, replaced: list[str], note: str, merge: bool) -> None:
        """Append, and take the earlier rows of rewritten files out, in one commit."""
        options = {"txnAppId": MARK, "txnVersion": str(plan.number), "userMetadata": note}
        if merge:
            options["mergeSchema"] = "true"
        uris = ", ".join(literal(self._uri(path)) for path in replaced)
        writer = frame.write.format("delta").mode("overwrite").option("replaceWhere", f"source_file_uri in ({uris})")
        # The batch's other files are new, and so not of those that are replaced.
        with self.runner.configured({"spark.databricks.delta.replaceWhere.constraintCheck.enabled": "false"}):
            try:
                writer.options(**options).save(self.lake.for_spark(self.location))
            except Exception as error:
                raise from_spark(error) from error

    def _uri(self, path: str) -> str:
        """A file's path as Spark's `_metadata.file_path` writes it."""
        jvm = self.runner.spark.sparkContext._jvm
        assert jvm is not None
        uri = str(jvm.org.apache.hadoop.fs.Path(self.lake.for_spark(path)).toUri().toString())
        return uri if is_uri(path) else f"file:{uri}"

    # What went wrong with a file

    def _refuse_changed(self, files: pa.Table) -> None:
        """A plan is of the files as they were listed: where one is another now, or gone, nothing is read."""
        for path, why in self._changed(files).items():
            self._start_over(f"{path} {why} after it was planned")

    def _changed(self, files: pa.Table) -> dict[str, str]:
        rows = files.select(KEY).to_pylist()
        with ThreadPoolExecutor(_CHECKERS) as pool:
            found = list(pool.map(self._status, [row["path"] for row in rows])) if rows else []
        changed = {}
        for row, now in zip(rows, found):
            if now is None:
                changed[row["path"]] = "vanished"
            elif now != (row["modificationTime"], row["size"]):
                changed[row["path"]] = "changed"
        return changed

    def _status(self, path: str) -> tuple[int, int] | None:
        if not is_uri(path):
            try:
                status = os.stat(path)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return status.st_mtime_ns // 1_000_000, status.st_size
        folder, name = path.rsplit("/", 1)
        entry = Storage(folder, self.lake.storage_options).head(name)
        return None if entry is None else (int(entry.modified.timestamp() * 1000), entry.size)

    def _refuse_bad(self, plan: FilePlan) -> None:
        """After a failure: which files can't be read is asked of each alone."""
        if self.source.on_bad_file != "quarantine":
            return
        assert plan.format is not None
        assert plan.schema is not None
        frames = Frames(self.runner, self.source, plan.format, plan.roots)
        shape = Shape(plan.schema, plan.folders)
        paths = plan.read["path"].to_pylist()
        bad = self._probe(lambda path: frames.frame([path], shape).write.format("noop").mode("overwrite").save(), paths)
        if bad:
            self._bad |= bad
            self._start_over("; ".join(f"{path} can't be read: {reason}" for path, reason in bad.items()))

    def _probe(self, read: Callable[[str], object], paths: list[str]) -> dict[str, str]:
        bad = {}
        for path in paths:
            try:
                read(path)
            except Exception as error:
                bad[path] = str(from_spark(error)).splitlines()[0][:500]
        return bad

    def _set_aside(self, plan: FilePlan) -> FilePlan:
        """The plan with its unreadable files recorded as such; it has not been written yet."""
        bad = pc.is_in(plan.lines["path"], pa.array(list(self._bad), pa.string()))
        kept = plan.lines.filter(pc.invert(bad))
        parts = [lines(file, QUARANTINED, self._bad[file["path"][0].as_py()]) for file in _rows(plan.lines.filter(bad))]
        return _with(plan, lines=pa.concat_tables([kept, *parts]))

    def _start_over(self, reason: str) -> None:
        self._void_reason = reason
        self._backlog, self._relist = None, True
        raise Unrunnable(reason)

    # After a commit: nothing that matters

    def _settle(self, state: State, *, tidy: bool) -> None:
        """Tell what came in, and keep the ledger small; all of it may be lost."""
        self.report.version = None if state.table is None else state.table.version
        running, self._running = self._running, None
        if running is not None and state.table is not None and state.mark is not None:
            plan = running.plan
            if state.mark >= plan.number and not (state.last_is_void and state.mark == plan.number):
                self._tell(running, state)
        if not tidy or state.table is None or state.mark is None:
            return
        self._summarize(state)
        if running is not None:
            source = self.source
            self._ledger.tidy(state, source.source_compaction_interval, source.source_retention_files, self._step)

    def _tell(self, running: _Running, state: State) -> None:
        plan = running.plan
        assert state.table is not None
        self.report.skipped += plan.with_status(SKIPPED).num_rows
        for row in plan.with_status(QUARANTINED).to_pylist():
            self.report.quarantined[row["path"]] = row["reason"]
            self._warn(f"{row['path']} can't be read and was left out: {row['reason']}")
        if not running.note:
            return
        ours = next((one for one in state.table.history(20) if one.get("userMetadata") == running.note), None)
        if ours is None:
            log.info("%s: batch %d came in by another run", self.name, plan.batch_id)
            return
        written = Written.from_commit(ours)
        place = len(self.report.batches) + 1
        remaining = 0 if self._backlog is None else self._backlog.batches
        batch = Batch(
            number=plan.batch_id,
            place=place,
            of=max(place, len(self.report.batches) + remaining),
            files=plan.read.num_rows,
            bytes=pc.sum(plan.read["size"]).as_py() or 0,
            rows=written.rows_inserted,
            seconds=time.monotonic() - running.began,
            version=written.version,
        )
        self.report.batches.append(batch)
        self.on_batch(batch)

    def _summarize(self, state: State) -> None:
        """For people: no run reads it."""
        assert state.table is not None
        assert state.mark is not None
        records = self._ledger.records
        self._step("summary")
        summary = {
            "format_version": FORMAT,
            "version": state.table.version,
            "modifiedTime": pc.max(records["modificationTime"]).as_py(),
            "batchId": state.mark - state.generation,
            "number": state.mark,
            "generation": state.generation,
            "files": records.num_rows,
            "bytes": pc.sum(records["size"]).as_py() or 0,
            "updated": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        self.journal.storage.write(SUMMARY, json.dumps(summary, indent=2).encode())

    def _warn(self, text: str) -> None:
        log.warning("%s", text)
        self.report.warnings.append(text)


@dataclass
class _Prepared:
    """A plan that Spark has taken apart."""

    plan: FilePlan
    view: str
    query: str
    frame: DataFrame | None = None

    def drop(self, runner: Runner) -> None:
        runner.spark.catalog.dropTempView(self.view)


@dataclass(frozen=True)
class _Running:
    """A plan that was run and whose outcome the log will tell."""

    plan: FilePlan
    note: str
    began: float


def _with(plan: FilePlan, **changes: object) -> FilePlan:
    from dataclasses import replace

    return replace(plan, **changes)  # type: ignore[arg-type]


def _rows(files: pa.Table) -> Sequence[pa.Table]:
    return [files.slice(index, 1) for index in range(files.num_rows)]


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
