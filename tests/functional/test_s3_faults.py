"""An ingest and a merge of changes on S3, with a fault at each of their requests: nothing is lost, and nothing twice.

The requests of a run without faults are counted first. Then each run meets one fault, at the next of these requests.
`make test` takes some of them, `make chaos` all.
"""

from __future__ import annotations

import itertools
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from penstock import PenstockError
from tests.conftest import delta_rows
from tests.faulty_proxy import Answer, Proxy, Request, answers, answers_after, cut, cut_after, lands_late, proxy_of
from tests.functional.test_s3_log import World
from tests.s3_server import serve

RUNS = int(os.environ.get("PENSTOCK_FAULTS", "8"))
"""How many runs meet a fault."""
SECONDS = 90
READS = (answers(500, "InternalError"), answers(503, "SlowDown"), cut)
WRITES = (
    answers(500, "InternalError"),
    answers_after(503, "SlowDown"),
    cut,
    cut_after,
)
PUTS_IF_ABSENT = (
    answers(409, "ConditionalRequestConflict"),
    answers_after(500, "InternalError"),
    cut_after,
    answers(412, "PreconditionFailed"),
    lands_late(0.5),
    answers_after(503, "SlowDown"),
)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    # Hadoop keeps one client for each bucket.
    with serve(f"faults-{uuid.uuid4().hex[:8]}", tmp_path) as store, proxy_of(store.endpoint) as proxy:
        yield World(store, proxy, tmp_path)


def chosen(turn: int) -> Callable[[Proxy, Request], Answer | None]:
    """A fault that fits the request it meets."""

    def fault(proxy: Proxy, request: Request) -> Answer | None:
        kinds = PUTS_IF_ABSENT if request.is_conditional else READS if request.method in ("GET", "HEAD") else WRITES
        return kinds[turn % len(kinds)](proxy, request)

    return fault


def with_faults(world: World, run: Callable[[], object], check: Callable[[], None]) -> None:
    """Call `run` without a fault, and then with a fault at one request after the other, and `check` after each."""
    before = len(world.proxy.seen)
    run()
    check()
    requests = len(world.proxy.seen) - before
    assert requests > 10
    places = range(requests) if requests <= RUNS else [index * requests // RUNS for index in range(RUNS)]
    for turn, place in enumerate(places):
        count = itertools.count()
        world.proxy.fail(lambda request, count=count, place=place: next(count) == place, chosen(turn))
        begun = time.monotonic()
        try:
            run()
        except PenstockError as error:
            told = f"{error}"
        else:
            told = "no error"
        took = time.monotonic() - begun
        world.proxy.calm()
        where = f"request {place} of {requests}, {world.proxy.failed[-1:]}: {told}"
        assert took < SECONDS, where
        for late in world.proxy.late:
            late.join()
        run()
        try:
            check()
        except AssertionError as error:
            raise AssertionError(f"{where}: {error}") from error
    assert world.proxy.failed


def test_an_ingest_with_a_fault_at_each_request(world: World) -> None:
    lake, landing = world.lake(), world.folder / "landing"
    landing.mkdir()
    landed: list[int] = []

    def run() -> None:
        number = len(landed) + 1
        (landing / f"{number}.json").write_text(json.dumps({"id": number}) + "\n")
        landed.append(number)
        lake.ingest("s.t", roots=[f"s3://{world.store.bucket}/landing"], safety_buffer_seconds=0)

    def check() -> None:
        rows = sorted(row["id"] for row in delta_rows(world.folder / "lake" / "s" / "t"))
        assert rows == landed

    with_faults(world, run, check)


def test_a_merge_with_a_fault_at_each_request(world: World) -> None:
    lake = world.lake()
    lake.sql("create table s.source tblproperties ('delta.enableChangeDataFeed' = 'true') as select 0 as id, 0 as n")
    number = itertools.count(1)

    def run() -> None:
        turn = next(number)
        with world.proxy.paused():
            lake.sql(f"insert into s.source values ({turn}, {turn})")
            lake.sql(f"update s.source set n = n + 100 where id = {turn - 1}")
        lake.merge_changes("s.target", key="id", select="select id, n from s.source")

    def check() -> None:
        def rows(table: str) -> list[tuple[int, int]]:
            return sorted((row["id"], row["n"]) for row in delta_rows(world.folder / "lake" / "s" / table))

        assert rows("target") == rows("source")

    with_faults(world, run, check)
