"""The format of files, and the config keys that do not fit it."""

from __future__ import annotations

import pytest

from penstock import PenstockError
from penstock.files import FileSource
from penstock.files.reading.options import format_of, read_options


def source(**config) -> FileSource:
    return FileSource.from_mapping({"source_roots": ["/landing"], **config})


def test_the_format_is_that_of_the_config_or_of_the_extensions():
    assert format_of(["/landing/a.bin"], source(source_format="json")) == "json"
    assert format_of(["/landing/a.jsonl", "/landing/b.json.gz"], source()) == "json"
    assert format_of([], source()) == "parquet"


def test_files_without_a_format_or_with_two_are_an_error():
    with pytest.raises(PenstockError, match=r"/landing/a\.bin.*`source_format`"):
        format_of(["/landing/a.bin"], source())
    with pytest.raises(PenstockError, match=r"more than one format: /landing/a\.json and /landing/b\.csv"):
        format_of(["/landing/a.json", "/landing/b.csv"], source())


def test_options_have_the_roots_of_the_plan_else_of_the_config():
    assert read_options(source(), "json").roots == ("/landing",)
    assert read_options(source(), "json", ["/moved"]).roots == ("/moved",)


@pytest.mark.parametrize("key", ["path", "pathGlobFilter", "modifiedAfter", "ignoreMissingFiles"])
def test_an_option_that_chooses_files_is_an_error(key):
    with pytest.raises(PenstockError, match=rf"can't choose files, but {key} would"):
        read_options(source(source_options={key: "x"}), "json")


def test_rescued_data_needs_csv_or_json_in_utf8():
    rescuing = source(rescued_data_column="rescued")
    assert read_options(rescuing, "csv").rescued_column == "rescued"
    with pytest.raises(PenstockError, match="these files are parquet"):
        read_options(rescuing, "parquet")
    utf16 = source(rescued_data_column="rescued", source_options={"Encoding": "UTF-16"})
    with pytest.raises(PenstockError, match="names the encoding UTF-16"):
        read_options(utf16, "json")
    assert not read_options(utf16, "csv").is_utf8
