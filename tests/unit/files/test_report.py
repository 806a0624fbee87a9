"""What is reported of the plans of a run."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock.files.plan import FilePlan
from penstock.files.progress import Progress
from penstock.files.records import INGESTED, QUARANTINED, SKIPPED, lines
from penstock.files.report import Batch, FileReporter, IngestReport
from penstock.files.source import FILES
from penstock.protocol.job import Running
from penstock.sql.names import Name

ROWS = [{"path": f"/in/{name}.json", "modificationTime": 1, "size": 2} for name in "abc"]
TABLE = pa.Table.from_pylist(ROWS, schema=FILES)
PLAN = FilePlan(
    7,
    5,
    pa.concat_tables(
        [
            lines(TABLE.slice(0, 1), INGESTED),
            lines(TABLE.slice(1, 1), SKIPPED, "empty"),
            lines(TABLE.slice(2, 1), QUARANTINED, "broken"),
        ]
    ),
)


class Ran(Running[FilePlan]):
    """A plan whose commit is known without a log."""

    def outcome(self, state):
        return None if self.note == "lost" else SimpleNamespace(rows_inserted=10, version=3)


@pytest.fixture
def said() -> list[object]:
    return []


@pytest.fixture
def report() -> IngestReport:
    return IngestReport()


@pytest.fixture
def reporter(report, said) -> FileReporter:
    return FileReporter(Name("a", "b"), report, Progress("a.b"), on_batch=said.append, warn=said.append)


def state(mark: int | None, *, void: bool = False) -> SimpleNamespace:
    return SimpleNamespace(table=object(), mark=mark, last_is_void=void)


def test_a_committed_batch(reporter, report, said):
    reporter.committed(Ran(PLAN, "note"), state(7), 4)
    assert report.skipped == 1
    assert report.quarantined == {"/in/c.json": "broken"}
    [batch] = report.batches
    assert (batch.number, batch.place, batch.of, batch.files, batch.bytes, batch.rows) == (2, 1, 5, 1, 2, 10)
    assert said == ["/in/c.json can't be read and was left out: broken", batch]
    assert isinstance(batch, Batch)


@pytest.mark.parametrize("after", [state(None), state(6), state(7, void=True)])
def test_a_plan_that_is_not_in_the_table_is_not_reported(reporter, report, said, after):
    reporter.committed(Ran(PLAN, "note"), after, 4)
    assert (report, said) == (IngestReport(), [])


def test_a_batch_that_another_run_has_committed_is_not_counted(reporter, report):
    reporter.committed(Ran(PLAN, "lost"), state(7), 4)
    assert report.nothing_new


def test_a_plan_without_rows_is_no_batch(reporter, report):
    reporter.committed(Ran(PLAN), state(7), 4)
    assert report.nothing_new
    assert report.skipped == 1


def test_a_model_that_looks_across_rows(reporter, said):
    reporter.warn_across_rows(None)
    assert said == []
    reporter.warn_across_rows("GROUP BY")
    assert "a.b has GROUP BY: it is computed within each batch" in said[0]
