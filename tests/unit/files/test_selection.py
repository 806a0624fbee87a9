"""What becomes of each listed file."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pyarrow as pa
import pytest

from penstock import PenstockError
from penstock.files import FileSource
from penstock.files.plan import FilePlan
from penstock.files.quarantine import Quarantine
from penstock.files.records import INGESTED, RECORDS, REPLACED, SKIPPED, lines
from penstock.files.roots import Roots
from penstock.files.selection import Selector
from penstock.files.source import FILES, none
from penstock.sql.names import Name

ROOTS = Roots.first(["/in"])
WITH_URI = SimpleNamespace(columns=[SimpleNamespace(name="Source_File_URI")])


def listed(**sizes: int) -> pa.Table:
    rows = [{"path": f"/in/{name}.json", "modificationTime": 1000, "size": size} for name, size in sizes.items()]
    return pa.Table.from_pylist(rows, schema=FILES)


def known(**sizes: int) -> pa.Table:
    return FilePlan(1, 0, lines(ROOTS.identify(listed(**sizes)), INGESTED)).records()


def select(files: pa.Table, records: pa.Table | None = None, *, table=None, quarantine=None, first=False, **config):
    source = FileSource.from_mapping({"source_roots": ["/in"], "safety_buffer_seconds": 0, **config})
    ledger = none(RECORDS) if records is None else records
    selector = Selector(Name("a", "b"), source)
    return selector.select(files, ROOTS, ledger, table, quarantine or Quarantine(), first=first)


def statuses(table: pa.Table) -> dict[str, str]:
    return dict(zip(table["path"].to_pylist(), table["status"].to_pylist(), strict=True))


def test_known_files_and_files_that_no_pattern_matches_are_left_out():
    found = select(listed(a=1, b=1, c=1), known(a=1), source_exclude=["c"])
    assert statuses(found.backlog.head()) == {"/in/b.json": INGESTED}


def test_empty_files_are_recorded():
    found = select(listed(a=1, b=0))
    assert statuses(found.backlog.head()) == {"/in/a.json": INGESTED}
    assert statuses(found.aside) == {"/in/b.json": SKIPPED}


def test_young_files_wait():
    files = listed(a=1, b=1)
    now = pa.array([1000, int(time.time() * 1000)], pa.int64())
    found = select(files.set_column(1, "modificationTime", now), safety_buffer_seconds=30)
    assert found.waiting == 1
    assert statuses(found.backlog.head()) == {"/in/a.json": INGESTED}


def test_starting_timestamp_holds_for_the_first_batch_only():
    config = {"starting_timestamp": "2023-01-01T00:00:00Z"}
    assert statuses(select(listed(a=1), first=True, **config).aside) == {"/in/a.json": SKIPPED}
    assert statuses(select(listed(a=1), **config).backlog.head()) == {"/in/a.json": INGESTED}


def test_unreadable_files_are_recorded():
    quarantine = Quarantine()
    quarantine.add({"/in/a.json": "broken"}, ROOTS)
    found = select(listed(a=1, b=1), quarantine=quarantine)
    assert found.aside["reason"].to_pylist() == ["broken"]
    assert statuses(found.backlog.head()) == {"/in/b.json": INGESTED}


@pytest.mark.parametrize(
    ("policy", "result"),
    [
        ("ingest", {"/in/a.json": INGESTED, "/in/b.json": INGESTED}),
        ("skip", {"/in/b.json": INGESTED}),
        ("replace", {"/in/a.json": REPLACED, "/in/b.json": INGESTED}),
    ],
)
def test_rewritten_files(policy, result):
    found = select(listed(a=2, b=1), known(a=1), table=WITH_URI, on_rewritten_file=policy)
    assert statuses(found.backlog.head()) == result


def test_a_rewritten_file_is_an_error_by_default():
    with pytest.raises(PenstockError, match=r"1 ingested file changed after the ingestion: /in/a\.json"):
        select(listed(a=2), known(a=1))


def test_replacing_needs_source_file_uri():
    table = SimpleNamespace(columns=[SimpleNamespace(name="id")])
    with pytest.raises(PenstockError, match=r"source_file_uri, but the table does not have"):
        select(listed(a=2), known(a=1), table=table, on_rewritten_file="replace")


def test_files_that_were_ingested_meanwhile_are_taken_out():
    found = select(listed(a=1, b=1, c=0))
    found.remove(known(b=1, c=0))
    assert statuses(found.backlog.head()) == {"/in/a.json": INGESTED}
    assert found.aside.num_rows == 0
