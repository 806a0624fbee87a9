"""Commits on S3, through a proxy that has the faults of networks and stores at the commit of a version."""

from __future__ import annotations

import re
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from penstock import PenstockError
from penstock.api import Lake, connect
from tests.conftest import SESSION, delta_rows
from tests.faulty_proxy import (
    Fault,
    Proxy,
    Request,
    answers,
    answers_after,
    cut,
    cut_after,
    lands_late,
    proxy_of,
)
from tests.s3_server import S3, serve

# A test's faults are few: it is not to wait as long as a store that is down deserves.
QUICK = {
    "spark.hadoop.fs.s3a.retry.limit": "2",
    "spark.hadoop.fs.s3a.retry.interval": "50ms",
    "spark.hadoop.fs.s3a.attempts.maximum": "2",
    "spark.hadoop.fs.penstock.commit.seconds": "20",
}
COMMIT = re.compile(r"_delta_log/\d{20}\.json$")


class World:
    """A lake on a bucket of its own, behind a proxy: Hadoop keeps one client for each bucket."""

    def __init__(self, store: S3, proxy: Proxy, folder: Path) -> None:
        self.store, self.proxy, self.folder = store, proxy, folder

    @property
    def options(self) -> dict[str, str]:
        return {**self.store.options, "endpoint": self.proxy.endpoint}

    def lake(self, **config: str) -> Lake:
        session = {**SESSION, "spark_config": {**SESSION["spark_config"], **QUICK, **config}}
        return connect(f"s3://{self.store.bucket}/lake", session=session, storage_options=self.options)

    def rows(self) -> list[int]:
        """From the server's folder: delta-rs's reader holds Python's lock, which the server needs."""
        return sorted(row["id"] for row in delta_rows(self.folder / "lake" / "s" / "t"))

    @property
    def version(self) -> int:
        return DeltaTable(str(self.folder / "lake" / "s" / "t")).version()


def commits(request: Request) -> bool:
    return request.method == "PUT" and COMMIT.search(request.path) is not None


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    bucket = f"bucket-{uuid.uuid4().hex[:8]}"
    with serve(bucket, tmp_path) as store, proxy_of(store.endpoint) as proxy:
        yield World(store, proxy, tmp_path)


FAULTS: dict[str, Fault] = {
    "409": answers(409, "ConditionalRequestConflict"),
    "412": answers(412, "PreconditionFailed"),
    "500": answers(500, "InternalError"),
    "503": answers(503, "SlowDown"),
    "500 after success": answers_after(500, "InternalError"),
    "503 after success": answers_after(503, "SlowDown"),
    "409 after success": answers_after(409, "ConditionalRequestConflict"),
    "412 after success": answers_after(412, "PreconditionFailed"),
    "cut before": cut,
    "cut after success": cut_after,
    "lands after our read": lands_late(0.7),
}


def test_whatever_a_commit_meets_it_is_there_once(world: World) -> None:
    """One lake and all faults, one at a time and three in a row: a lake takes longer than its commits."""
    lake = world.lake()
    lake.sql("create table s.t as select 0 as id")
    expected = [0]
    for name, fault in FAULTS.items():
        for times in (1, 3):
            number = len(expected)
            world.proxy.fail(commits, fault, times)
            begun = time.monotonic()
            lake.sql(f"insert into s.t values ({number})")
            assert time.monotonic() - begun < 60, name
            world.proxy.calm()
            for late in world.proxy.late:
                late.join()
            expected.append(number)
            assert world.rows() == expected, f"{name}, {times} times"
            assert world.version == number, f"{name}, {times} times"
    assert len(world.proxy.failed) >= 2 * len(FAULTS)


def test_a_version_of_another_writer_is_a_conflict_and_not_ours(world: World) -> None:
    """The answer to our put is lost, and what lies there is another's: Delta goes on with the next version."""
    lake = world.lake()
    lake.sql("create table s.t as select 0 as id")
    table = f"s3://{world.store.bucket}/lake/s/t"

    def another_first(proxy: Proxy, request: Request) -> None:
        import pyarrow as pa
        from deltalake import write_deltalake

        write_deltalake(
            table, pa.table({"id": pa.array([7], pa.int32())}), mode="append", storage_options=world.store.options
        )

    world.proxy.fail(commits, another_first)
    lake.sql("insert into s.t values (1)")
    assert world.rows() == [0, 1, 7]
    assert world.version == 2


@pytest.mark.parametrize("fault", [answers(500, "InternalError"), cut], ids=["500", "cut"])
def test_an_outcome_that_stays_unknown_is_told_as_that(world: World, fault: Fault) -> None:
    """Delta would take "already exists" for another's commit, and commit again at the next version."""
    lake = world.lake(**{"spark.hadoop.fs.penstock.commit.seconds": "3"})
    lake.sql("create table s.t as select 0 as id")
    world.proxy.fail(commits, fault, 10_000)
    begun = time.monotonic()
    with pytest.raises(PenstockError, match="is not known"):
        lake.sql("insert into s.t values (1)")
    assert time.monotonic() - begun < 60
    world.proxy.calm()
    assert world.rows() == [0]
    lake.sql("insert into s.t values (2)")
    assert world.rows() == [0, 2]


def test_a_refusal_is_told_at_once(world: World) -> None:
    lake = world.lake()
    lake.sql("create table s.t as select 0 as id")
    world.proxy.fail(commits, answers(403, "AccessDenied"), 10_000)
    begun = time.monotonic()
    with pytest.raises(PenstockError) as caught:
        lake.sql("insert into s.t values (1)")
    assert "is not known" not in str(caught.value)
    assert time.monotonic() - begun < 15


LARGE = {
    "spark.hadoop.fs.s3a.multipart.size": "5242880",
    "spark.hadoop.fs.s3a.multipart.threshold": "5242880",
    "spark.databricks.delta.commitInfo.userMetadata": "x" * 6_000_000,
}


def test_a_large_commit_is_completed_with_the_condition(world: World) -> None:
    lake = world.lake(**LARGE)
    lake.sql("create table s.t as select 0 as id")
    world.proxy.fail(lambda request: "uploadId=" in request.query and request.method == "POST", cut_after)
    lake.sql("insert into s.t values (1)")
    assert (world.rows(), world.version) == ([0, 1], 1)
    completions = [
        request
        for request in world.proxy.seen
        if request.method == "POST" and "uploadId=" in request.query and COMMIT.search(request.path)
    ]
    assert completions
    assert all(request.is_conditional for request in completions)
    assert not [key for key in world.store.keys("") if "probe" in key]


def test_a_store_that_ignores_the_condition_in_parts_gets_no_large_commit(world: World) -> None:
    world.store.heeds_in_parts = False
    lake = world.lake(**LARGE)
    with pytest.raises(PenstockError, match="upload in parts"):
        lake.sql("create table s.t as select 0 as id")
    assert not [key for key in world.store.keys("") if COMMIT.search(key)]


def test_a_store_that_ignores_the_condition_is_not_written(world: World, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    world.store.heeds = False
    with pytest.raises(PenstockError, match="ignores `If-None-Match"):
        world.lake().sql("create table s.t as select 0 as id")
    assert world.store.keys("lake") == []
    alone = connect(
        f"s3://{world.store.bucket}/lake", session={**SESSION, "single_writer": True}, storage_options=world.options
    )
    alone.sql("create table s.t as select 0 as id")
    alone.sql("insert into s.t values (1)")
    assert (world.rows(), world.version) == ([0, 1], 1)


def test_two_threads_and_delta_rs_lose_nothing(world: World) -> None:
    """Threads of one driver share nothing but the store, as far as the log store is concerned."""
    import pyarrow as pa
    from deltalake import write_deltalake

    world.lake().sql("create table s.t as select 0 as id")
    table, errors = f"s3://{world.store.bucket}/lake/s/t", []

    def by_spark(first: int) -> None:
        try:
            lake = world.lake()
            for number in range(first, first + 10):
                lake.sql(f"insert into s.t values ({number})")
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=by_spark, args=(first,)) for first in (100, 200)]
    for thread in threads:
        thread.start()
    for number in range(300, 310):
        write_deltalake(
            table, pa.table({"id": pa.array([number], pa.int32())}), mode="append", storage_options=world.store.options
        )
    for thread in threads:
        thread.join()
    assert errors == []
    assert world.rows() == [0, *range(100, 110), *range(200, 210), *range(300, 310)]
    assert world.version == 30
