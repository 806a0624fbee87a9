"""Windows of files on an object store, where a mistyped prefix lists as nothing."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import NotFound, PenstockError
from penstock.files import FileQuery, FileSource, Listings
from penstock.windows import DatedPath, Window, WindowSettings
from penstock.windows.query import FileSelect
from tests.s3_server import S3, serve

DAY, EMPTY_DAY = Window.of("2026-04-01", "2026-04-02"), Window.of("2026-04-02", "2026-04-03")


@pytest.fixture
def s3() -> Iterator[S3]:
    with serve() as server:
        server.put("in/a#b/2026/04/01/10%3A00.json", b"{}")
        yield server


def select(s3: S3, *, path: str | None = None, roots: list[str] | None = None) -> FileSelect:
    config: dict[str, Any] = {"event_time": "_date", "batch_size": "day", "begin": "2026-04-01"}
    settings = WindowSettings.from_config(config)
    dated = None if path is None else DatedPath(path)
    source = FileSource.from_mapping(
        {"source_roots": roots or [dated.root if dated else ""], "safety_buffer_seconds": 0}
    )
    lake: Any = SimpleNamespace(storage_options=s3.options)
    model = FileQuery.read("select * from @data")
    return FileSelect(lake, lake, model, source, dated, settings, Listings(s3.options))


def test_a_day_without_objects_is_empty_when_others_have_some(s3: S3) -> None:
    found = select(s3, path="s3://bucket/in/a#b/%Y/%m/%d/*.json")
    assert not found.is_empty(DAY)
    assert found.is_empty(EMPTY_DAY)


def test_a_dated_path_whose_fixed_part_has_no_object_empties_no_window(s3: S3) -> None:
    found = select(s3, path="s3://bucket/inn/%Y/%m/%d/*.json")
    for ask in (found.is_empty, found.is_settled):
        with pytest.raises(NotFound, match=r"s3://bucket/inn.*`source_path`"):
            ask(DAY)


def test_a_root_without_any_object_empties_no_window(s3: S3) -> None:
    assert not select(s3, roots=["s3://bucket/in"]).is_empty(DAY)
    with pytest.raises(NotFound, match=r"s3://bucket/inn.*`source_roots`"):
        select(s3, roots=["s3://bucket/in", "s3://bucket/inn"]).is_empty(DAY)


def test_a_store_that_does_not_list_empties_no_window(s3: S3) -> None:
    s3.fail("LIST", status=403)
    with pytest.raises(PenstockError, match="could not be listed"):
        select(s3, path="s3://bucket/in/a#b/%Y/%m/%d/*.json").is_empty(EMPTY_DAY)


def test_only_the_folders_of_the_window_are_listed(s3: S3) -> None:
    found = select(s3, path="s3://bucket/in/a#b/%Y/%m/%d/*.json")
    for _ in range(3):
        found.is_empty(EMPTY_DAY)
    assert s3.requests["LIST"] == 2  # the day's folder, and whether there is anything at all


def test_the_size_of_the_other_days_does_not_matter(s3: S3) -> None:
    for number in range(3_000):
        s3.put(f"in/a#b/2026/03/{number % 28 + 1:02}/{number}.json", b"{}")
    found = select(s3, path="s3://bucket/in/a#b/%Y/%m/%d/*.json")
    assert not found.is_empty(DAY)
    assert s3.requests["LIST"] == 1
    assert found.is_empty(EMPTY_DAY)
    assert s3.requests["LIST"] == 3  # of the folder above, one page
