"""A store that ignores `If-None-Match` is found before the first commit."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock import PenstockError
from penstock.spark import conditional_writes
from penstock.spark.conditional_writes import check_conditional_writes
from tests.s3_server import S3, serve


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    monkeypatch.setenv("PENSTOCK_CACHE", str(tmp_path / "cache"))
    conditional_writes._check.cache_clear()
    with serve() as store:
        yield store


def in_another_process() -> None:
    conditional_writes._check.cache_clear()


def test_a_store_that_heeds_is_asked_once_a_machine(store: S3) -> None:
    check_conditional_writes("s3://bucket/lake", store.options)
    assert store.requests["PUT"] == 2
    assert store.keys("") == []
    for _ in range(2):
        check_conditional_writes("s3://bucket/lake", store.options)
    in_another_process()
    check_conditional_writes("s3://bucket/lake", store.options)
    check_conditional_writes("s3://bucket/other", store.options)
    assert store.requests["PUT"] == 2


def test_a_store_that_overwrites_is_refused(store: S3) -> None:
    store.heeds = False
    for _ in range(2):
        with pytest.raises(PenstockError, match="ignores `If-None-Match") as caught:
            check_conditional_writes("s3://bucket/lake", store.options)
        assert "single_writer" in str(caught.value)
    assert store.keys("") == []
    store.heeds = True
    check_conditional_writes("s3://bucket/lake", store.options)


def test_one_writer_needs_no_condition(store: S3, caplog: pytest.LogCaptureFixture) -> None:
    store.heeds = False
    with caplog.at_level(logging.DEBUG, "penstock.stores"):
        check_conditional_writes("s3://bucket/lake", store.options, single_writer=True)
    assert "one process at a time" in caplog.text
    assert not store.requests


@pytest.mark.parametrize("root", ["/data/lake", "gs://bucket/lake", "abfss://c@a.dfs.core.windows.net/lake"])
def test_other_stores_are_not_asked(root: str) -> None:
    check_conditional_writes(root, {})


def test_a_store_that_fails_is_no_verdict(store: S3) -> None:
    store.fail("PUT", status=403, times=1)
    with pytest.raises(PenstockError) as caught:
        check_conditional_writes("s3://bucket/lake", store.options)
    assert "If-None-Match" not in str(caught.value)
    check_conditional_writes("s3://bucket/lake", store.options)


def test_secrets_are_in_no_file_name(store: S3, tmp_path: Path) -> None:
    check_conditional_writes("s3://bucket/lake", store.options)
    in_another_process()
    check_conditional_writes("s3://bucket/lake", {**store.options, "secret_access_key": "another"})
    assert len(list((tmp_path / "cache" / "compiled").iterdir())) == 1
    assert store.requests["PUT"] == 2
