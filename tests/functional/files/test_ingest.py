"""File models on Spark."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock import PenstockError, files
from penstock.files import FileSource
from penstock.files.reading.reader import Reader
from penstock.sql.names import Name

ODD = [
    "a b.json",
    "ünïcode 文.json",
    "50%.json",
    "%41.json",
    "#x.json",
    "o'brien.json",
    "new\nline.json",
    "*[a]{b}?.json",
]


def test_batches_in_order_then_nothing_without_a_jvm(landing):
    for index in range(5):
        landing.json(f"{index}.json", {"id": index}, {"id": index + 100}, at=1_700_000_000 + index)
    said = []
    source = FileSource.from_mapping(
        {"source_roots": [landing.source], "safety_buffer_seconds": 0, "max_files_per_trigger": 2}
    )
    report = files.ingest(
        landing.lake,
        Name.parse(landing.name),
        source,
        "select id from @data",
        runner=landing.lake.runner,
        on_batch=said.append,
    )
    assert [(batch.number, batch.files, batch.rows, batch.version) for batch in report.batches] == [
        (0, 2, 4, 0),
        (1, 2, 4, 1),
        (2, 1, 2, 2),
    ]
    assert (report.rows, report.files, report.version) == (10, 5, 2)
    assert str(said[0]).startswith("batch 1 of 3 · 2 files · ")
    assert len(landing.rows()) == 10
    code = (
        "import sys, penstock\n"
        f"report = penstock.connect({landing.lake.root!r}).ingest({landing.name!r}, roots=[{landing.source!r}])\n"
        "assert report.nothing_new and report.version == 2\n"
        "assert 'pyspark' not in sys.modules and 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_odd_names_and_folder_columns_and_virtual_columns(landing):
    for index, name in enumerate(ODD):
        landing.json(f"day=2026-01-0{index + 1}/{name}", {"id": index})
    landing.json("flat.json", {"id": 99})
    select = "select *, source_file_uri, source_file_length as length, source_file_created as made from @data"
    landing.ingest(select, max_files_per_trigger=3)
    found = landing.rows("id, day, length, made")
    assert found == sorted(
        [(index, date(2026, 1, index + 1), 10, None) for index in range(len(ODD))] + [(99, None, 11, None)], key=str
    )
    assert len({row[0] for row in landing.rows("source_file_uri")}) == len(ODD) + 1
    assert landing.ingest(select).nothing_new


def test_joins_partitions_properties_and_full_refresh(landing):
    landing.lake.sql(f"create table {landing.schema}.names as select 1 as id, 'one' as name")
    landing.json("a.json", {"id": 1, "day": "2026-01-01"})
    select = (
        f"select d.id, n.name, to_date(d.day) as day from @data d left join {landing.schema}.names n on n.id = d.id"
    )
    keys = {"partition_by": "day", "properties": {"delta.appendOnly": "false"}}
    landing.ingest(select, **keys)
    table = landing.open()
    assert table.partition_columns == ["day"]
    generation = int(table.properties["penstock.generation"])
    landing.json("b.json", {"id": 2, "day": "2026-01-02"})
    landing.ingest(select, **keys)
    assert landing.rows("id, name") == [(1, "one"), (2, None)]
    landing.ingest(select, full_refresh=True, **keys)
    assert landing.rows("id, name") == [(1, "one"), (2, None)]
    assert landing.open().properties["penstock.generation"] == str(generation + 2)


def test_an_empty_clustered_table_of_others_becomes_ours(landing):
    """delta-rs can't write it: the commit that claims it is Spark's."""
    landing.lake.sql(f"create table {landing.schema}.events (id bigint comment 'by hand') cluster by (id)")
    landing.json("a.json", {"id": 1})
    landing.ingest("select id from @data")
    landing.json("b.json", {"id": 2})
    landing.ingest("select id from @data")
    assert landing.rows("id") == [(1,), (2,)]
    table = landing.open()
    assert (table.clustering_columns, table.columns[0].comment) == (["id"], "by hand")
    assert landing.ingest("select id from @data").nothing_new


def test_a_clustered_table_gives_a_plan_up_too(landing):
    landing.json("a.json", {"id": 1})
    landing.ingest(cluster_by=["id"])
    gone = landing.json("gone.json", {"id": 2})
    landing.json("stays.json", {"id": 3})

    def vanish(step: str) -> None:
        if step == "planned" and gone.exists():
            gone.unlink()

    source = FileSource.from_mapping({"source_roots": [landing.source], "safety_buffer_seconds": 0})
    files.ingest(
        landing.lake, Name.parse(landing.name), source, "select * from @data", runner=landing.lake.runner, step=vanish
    )
    assert landing.rows() == [(1,), (3,)]
    assert landing.ingest().nothing_new


def test_csv_reads_by_header_and_refuses_another_order(landing):
    options = {"header": True}
    landing.text("a.csv", "id,name\n1,one\n", at=1)
    landing.ingest(source_options=options)
    landing.text("b.csv", "name,id\ntwo,2\n", at=2)
    with pytest.raises(PenstockError, match=r"(?i)header"):
        landing.ingest(source_options=options)
    # The plan is unfinished; the file is mended, so that plan is given up and made anew.
    landing.text("b.csv", "id,name\n2,two\n", at=3)
    landing.ingest(source_options=options)
    assert landing.rows() == [(1, "one"), (2, "two")]


def test_compressed_files_and_other_formats(landing, tmp_path):
    with gzip.open(landing.root / "a.json.gz", "wt") as file:
        file.write('{"id": 1}\n')
    landing.ingest()
    assert landing.rows() == [(1,)]
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "a.log").write_text("one\ntwo\n")
    landing.lake.ingest(f"{landing.schema}.lines", roots=[str(texts)], safety_buffer_seconds=0)
    assert landing.lake.table(f"{landing.schema}.lines").count() == 2
    landing.json("b.json", {"id": 2})
    landing.text("c.csv", "3\n")
    with pytest.raises(PenstockError, match=r"more than one format.*b\.json.*c\.csv|c\.csv.*b\.json"):
        landing.ingest()
    assert landing.rows() == [(1,)]


def test_new_columns_as_on_schema_change_says(landing):
    pq.write_table(pa.table({"id": [1]}), landing.root / "a.parquet")
    landing.ingest()
    pq.write_table(pa.table({"id": [2], "extra": ["x"]}), landing.root / "b.parquet")
    assert landing.ingest().rows == 1
    assert landing.rows() == [(1,), (2,)]
    pq.write_table(pa.table({"id": [3], "extra": ["y"]}), landing.root / "c.parquet")
    with pytest.raises(PenstockError, match="new: extra"):
        landing.ingest(on_schema_change="fail")
    landing.ingest(on_schema_change="append_new_columns")
    assert landing.rows() == [(1, None), (2, None), (3, "y")]


def test_a_bad_file_fails_or_is_quarantined(landing):
    landing.json("a.json", {"id": 1})
    landing.ingest()
    landing.text("bad.json", '{"id": broken\n', at=5)
    landing.json("c.json", {"id": 3})
    with pytest.raises(PenstockError, match=r"(?i)malformed|bad\.json"):
        landing.ingest()
    assert landing.rows() == [(1,)]
    report = landing.ingest(on_bad_file="quarantine")
    assert landing.rows() == [(1,), (3,)]
    assert [path.rsplit("/", 1)[1] for path in report.quarantined] == ["bad.json"]
    assert any("bad.json" in warning for warning in report.warnings)
    assert landing.ingest(on_bad_file="quarantine").nothing_new


def test_a_bad_first_file_is_quarantined(landing):
    pq.write_table(pa.table({"id": [1]}), landing.root / "good.parquet")
    landing.text("bad.parquet", "this is no parquet file", at=5)
    report = landing.ingest(on_bad_file="quarantine")
    assert landing.rows() == [(1,)]
    assert len(report.quarantined) == 1


@pytest.mark.parametrize("first", [True, False])
def test_an_interrupt_makes_no_file_bad(landing, first):
    """Where Spark does nothing any more, it says nothing of a file."""
    if not first:
        landing.json("zero.json", {"id": 0})
        landing.ingest()
    for index in range(1, 4):
        landing.json(f"{index}.json", {"id": index})
    source = FileSource.from_mapping(
        {"source_roots": [landing.source], "safety_buffer_seconds": 0, "on_bad_file": "quarantine"}
    )
    runner = landing.lake.runner

    def interrupt(step: str) -> None:
        if step == "write":
            runner.cancel()

    with runner.tagged(f"a run {landing.name}"), pytest.raises(PenstockError, match=r"(?i)cancel"):
        files.ingest(
            landing.lake, Name.parse(landing.name), source, "select * from @data", runner=runner, step=interrupt
        )
    report = landing.ingest(on_bad_file="quarantine")
    assert not report.quarantined
    assert landing.rows() == [(index,) for index in range(0 if not first else 1, 4)]


def test_values_that_do_not_fit_are_rescued(landing, tmp_path):
    columns = [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}]
    landing.text("a.json", '{"id": 1, "name": "a"}\n{"id": "x", "name": "b"}\nno record\n')
    landing.ingest(source_columns=columns, rescued_data_column="rescued")
    assert landing.rows("id, name") == [(1, "a"), (None, "b"), (None, None)]
    assert [json.loads(row[0]) for row in landing.rows("rescued") if row[0]] == [{"_record": "no record"}, {"id": "x"}]
    lines = tmp_path / "lines"
    lines.mkdir()
    (lines / "a.csv").write_text("id;name\n1;a\ny;b\n")
    landing.lake.ingest(
        f"{landing.schema}.lines",
        roots=[str(lines)],
        select="select id, name, rescued, source_file_length from @data",
        source_columns=columns,
        source_options={"header": "true", "sep": ";"},
        rescued_data_column="rescued",
        safety_buffer_seconds=0,
    )
    rows = landing.lake.sql(f"select id, name, rescued, source_file_length from {landing.schema}.lines").collect()
    assert sorted(map(tuple, rows), key=str) == [(1, "a", None, 16), (None, "b", '{"id":"y"}', 16)]


def test_columns_that_the_select_no_longer_makes_are_dropped(landing):
    landing.json("a.json", {"id": 1, "name": "a"})
    landing.ingest()
    landing.json("b.json", {"id": 2, "name": "b"})
    landing.ingest("select id, id * 2 as double from @data", on_schema_change="sync_all_columns")
    assert landing.rows() == [(1, None), (2, 4)]
    assert landing.ingest("select id, id * 2 as double from @data").nothing_new


def test_a_full_refresh_without_files_says_that_nothing_changed(landing):
    path = landing.json("a.json", {"id": 1})
    landing.ingest()
    path.unlink()
    report = landing.ingest(full_refresh=True)
    assert report.nothing_new
    assert any("no file to build it from" in warning for warning in report.warnings)
    assert landing.rows() == [(1,)]


def test_the_next_batch_is_read_while_one_is_written(landing, monkeypatch):
    for index in range(5):
        landing.json(f"{index}.json", {"id": index}, at=1_700_000_000 + index)
    threads = []
    read = Reader.read

    def watched(self, request):
        threads.append(threading.current_thread().name.split("_")[0])
        return read(self, request)

    monkeypatch.setattr(Reader, "read", watched)
    landing.ingest(max_files_per_trigger=1)
    assert [row[0] for row in landing.rows()] == [0, 1, 2, 3, 4]
    # The first makes the table, and the second is the first to know its columns: from then on each is read ahead.
    assert threads == ["MainThread", "MainThread", *["penstock-ahead"] * 3]
    assert not [table for table in landing.lake.spark.catalog.listTables() if table.name.startswith("penstock_data")]


@pytest.mark.parametrize("format", ["orc", "avro"])
def test_files_of_other_formats_come_in(landing, format):
    landing.lake.spark.range(3).coalesce(1).write.format(format).save(landing.place.location(landing.root / format))
    landing.ingest(source_patterns=[rf"\.{format}$"])
    assert landing.rows() == [(0,), (1,), (2,)]


def test_binary_files_come_in_whole(landing):
    landing.text("a.bin", "abc")
    landing.ingest("select cast(content as string) as text, length from @data", source_format="binaryFile")
    assert landing.rows() == [("abc", 3)]


def test_a_rewritten_file_replaces_its_rows(landing):
    select = "select id, source_file_uri from @data"
    landing.json("a b.json", {"id": 1}, {"id": 2})
    landing.json("other.json", {"id": 9})
    landing.ingest(select)
    landing.json("a b.json", {"id": 3}, at=time.time() + 5)
    landing.json("new.json", {"id": 10})
    landing.ingest(select, on_rewritten_file="replace")
    assert landing.rows("id") == [(10,), (3,), (9,)]
    assert landing.ingest(select, on_rewritten_file="replace").nothing_new


def test_an_aggregate_works_within_each_batch_and_warns(landing):
    landing.json("a.json", {"id": 1}, at=1)
    landing.json("b.json", {"id": 2}, at=2)
    report = landing.ingest("select count(*) as n from @data", max_files_per_trigger=1)
    assert landing.rows() == [(1,), (1,)]
    assert "within each batch" in report.warnings[0]


def test_what_is_wrong_with_the_sql_shows_before_a_plan_is_written(landing):
    landing.json("a.json", {"id": 1})
    with pytest.raises(PenstockError, match="nope"):
        landing.ingest("select nope from @data")
    assert not (landing.table / "_checkpoint").exists()
    landing.ingest("select id from @data")
    assert landing.rows() == [(1,)]


def test_a_preview_brings_nothing_in(landing):
    landing.json("a.json", {"id": 1}, {"id": 2})
    source = FileSource.from_mapping({"source_roots": [landing.source], "safety_buffer_seconds": 0})
    name = Name.parse(landing.name)
    for rows, expected in ((None, 2), (1, 1), (0, 0)):
        query = files.preview(
            landing.lake, name, source, "select *, source_file_uri from @data", runner=landing.lake.runner, rows=rows
        )
        assert landing.lake.sql(query).count() == expected
    assert landing.lake.find(name) is None


def test_a_table_elsewhere(landing, tmp_path):
    from penstock.lake.relations import Link

    name = Name.parse(landing.name)
    landing.lake.links[name] = Link(str(tmp_path / "elsewhere"))
    landing.json("a.json", {"id": 1})
    landing.ingest()
    landing.json("b.json", {"id": 2})
    landing.ingest()
    assert landing.rows() == [(1,), (2,)]
    assert os.path.isdir(tmp_path / "elsewhere" / "_checkpoint")


def test_an_aggregate_that_only_spark_knows_is_told_of(landing):
    """sqlglot takes `mean` for any function; a view of the lake may aggregate as it likes."""
    landing.json("1.json", {"id": 1, "n": 1})
    landing.lake.sql(f"create table {landing.schema}.r as select 1 as id, 2 as n")
    landing.lake.sql(f"create view {landing.schema}.v as select id, mean(n) as m from {landing.schema}.r group by id")
    report = landing.ingest(f"select d.id, v.m from @data d join {landing.schema}.v v on v.id = d.id")
    assert report.warnings == []
    landing.json("2.json", {"id": 1, "n": 1})
    report = landing.ingest("select 1 as id, x.m from (select mean(n) as m from @data) x")
    assert len([text for text in report.warnings if "has the aggregate mean(n)" in text]) == 1
