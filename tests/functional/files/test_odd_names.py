"""Names that Spark would take for patterns: each file is read once, by its own name, and by no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import PenstockError, files
from penstock.sql.names import Name
from penstock.windows import DatedPath, Window, WindowSettings
from penstock.windows.query import FileSelect

ODD = [
    "export [final]",
    "{a,b}",
    "*",
    "?",
    "back\\slash",
    "a]",
    "b}",
    "%41",
    "50% #1+2",
    "ünï 文",
    "new\nline",
    "^!~,;'\"",
]


def write_csv(path: Path, number: int) -> None:
    path.write_text(f"id,text\n{number},x\n")


def write_json(path: Path, number: int) -> None:
    path.write_text(json.dumps({"id": number}) + "\n")


def write_parquet(path: Path, number: int) -> None:
    pq.write_table(pa.table({"id": [number]}), path)


def write_text(path: Path, number: int) -> None:
    path.write_text(f"{number}\n")


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "csv": write_csv,
    "json": write_json,
    "parquet": write_parquet,
    "text": write_text,
}


def land(root: Path, format: str, names: list[str]) -> None:
    root.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(names):
        WRITERS[format](root / f"{name}.{format}", number)


@pytest.mark.parametrize("format", WRITERS)
@pytest.mark.parametrize("folder", ["plain", "r[10]/{x}"])
def test_each_file_of_an_odd_name_or_root_is_read_once(landing, format, folder):
    names = ["0", "1", *ODD]
    land(landing.root / folder, format, names)
    keys = {"source_options": {"header": "true"}} if format == "csv" else {}
    column = "value" if format == "text" else "id"
    select = f"select cast({column} as bigint) as id, source_file_uri from @data"
    landing.ingest(select, roots=[landing.place.location(landing.root / folder)], max_files_per_trigger=8, **keys)
    assert landing.rows("id") == sorted(((number,) for number in range(len(names))), key=str)
    assert len({row[0] for row in landing.rows("source_file_uri")}) == len(names)


def test_odd_names_show_the_types_of_all_of_them(landing):
    for name, value in (("a", 1), ("[b]", 2.5), ("{c}", 3)):
        landing.json(f"day=2026-01-01/{name}.json", {"id": value})
    landing.ingest("select id, day from @data")
    assert landing.rows("id, typeof(id), day") == [
        (1.0, "double", landing.rows("day")[0][0]),
        (2.5, "double", landing.rows("day")[0][0]),
        (3.0, "double", landing.rows("day")[0][0]),
    ]


def test_a_colon_in_a_folder_and_a_pattern_in_a_name(landing):
    for hour in (10, 11):
        for name in ("a", "[b]", "c*"):
            landing.json(f"at={hour}:00/{name}.json", {"id": hour})
    landing.ingest("select id, at from @data")
    assert landing.rows("id, at") == [(10, "10:00")] * 3 + [(11, "11:00")] * 3


def test_json_over_many_lines_in_odd_names(landing):
    for number, name in enumerate(("a", "[b]", "{c}")):
        landing.text(f"{name}.json", f'[\n{{"id":\n{number}}}]')
    landing.ingest(source_options={"multiLine": "true"})
    assert landing.rows() == [(0,), (1,), (2,)]


def test_what_spark_cannot_infer_by_an_odd_name_is_said(landing):
    land(landing.root, "csv", ["a", "[b]"])
    options = {"header": "true", "multiLine": "true"}
    with pytest.raises(PenstockError, match=r"\[b\]\.csv.*`source_columns`"):
        landing.ingest(source_options=options)
    columns = [{"name": "id", "type": "bigint"}, {"name": "text", "type": "string"}]
    landing.ingest(source_options=options, source_columns=columns)
    assert landing.rows("id") == [(0,), (1,)]


def test_other_files_than_those_of_the_plan_are_an_error(landing, monkeypatch):
    land(landing.root, "json", ["a", "[b]", "b"])
    landing.ingest(source_patterns=["a"])
    monkeypatch.setattr("penstock.spark.reading.groups.escaped", lambda path: path)
    with pytest.raises(PenstockError, match=r"/b\.json more often than asked and \S*/\[b\]\.json not at all"):
        landing.ingest()
    assert landing.rows() == [(0,)]
    monkeypatch.undo()
    landing.ingest()
    assert landing.rows() == [(0,), (1,), (2,)]


def test_files_that_are_read_twice_are_an_error(landing, monkeypatch):
    land(landing.root, "json", ["a", "[b]"])
    monkeypatch.setattr("penstock.spark.reading.groups.FileGroup.is_escaped", False)
    with pytest.raises(PenstockError, match=r"a\.json more often than asked"):
        landing.ingest(source_columns=[{"name": "id", "type": "bigint"}])
    assert landing.lake.find(Name.parse(landing.name)) is None


def test_both_kinds_of_data_sources_are_looked_at(landing):
    land(landing.root, "csv", ["a", "[b]", "c"])
    spark = landing.lake.runner.spark
    kept = spark.conf.get("spark.sql.sources.useV1SourceList")
    spark.conf.set("spark.sql.sources.useV1SourceList", "")
    try:
        landing.ingest("select id from @data", source_options={"header": "true"})
    finally:
        spark.conf.set("spark.sql.sources.useV1SourceList", kept)
    assert landing.rows() == [(0,), (1,), (2,)]


def test_a_preview_reads_each_file_once(landing):
    land(landing.root, "json", ["a", "[b]", "{c}"])
    source = files.FileSource.from_mapping({"source_roots": [landing.source], "safety_buffer_seconds": 0})
    query = files.preview(
        landing.lake, Name.parse(landing.name), source, "select id from @data", runner=landing.lake.runner
    )
    assert sorted(row[0] for row in landing.lake.sql(query).collect()) == [0, 1, 2]


@pytest.mark.parametrize("columns", ["id", "id, _date"])
def test_a_window_of_odd_names_is_read_once(landing, columns):
    for day in (1, 2):
        land(landing.root / f"r[1]/2026/04/0{day}", "json", ["a", "[b]", "{c}"])
    path = DatedPath(f"{landing.source}/r[1]/%Y/%m/%d/*.json")
    source = files.FileSource.from_mapping({"source_roots": [path.root], "safety_buffer_seconds": 0})
    settings = WindowSettings.from_config({"event_time": "_date", "batch_size": "day", "begin": "2026-04-01"})
    model = files.FileQuery.read(f"select {columns} from @data")
    lake = landing.lake
    select = FileSelect(lake, lake.runner, model, source, path, settings, files.Listings())
    window = Window.of("2026-04-01", "2026-04-03")
    query = select.over(window, select.schema(window, None)).text
    assert sorted(row[0] for row in lake.sql(query).collect()) == [0, 0, 1, 1, 2, 2]


@pytest.mark.parametrize("name", ["10:00", "[a]:b"])
def test_a_colon_in_a_file_name_is_said(landing, name):
    land(landing.root, "json", ["a", name])
    with pytest.raises(PenstockError, match="has a colon") as caught:
        landing.ingest()
    assert f"{landing.source}/{name}.json" in str(caught.value)
    report = landing.ingest(on_bad_file="quarantine")
    assert list(report.quarantined) == [f"{landing.source}/{name}.json"]
    assert "has a colon" in report.quarantined[f"{landing.source}/{name}.json"]
    assert landing.rows() == [(0,)]
    assert landing.ingest(on_bad_file="quarantine").nothing_new


@pytest.mark.parametrize("option", ["pathGlobFilter", "modifiedafter", "ignoreMissingFiles", "basePath"])
def test_options_that_choose_files_are_refused(landing, option):
    land(landing.root, "json", ["a"])
    with pytest.raises(PenstockError, match=f"`source_options`.*{option}"):
        landing.ingest(source_options={option: "x"})


def test_a_link_is_read_by_its_own_name(landing):
    land(landing.root.parent / "else[where]", "json", ["a"])
    (landing.root / "link.json").symlink_to(landing.root.parent / "else[where]" / "a.json")
    landing.ingest("select id, source_file_uri from @data")
    assert [(row[0], row[1].rpartition("/")[2]) for row in landing.rows("id, source_file_uri")] == [(0, "link.json")]
