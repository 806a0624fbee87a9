"""Every spelling of a store names the same place: roots, sources, ledgers, links and locations."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.api import Lake
from penstock.files import FileSource
from penstock.files.roots import Roots
from penstock.lake import locations
from penstock.lake.relations import Link
from penstock.sql.names import Name
from tests.s3_server import S3, serve

ORDERS = Name("silver", "orders")
SPELLINGS = ["s3://bucket/{}", "s3a://bucket/{}", "S3A://bucket//{}/", "https://bucket.s3.eu-1.amazonaws.com/{}"]


@pytest.fixture
def s3() -> Iterator[S3]:
    with serve() as store:
        yield store


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_root_and_a_link_in_any_spelling(spelling: str, s3: S3) -> None:
    import pyarrow as pa

    write_deltalake("s3://bucket/other/orders", pa.table({"id": [1]}), storage_options=s3.options)
    one = Lake("s3://bucket/lake", storage_options=s3.options)
    one.link(ORDERS, Link("s3://bucket/other/orders"))
    lake = Lake(spelling.format("lake"), storage_options=s3.options)
    assert lake.root == one.root
    found = lake.get(ORDERS)
    assert found.location == "s3://bucket/other/orders"
    assert lake.log_of(ORDERS).version == DeltaTable(found.location, storage_options=s3.options).version() == 0
    # A link that an earlier version wrote in another spelling, and a config in a third one.
    s3.put(
        "lake/silver/orders/_link.json",
        Link(spelling.format("other/orders")).to_bytes(),
    )
    assert lake.is_ours(ORDERS, "s3://bucket/other/orders")
    locations.check_unmoved(lake, ORDERS, "s3://bucket/other/orders")
    assert lake.get(ORDERS).location == "s3://bucket/other/orders"


@pytest.mark.parametrize("before", SPELLINGS)
@pytest.mark.parametrize("now", SPELLINGS)
def test_a_source_in_any_spelling(before: str, now: str) -> None:
    first = FileSource.from_mapping({"source_roots": [before.format("in")]})
    later = FileSource.from_mapping({"source_roots": [now.format("in")]})
    assert first.source_roots == later.source_roots == ("s3://bucket/in",)
    known = Roots.first(first.source_roots, first.roots_as_written)
    roots = known.then(later.source_roots, later.roots_as_written)
    assert roots.unknown_to(known) == []
    assert roots.known_as("s3://bucket/in/a.json") == "s3://bucket/in/a.json"


def test_a_ledger_that_has_the_root_in_the_spelling_of_an_earlier_version() -> None:
    known = Roots(("s3a://bucket/in",), {"s3a://bucket/in": "s3://bucket/in"}, {"s3a://bucket/in": "s3://bucket/in"})
    source = FileSource.from_mapping({"source_roots": ["s3a://bucket/in"]})
    roots = known.then(source.source_roots, source.roots_as_written)
    assert roots.unknown_to(known) == []
    assert roots.known_as("s3://bucket/in/a.json") == "s3://bucket/in/a.json"


def test_two_spellings_of_one_source_are_listed_once() -> None:
    source = FileSource.from_mapping({"source_roots": ["s3://bucket/in", "s3a://bucket/in/"]})
    assert source.source_roots == ("s3://bucket/in",)


def test_a_log_folder_that_a_failed_write_has_left_is_no_table(s3: S3) -> None:
    """Spark marks a folder by an empty object whose name ends in a slash."""
    lake = Lake("s3://bucket/lake", storage_options=s3.options)
    for folder in ("orders/", "orders/_delta_log/", "orders/_delta_log/_staged_commits/"):
        s3.put(f"lake/silver/{folder}", b"")
    assert lake.find(Name("silver", "orders")) is None
    s3.put("lake/silver/orders/_delta_log/00000000000000000004.json", b"")
    assert lake.get("silver.orders").kind == "table", "a broken log is no missing table"
