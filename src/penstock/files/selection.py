"""Sorts the listed files: which are ingested, which are only recorded, and which must wait."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.files.backlog import Backlog
from penstock.files.config import FileSource
from penstock.files.quarantine import Quarantine
from penstock.files.records import INGESTED, LINES, READ, REPLACED, SKIPPED, lines, without
from penstock.files.roots import Roots, located
from penstock.files.source import FILES, matching, none
from penstock.secrets import logger
from penstock.spark.reading.virtual_columns import FILE_URI
from penstock.sql.names import Name
from penstock.wording import count

log = logger("penstock.files")


@dataclass
class Selection:
    """The new files of one listing."""

    backlog: Backlog
    aside: pa.Table
    """Files that the next plan records without reading them."""
    young: pa.Table = field(default_factory=lambda: none(FILES))
    """Files younger than the safety buffer: they wait for a later run."""

    @property
    def waiting(self) -> int:
        """How many files are younger than the safety buffer."""
        return int(self.young.num_rows)

    def remove(self, records: pa.Table) -> None:
        """Take out the files that were ingested, by this run or by another one."""
        self.backlog.remove(records)
        self.aside = without(self.aside, records)


@dataclass(frozen=True)
class Selector:
    """Sorts files by the rules of one model."""

    name: Name
    source: FileSource

    def select(
        self,
        listed: pa.Table,
        roots: Roots,
        known: pa.Table,
        table: Table | None,
        quarantine: Quarantine,
        *,
        first: bool,
    ) -> Selection:
        """The files that are not in the ledger (`known`), sorted by what becomes of them.

        `first` says that no file of the table was ingested before: then `starting_timestamp` applies.
        """
        source = self.source
        files = roots.identify(matching(located(without(roots.listed(listed), known)), source))
        if files.num_rows == 0:
            # The common case; it must stay cheap.
            return Selection(Backlog(lines(files, INGESTED), source.max_files_per_trigger, None), none(LINES))
        old, young = self._by_age(files)
        files, quarantined = quarantine.split(old)
        aside = [quarantined]
        if first and source.starting_timestamp is not None:
            start = int(source.starting_timestamp.timestamp() * 1000)
            files, early = _split(files, pc.less(files["modificationTime"], start))
            aside.append(lines(early, SKIPPED, "before starting_timestamp"))
        files, empty = _split(files, pc.equal(files["size"], 0))
        aside.append(lines(empty, SKIPPED, "empty"))
        backlog = Backlog(
            self._rewritten(files, known, table), source.max_files_per_trigger, source.max_bytes_per_trigger
        )
        return Selection(backlog, pa.concat_tables(aside), young)

    def _by_age(self, files: pa.Table) -> tuple[pa.Table, pa.Table]:
        """The files that are old enough, and those that are younger than the safety buffer."""
        seconds = self.source.safety_buffer_seconds
        if not seconds:
            return files, files.slice(0, 0)
        return _split(files, pc.greater(files["modificationTime"], int((time.time() - seconds) * 1000)))

    def _rewritten(self, files: pa.Table, known: pa.Table, table: Table | None) -> pa.Table:
        """The lines of new files and of rewritten ones: their paths are in the ledger with another time or size."""
        if files.num_rows == 0 or known.num_rows == 0:
            return lines(files, INGESTED)
        read = known.filter(pc.is_in(known["status"], pa.array(READ, pa.string())))
        new, changed = _split(files, pc.is_in(files["path"], value_set=read["path"].combine_chunks()))
        policy = self.source.on_rewritten_file
        if changed.num_rows == 0 or policy == "ingest":
            return lines(files, INGESTED)
        example = changed["path"][0].as_py()
        if policy == "fail":
            raise PenstockError(
                f"{count(changed.num_rows, 'ingested file')} changed after the ingestion: {example}",
                where=str(self.name),
                fix="Restore the file, or set `on_rewritten_file` to skip (its rows stay as they are), ingest (again, as a "
                "new file) or replace (its earlier rows are deleted).",
            )
        if policy == "skip":
            log.info(
                "%s: %s changed after the ingestion; the rows stay as they are: %s",
                self.name,
                count(changed.num_rows, "file"),
                example,
            )
            return lines(new, INGESTED)
        if table is None or FILE_URI not in {column.name.lower() for column in table.columns}:
            raise PenstockError(
                "`on_rewritten_file: replace` finds a file's earlier rows by source_file_uri, but the table does not have "
                "this column",
                where=str(self.name),
                fix="Add source_file_uri to the SELECT, and run once with --full-refresh.",
            )
        return pa.concat_tables([lines(new, INGESTED), lines(changed, REPLACED)])


def _split(files: pa.Table, apart: pa.Array) -> tuple[pa.Table, pa.Table]:
    return files.filter(pc.invert(apart)), files.filter(apart)
