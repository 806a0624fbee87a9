"""The protocol of files over an object store that loses answers: lake and landing on S3, no file twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from deltalake import DeltaTable

from penstock.api import connect
from penstock.delta.layout import Layout
from penstock.errors import PenstockError
from penstock.files import FileSource, IngestReport
from penstock.files.query import FileQuery
from penstock.protocol.run import run_job
from penstock.sql.names import Name
from tests.s3_server import AFTER, S3, serve
from tests.unit.files.conftest import NO_SPARK, RustJob

ODD = ["10%3A00.json", "a#b.json", "q?r=1.json", "p+q.json", "s p.json", "day=1/ü [x].json"]
AT = 1_700_000_000.123


class StoreJob(RustJob):
    """The same work with delta-rs in Spark's place, on one store."""

    s3: S3

    def _ids(self, paths: list[str]) -> list[int]:
        keys = [path.removeprefix("s3://bucket/") for path in paths]
        return [json.loads(self.s3.objects[key].data)["id"] for key in keys]


@pytest.fixture
def s3() -> Iterator[S3]:
    with serve() as server:
        for number, name in enumerate(ODD):
            server.put(f"in/{name}", json.dumps({"id": number}).encode(), AT + number)
        yield server


def run(s3: S3, **config: Any) -> IngestReport:
    lake = connect("s3://bucket/lake", storage_options=s3.options)
    given = {"source_roots": ["s3://bucket/in"], "safety_buffer_seconds": 0, "max_files_per_trigger": 2, **config}
    source = FileSource.from_mapping(given)
    name, model = Name("bronze", "events"), FileQuery.read("select id from @data")
    work = StoreJob(lake, name, source, model, NO_SPARK, Layout())
    work.s3 = s3
    run_job(work, replace=False)
    return work.report


def ids(s3: S3) -> Counter[int]:
    table = DeltaTable("s3://bucket/lake/bronze/events", storage_options=s3.options)
    return Counter(table.to_pyarrow_table()["id"].to_pylist())


def test_each_file_once_whatever_its_key(s3: S3) -> None:
    report = run(s3)
    assert report.files == len(ODD)
    assert ids(s3) == Counter(range(len(ODD)))
    assert run(s3).nothing_new


def test_plans_whose_answers_are_lost_are_our_own(s3: S3) -> None:
    # The first plan, then the first commits.
    s3.fail("PUT", AFTER, times=3)
    run(s3)
    assert ids(s3) == Counter(range(len(ODD)))
    assert run(s3).nothing_new


def test_a_file_that_changed_since_it_was_listed_comes_in_as_it_is_now(s3: S3) -> None:
    run(s3)
    s3.put(f"in/{ODD[0]}", json.dumps({"id": 100}).encode(), AT + 100)
    assert run(s3, on_rewritten_file="ingest").files == 1
    assert ids(s3)[100] == 1


def test_a_root_without_an_object_is_a_warning_before_the_first_file_and_an_error_after(s3: S3) -> None:
    report = run(s3, source_roots=["s3://bucket/inn"])
    assert report.nothing_new
    assert [text for text in report.warnings if "s3://bucket/inn" in text]
    run(s3)
    kept = dict(s3.objects)
    for name in ODD:
        del s3.objects[f"in/{name}"]
    with pytest.raises(PenstockError, match=r"no object below this root.*s3://bucket/in"):
        run(s3)
    s3.objects.update(kept)
    assert run(s3).nothing_new
