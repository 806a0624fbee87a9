"""When the roots are listed, and when the listing is compared with the ledger."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from penstock import PenstockError
from penstock.files import FileSource
from penstock.files.landing import Landing
from penstock.files.plan import FilePlan
from penstock.files.records import INGESTED, RECORDS, lines
from penstock.files.roots import Roots
from penstock.files.source import FILES, none
from penstock.sql.names import Name

STATE: Any = SimpleNamespace(table=object(), mark=5, generation=1)
NO_TABLE: Any = SimpleNamespace(table=None, mark=None, generation=0)


class FakeListings:
    """A listing that counts how often it is asked for, and whether it was to be fresh."""

    def __init__(self) -> None:
        self.names = ["a"]
        self.asked: list[bool] = []
        self.empty: set[str] = set()

    def of(self, roots, *, fresh=False):
        self.asked.append(fresh)
        rows = [{"path": f"{root}/{name}", "modificationTime": 1, "size": 1} for root in roots for name in self.names]
        return pa.Table.from_pylist(rows, schema=FILES)

    def is_empty_store_root(self, root):
        return root in self.empty


def records(*paths: str) -> pa.Table:
    rows = [{"path": path, "modificationTime": 1, "size": 1} for path in paths]
    return FilePlan(1, 1, lines(pa.Table.from_pylist(rows, schema=FILES), INGESTED)).records()


@pytest.fixture
def listings() -> FakeListings:
    return FakeListings()


@pytest.fixture
def said() -> list[str]:
    return []


def landing(
    listings, said, ingested: pa.Table | None = None, root: str = "/in", known: str = "/in", **config
) -> Landing:
    source = FileSource.from_mapping({"source_roots": [root], "safety_buffer_seconds": 0, **config})
    table = none(RECORDS) if ingested is None else ingested
    ledger: Any = SimpleNamespace(records=table, roots=Roots.first([known]))
    return Landing(Name("a", "b"), source, listings, ledger, said.append)


def paths(selection) -> list[str]:
    return selection.backlog.head()["path"].to_pylist()


def test_files_are_listed_once_until_one_of_them_has_changed(listings, said):
    made = landing(listings, said)
    assert (made.batches, made.second().num_rows) == (0, 0)
    assert paths(made.look(STATE, replace=False)) == ["/in/a"]
    assert made.look(STATE, replace=False) is made.look(STATE, replace=False)
    assert made.batches == 1
    made.forget()
    made.look(STATE, replace=False)
    made.list_again()
    made.look(STATE, replace=False)
    assert listings.asked == [False, False, True]


def test_ingested_files_are_not_new_unless_the_table_is_replaced(listings, said):
    made = landing(listings, said, records("/in/a"))
    assert paths(made.look(STATE, replace=False)) == []
    made.forget()
    assert paths(made.look(STATE, replace=True)) == ["/in/a"]
    made.forget()
    assert paths(made.look(NO_TABLE, replace=False)) == ["/in/a"]


def test_files_that_another_run_has_ingested_are_taken_out(listings, said):
    made = landing(listings, said)
    made.remove(records("/in/a"))
    assert paths(made.look(STATE, replace=False)) == ["/in/a"]
    made.remove(records("/in/a"))
    assert made.batches == 0


def test_a_store_root_without_objects(listings, said):
    listings.empty, listings.names = {"s3://bucket/in"}, []
    made = landing(listings, said, root="s3://bucket/in", known="s3://bucket/in")
    made.look(STATE, replace=False)
    assert said == ["a.b: there is no object below s3://bucket/in"]
    made = landing(listings, said, records("s3://bucket/in/a"), root="s3://bucket/in", known="s3://bucket/in")
    with pytest.raises(PenstockError, match="files of it were ingested before"):
        made.look(STATE, replace=False)


@pytest.mark.parametrize(
    ("policy", "new"),
    [("accept", []), ("ingest", ["/moved/a"])],
)
def test_a_moved_root(listings, said, policy, new):
    made = landing(listings, said, records("/in/a"), root="/moved", on_moved_root=policy)
    assert paths(made.look(STATE, replace=False)) == new
    assert made.roots.name_of("/moved") == ("/in" if policy == "accept" else "/moved")


def test_a_moved_root_is_an_error_by_default(listings, said):
    made = landing(listings, said, records("/in/a"), root="/moved")
    with pytest.raises(PenstockError, match=r"Already ingested from /in: 1 file below /moved, .*on_moved_root: accept"):
        made.look(STATE, replace=False)
