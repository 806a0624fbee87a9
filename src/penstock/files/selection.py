"""Which of the listed files come in, which are only recorded, and which must wait."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.files.config import FileSource
from penstock.files.plan import INGESTED, LINES, QUARANTINED, READ, REPLACED, SKIPPED, Backlog, lines, without
from penstock.files.report import count
from penstock.files.roots import Roots, located
from penstock.files.source import matching, none
from penstock.secrets import logger
from penstock.sql.names import Name

log = logger("penstock.files")


@dataclass
class Selection:
    """The files of one listing, sorted out."""

    backlog: Backlog
    aside: pa.Table
    """Files that the next plan records without reading them."""
    waiting: int = 0
    """How many are younger than the safety buffer."""

    def remove(self, records: pa.Table) -> None:
        """Take out what has come in, by us or by another."""
        self.backlog.remove(records)
        self.aside = without(self.aside, records)


@dataclass(frozen=True)
class Selector:
    """The rules of one model."""

    name: Name
    source: FileSource

    def select(
        self,
        listed: pa.Table,
        roots: Roots,
        known: pa.Table,
        table: Table | None,
        bad: Mapping[str, str],
        *,
        first: bool,
    ) -> Selection:
        """Take out what is known, what is not wanted, what is not to be read and what must wait."""
        source = self.source
        files = roots.identify(matching(located(without(roots.listed(listed), known)), source))
        if files.num_rows == 0:
            # The common case, and one that must stay cheap.
            return Selection(Backlog(lines(files, INGESTED), source.max_files_per_trigger, None), none(LINES))
        old = self._old_enough(files)
        waiting = files.num_rows - old.num_rows
        files, quarantined = _split(old, pc.is_in(old["path"], pa.array(list(bad), pa.string())))
        aside = [set_aside(quarantined, bad)]
        if first and source.starting_timestamp is not None:
            start = int(source.starting_timestamp.timestamp() * 1000)
            files, early = _split(files, pc.less(files["modificationTime"], start))
            aside.append(lines(early, SKIPPED, "before starting_timestamp"))
        files, empty = _split(files, pc.equal(files["size"], 0))
        aside.append(lines(empty, SKIPPED, "empty"))
        backlog = Backlog(
            self._rewritten(files, known, table), source.max_files_per_trigger, source.max_bytes_per_trigger
        )
        return Selection(backlog, pa.concat_tables(aside), waiting)

    def _old_enough(self, files: pa.Table) -> pa.Table:
        seconds = self.source.safety_buffer_seconds
        if not seconds:
            return files
        return files.filter(pc.less_equal(files["modificationTime"], int((time.time() - seconds) * 1000)))

    def _rewritten(self, files: pa.Table, known: pa.Table, table: Table | None) -> pa.Table:
        """Files whose path is in already, with another time or size: as `on_rewritten_file` says."""
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
                f"{count(changed.num_rows, 'file')} that came in already changed since: {example}",
                where=str(self.name),
                fix="Set `on_rewritten_file` to skip (leave the rows as they are), ingest (again, as a new file) or "
                "replace (its earlier rows leave), or restore the file.",
            )
        if policy == "skip":
            log.info("%s: %s that came in already changed since, and stay as they were", self.name, example)
            return lines(new, INGESTED)
        if table is None or "source_file_uri" not in {column.name.lower() for column in table.columns}:
            raise PenstockError(
                "`on_rewritten_file: replace` finds a file's earlier rows by source_file_uri, which the table lacks",
                where=str(self.name),
                fix="Add source_file_uri to the SELECT, and run once with --full-refresh.",
            )
        return pa.concat_tables([lines(new, INGESTED), lines(changed, REPLACED)])


def set_aside(files: pa.Table, bad: Mapping[str, str]) -> pa.Table:
    """Unreadable files, recorded each with its reason."""
    parts = [files.slice(index, 1) for index in range(files.num_rows)]
    recorded = [lines(part, QUARANTINED, bad[part["path"][0].as_py()]) for part in parts]
    return pa.concat_tables(recorded) if recorded else none(LINES)


def _split(files: pa.Table, apart: pa.Array) -> tuple[pa.Table, pa.Table]:
    return files.filter(pc.invert(apart)), files.filter(apart)
