from __future__ import annotations

from datetime import datetime, timezone

import pytest

from penstock import PenstockError
from penstock.files import FileSource
from penstock.windows import DatedPath


def read(**config):
    return FileSource.from_mapping({"source_roots": ["/landing"], **config})


def test_all_problems_come_in_one_message_with_key_value_and_fix():
    with pytest.raises(PenstockError) as error:
        FileSource.from_mapping(
            {
                "source_patterns": ["(a"],
                "max_file_per_trigger": 3,
                "max_bytes_per_trigger": "ten",
                "safety_buffer_seconds": -1,
                "starting_timestamp": "2026-01-01",
                "on_bad_file": "ignore",
                "source_columns": [{"name": "id", "type": "strnig"}],
            }
        )
    said = str(error.value)
    for part in (
        "`source_roots` is missing",
        "at position 0",
        "did you mean `max_files_per_trigger`?",
        "`max_bytes_per_trigger` must be a number of bytes, or a size such as 10g, not 'ten'",
        "`safety_buffer_seconds` must be a number of seconds, 0 or more, not -1",
        "a time with its offset",
        "`on_bad_file` must be one of fail, quarantine, not 'ignore'",
        "strnig",
    ):
        assert part in said


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", True, []])
@pytest.mark.parametrize("key", ["max_files_per_trigger", "source_compaction_interval", "source_retention_files"])
def test_counts_are_positive_whole_numbers(key, value):
    with pytest.raises(PenstockError, match=f"`{key}`"):
        read(**{key: value})


@pytest.mark.parametrize(
    ("given", "bytes"), [(1, 1), ("10g", 10 << 30), ("5 MB", 5 << 20), ("3k", 3 << 10), ("7GiB", 7 << 30)]
)
def test_sizes(given, bytes):
    assert read(max_bytes_per_trigger=given).max_bytes_per_trigger == bytes


def test_aliases_and_relative_roots():
    source = FileSource.from_mapping(
        {"ss_source_path": "landing", "scope_columns": [{"name": "a", "type": "int"}]}, base="/p"
    )
    assert source.source_roots == ("/p/landing",)
    assert source.source_columns[0].type == "int"
    with pytest.raises(PenstockError, match="given twice"):
        FileSource.from_mapping({"ss_source_path": "a", "source_roots": ["b"]})


def test_starting_timestamp_is_an_instant():
    assert read(starting_timestamp="2026-01-01T02:00:00+02:00").starting_timestamp == datetime(
        2026, 1, 1, tzinfo=timezone.utc
    )


def test_a_computed_column_needs_no_type():
    assert not read(source_columns=[{"name": "x", "extract": False}]).source_columns[0].extract


@pytest.mark.parametrize(
    "config",
    [
        {"safety_buffer_seconds": 1e17},
        {"starting_timestamp": "0001-01-01T00:00:00+14:00"},
        {"starting_timestamp": "9999-12-31T23:59:59-14:00"},
    ],
)
def test_times_out_of_range_are_refused(config):
    with pytest.raises(PenstockError):
        FileSource.from_mapping({"source_roots": ["/a"], **config})


@pytest.mark.parametrize("pattern", ["[z-a].json", "[\\].json"])
def test_a_range_in_source_path_that_is_none(pattern):
    assert DatedPath.problems(f"/landing/%Y/{pattern}")
