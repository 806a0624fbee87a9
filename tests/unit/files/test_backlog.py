"""How batches are cut, and what is left after some files were ingested."""

from __future__ import annotations

import pyarrow as pa

from penstock.files.backlog import Backlog
from penstock.files.records import INGESTED, lines
from penstock.files.source import FILES


def files(*sizes: int) -> pa.Table:
    rows = [{"path": f"/in/{index}", "modificationTime": index, "size": size} for index, size in enumerate(sizes)]
    return lines(pa.Table.from_pylist(rows, schema=FILES), INGESTED)


def paths(table: pa.Table) -> list[str]:
    return [path.rsplit("/", 1)[1] for path in table["path"].to_pylist()]


def batches(backlog: Backlog) -> list[list[str]]:
    found = []
    while backlog.batches:
        head = backlog.head()
        found.append(paths(head))
        backlog.remove(head)
    return found


def test_batches_are_cut_by_files():
    assert batches(Backlog(files(1, 1, 1, 1, 1), 2, None)) == [["0", "1"], ["2", "3"], ["4"]]


def test_batches_are_cut_by_bytes_and_have_one_file_at_least():
    assert batches(Backlog(files(5, 5, 100, 1, 1), 10, 10)) == [["0", "1"], ["2"], ["3", "4"]]


def test_the_oldest_files_come_first():
    backlog = Backlog(files(1, 1, 1).take([2, 0, 1]), 2, None)
    assert paths(backlog.head()) == ["0", "1"]
    assert paths(backlog.second()) == ["2"]


def test_no_files_are_no_batches():
    backlog = Backlog(files(), 2, None)
    assert backlog.batches == 0
    assert backlog.head().num_rows == backlog.second().num_rows == 0


def test_files_that_another_run_has_ingested_are_taken_out_and_the_rest_is_cut_again():
    backlog = Backlog(files(1, 1, 1, 1, 1), 2, None)
    backlog.remove(backlog.head())
    backlog.remove(files(1, 1, 1, 1, 1).slice(3, 1))
    assert batches(backlog) == [["2", "4"]]
