"""The check of `source_file_uri` with Spark's answer: whether a column keeps its metadata."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock import PenstockError
from penstock.files.query import FileQuery
from penstock.files.reading.file_uri import FileUriCheck
from penstock.spark.reading.file_schema import FileSchema


class FakeSpark:
    """Answers with one column that has this metadata."""

    def __init__(self, metadata: dict[str, Any], name: str = "Source_File_Uri") -> None:
        self.fields = [SimpleNamespace(name=name, metadata=metadata)]
        self.views: list[str] = []
        self.parsed = 0

    def empty(self, schema, virtual, metadata):
        return None

    def as_view(self, frame):
        self.views.append("view")
        return "view"

    def drop_view(self, name):
        self.views.remove(name)

    def select(self, query):
        self.parsed += 1
        return SimpleNamespace(schema=SimpleNamespace(fields=self.fields))

    def check(self, text: str, *names: str, times: int = 1) -> None:
        check = FileUriCheck(FileQuery.read(text), self, self.select, "bronze.events")  # type: ignore[arg-type]
        schema = FileSchema({"type": "struct", "fields": [{"name": name} for name in names]})
        for _ in range(times):
            check.check(self, schema)  # type: ignore[arg-type]


TAKEN = {"penstock.from_files": True}


def test_a_column_that_keeps_its_metadata_passes_once_for_a_schema() -> None:
    spark = FakeSpark(TAKEN)
    spark.check("select id, source_file_uri from @data", "id", times=3)
    assert spark.parsed == 1
    assert spark.views == []


def test_a_select_without_the_column_passes() -> None:
    FakeSpark({}, name="id").check("select id from @data", "id")


def test_a_column_that_lost_its_metadata_is_an_error() -> None:
    spark = FakeSpark({})
    with pytest.raises(PenstockError, match=r"does not take it from @data as it is \(bronze\.events\)"):
        spark.check("select *, source_file_uri from @data", "id")
    assert spark.views == []


def test_files_with_a_column_of_that_name_are_an_error() -> None:
    with pytest.raises(PenstockError, match="the files have a column of their own"):
        FakeSpark(TAKEN).check("select source_file_uri from @data", "SOURCE_FILE_URI")


def test_a_text_that_computes_it_is_an_error_before_spark_parses_it() -> None:
    spark = FakeSpark(TAKEN)
    with pytest.raises(PenstockError, match=r"computes it from something else: LOWER"):
        spark.check("select lower(source_file_uri) as source_file_uri from @data")
    assert spark.parsed == 0
