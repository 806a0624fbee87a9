"""Which schema files are read with, and which files are quarantined before a plan is written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import StatementError
from penstock.files import FileSource
from penstock.files.query import FileQuery
from penstock.files.reading.bad_files import BadFiles
from penstock.files.reading.reader import Reader, ReadRequest
from penstock.spark.reading.file_schema import FileSchema
from penstock.sql.names import Name


def schema(name: str) -> FileSchema:
    return FileSchema({"type": "struct", "fields": [{"name": name}]})


class FakeFrames:
    """Infers and reads without Spark."""

    def __init__(self, declared: FileSchema | None = None, bad: tuple[str, ...] = ()) -> None:
        self._declared = declared
        self._bad = bad
        self.read: list[FileSchema] = []

    def declared(self):
        return self._declared

    def infer(self, paths, known=None):
        if bad := [path for path in paths if path in self._bad]:
            raise StatementError(f"{bad[0]} is broken", condition=None)
        return schema("inferred")

    def rows(self, paths, schema, virtual):
        self.read.append(schema)

    def as_view(self, frame):
        return "view"


def reader(frames: FakeFrames, **config: Any) -> Reader:
    frame = SimpleNamespace(columns=[], schema=SimpleNamespace(fields=[]))
    spark: Any = SimpleNamespace(
        frames=lambda options: frames,
        query=lambda text: frame,
        drop_view=lambda view: None,
        check_alive=lambda: None,
    )
    source = FileSource.from_mapping({"source_roots": ["/in"], **config})
    return Reader(Name("a", "b"), source, FileQuery.read("select * from @data"), spark, {})


def request(*paths: str, **more: Any) -> ReadRequest:
    return ReadRequest(paths or ("/in/a.json",), ("/in",), **more)


@pytest.mark.parametrize(
    ("known", "declared", "config", "result"),
    [
        ({"schema": schema("planned")}, schema("declared"), {}, "planned"),
        ({"known": schema("known")}, schema("declared"), {}, "declared"),
        ({"known": schema("known")}, None, {}, "known"),
        ({"known": schema("known")}, None, {"on_schema_change": "append_new_columns"}, "inferred"),
        ({}, None, {}, "inferred"),
    ],
)
def test_the_schema_is_that_of_the_plan_the_config_the_ledger_or_the_files(known, declared, config, result):
    frames = FakeFrames(declared)
    reading = reader(frames, **config).read(request(**known))
    assert reading.schema == frames.read[0] == schema(result)
    assert reading.format == "json"
    assert reading.query == "select * from view"


def test_an_unreadable_file_is_an_error_by_default(tmp_path):
    with pytest.raises(StatementError, match="is broken"):
        reader(FakeFrames(bad=("/in/a.json",))).read(request())


def test_unreadable_files_are_found_one_by_one_for_the_quarantine(tmp_path):
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    for path in paths:
        open(path, "w").close()
    frames = FakeFrames(bad=(paths[1],))
    with pytest.raises(BadFiles) as caught:
        reader(frames, on_bad_file="quarantine").read(request(*paths))
    assert list(caught.value.files) == [paths[1]]


def test_names_that_no_spark_can_open_are_quarantined_unless_the_plan_is_written():
    made = reader(FakeFrames(), on_bad_file="quarantine")
    with pytest.raises(BadFiles, match="colon"):
        made.read(request("/in/a:b.json"))
    made.read(request("/in/a:b.json", schema=schema("planned")))
