"""Unreadable files, by the names that the ledger has for them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from penstock.files.plan import FilePlan
from penstock.files.quarantine import Quarantine
from penstock.files.records import INGESTED, QUARANTINED, lines
from penstock.files.roots import Roots
from penstock.files.source import FILES

ROOTS = Roots(("/link",), {"/link": "/in"}, {"/link": "/in"})
ROWS = [{"path": f"/link/{name}.json", "modificationTime": 1, "size": 2} for name in "abc"]
FILES_IN = ROOTS.identify(pa.Table.from_pylist(ROWS, schema=FILES))


@pytest.fixture
def quarantine() -> Quarantine:
    made = Quarantine()
    made.add({"/link/b.json": "broken"}, ROOTS)
    return made


def test_nothing_is_bad_at_first():
    good, bad = Quarantine().split(FILES_IN)
    assert (good.num_rows, bad.num_rows) == (3, 0)


def test_files_are_split_by_their_names(quarantine):
    good, bad = quarantine.split(FILES_IN)
    assert good["path"].to_pylist() == ["/in/a.json", "/in/c.json"]
    assert bad.select(["path", "place", "status", "reason"]).to_pylist() == [
        {"path": "/in/b.json", "place": "/link/b.json", "status": "quarantined", "reason": "broken"}
    ]


def test_a_plan_records_them_and_does_not_read_them(quarantine):
    plan = quarantine.taken_out_of(FilePlan(1, 0, lines(FILES_IN, INGESTED)))
    assert plan.read["path"].to_pylist() == ["/in/a.json", "/in/c.json"]
    assert plan.with_status(QUARANTINED)["path"].to_pylist() == ["/in/b.json"]
    assert quarantine.taken_out_of(plan).lines.to_pylist() == plan.lines.to_pylist()


def test_reasons_have_no_secrets():
    made = Quarantine()
    made.add({"/in/a.json": "s3://user:password@bucket failed"}, Roots(("/in",)))
    _, bad = made.split(pa.Table.from_pylist([{"path": "/in/a.json", "modificationTime": 1, "size": 2}], schema=FILES))
    assert "password" not in bad["reason"][0].as_py()
