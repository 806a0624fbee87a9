"""The Python face: names are found on disk, and PySpark's and Delta's own objects come back."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dbt.tests.util import run_dbt

import penstock
from penstock.errors import PenstockError, StatementError
from penstock.lake.relations import Link, Relation
from penstock.sql.names import Name
from tests.conftest import SESSION

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def lake(tmp_path: Path) -> penstock.Lake:
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)
    lake.sql("create table silver.orders as select id, concat('n', id) as name from range(10)")
    return lake


def count(lake: penstock.Lake, name: str = "silver.orders") -> int:
    return lake.table(name).count()


def test_dml_and_ddl_reach_the_tables_on_disk(lake: penstock.Lake) -> None:
    lake.sql("delete from silver.orders where id = 7")
    lake.sql("insert into silver.orders values (100, 'x'), (101, 'y')")
    lake.sql("update silver.orders set name = 'z' where id = 100")
    lake.sql(
        "merge into silver.orders t using (select 1L as id, 'one' as name) s on t.id = s.id "
        "when matched then update set * when not matched then insert *"
    )
    lake.sql("alter table silver.orders add columns (extra string)")
    assert count(lake) == 11
    assert {row.name for row in lake.sql("select name from silver.orders where id in (1, 100)").collect()} == {
        "one",
        "z",
    }
    assert lake.sql("select count(*) from silver.orders version as of 0").first()[0] == 10
    lake.sql("restore table silver.orders to version as of 0")
    assert count(lake) == 10
    assert "RESTORE" in [row.operation for row in lake.sql("describe history silver.orders").collect()]
    assert [column.name for column in lake.columns("silver.orders")] == ["id", "name"]


def test_views_and_drops_outlive_the_process(lake: penstock.Lake) -> None:
    lake.sql("create view gold.few as select * from silver.orders where id < 3")
    lake.sql("create or replace view gold.fewer (k) as select id from gold.few where id < 2")
    other = penstock.connect(lake.root, session=SESSION)
    assert [str(found) for found in other.tables()] == ["gold.few", "gold.fewer", "silver.orders"]
    assert other.sql("select k from gold.fewer order by k").collect() == [(0,), (1,)]
    other.sql("create or replace view gold.few as select * from silver.orders where id = 0")
    assert lake.sql("select k from gold.fewer").collect() == [(0,)], "made again on disk, so attached again"
    lake.sql("drop view gold.fewer")
    lake.sql("drop table if exists silver.orders")
    lake.sql("drop table if exists silver.orders")
    assert [str(found) for found in other.tables()] == ["gold.few"]
    with pytest.raises(StatementError, match="TABLE_OR_VIEW_NOT_FOUND"):
        other.sql("select * from silver.orders")


def test_a_view_that_nobody_could_read_is_not_made(lake: penstock.Lake) -> None:
    lake.sql("create view silver.v as select id from silver.orders")
    lake.sql("create view silver.w as select id from silver.v")
    lake.sql("create temporary view here as select 1 as id")
    for query, said in {
        "select a.id, b.id from silver.orders a join silver.orders b": "COLUMN_ALREADY_EXISTS",
        "select id from silver.w": "reads itself through silver.w",
        "select id from here": "INVALID_TEMP_OBJ_REFERENCE",
    }.items():
        with pytest.raises(PenstockError, match=said):
            lake.sql(f"create or replace view silver.v as {query}")
    with pytest.raises(PenstockError, match="'a-b' can't be the name of a schema, table or view"):
        lake.sql("create view silver.`a-b` as select 1 as id")
    assert lake.sql("select * from silver.w where id < 2 order by id").collect() == [(0,), (1,)]
    assert [str(found) for found in lake.tables()] == ["silver.orders", "silver.v", "silver.w"]
    assert [row.viewName for row in lake.sql("show views in silver").collect() if "__" in row.viewName] == []


def test_a_table_is_no_view(lake: penstock.Lake) -> None:
    lake.sql("create view silver.v as select id from silver.orders")
    for text in (
        "drop view silver.orders",
        "drop table silver.v",
        "create or replace view silver.orders as select 1 as gone",
        "create view silver.v as select 1 as gone",
        "alter view silver.v as select 1 as gone",
    ):
        with pytest.raises(PenstockError):
            lake.sql(text)
    lake.sql("create view if not exists silver.v as select 1 as gone")
    assert lake.sql("select * from silver.v").columns == ["id"]
    lake.sql("create or replace view silver.v as select id + 100 as id from silver.orders where exists (select 1)")
    assert lake.sql("select min(id) from silver.v").first()[0] == 100
    assert count(lake) == 10


def test_columns_with_the_names_of_clauses(lake: penstock.Lake) -> None:
    lake.sql("create or replace table silver.places as select 'Berlin' as location, 1 as `exists`")
    lake.sql("create table silver.more as select * from silver.places where location = 'Berlin' and `exists` = 1")
    assert lake.table("silver.more").collect() == [("Berlin", 1)]
    assert not (Path(lake.root) / "silver" / "more" / "_link.json").exists()


def test_show_tells_what_is_on_disk(lake: penstock.Lake) -> None:
    other = penstock.connect(lake.root, session=SESSION)
    other.sql("create view gold.v as select id from silver.orders")
    assert {"silver", "gold"} <= {row.namespace for row in lake.sql("show schemas").collect()}
    assert [row.tableName for row in lake.sql("show tables in gold").collect()] == ["v"]
    other.drop(Name("gold", "v"))
    assert lake.sql("show tables in gold").collect() == []


def test_files_in_folders_of_partitions(lake: penstock.Lake, tmp_path: Path) -> None:
    rows = lake.sql("select id, concat('d', id % 2) as day from silver.orders")
    for format in ("parquet", "json"):
        rows.write.partitionBy("day").format(format).save(str(tmp_path / format))
        lake.link(Name("raw", format), Link(str(tmp_path / format), format))
        found = lake.sql(f"select day, count(*) from raw.{format} group by day order by day").collect()
        assert found == [("d0", 5), ("d1", 5)]


def test_a_table_dropped_and_made_anew_by_another_is_the_new_one(lake: penstock.Lake) -> None:
    import shutil

    import pyarrow as pa
    from deltalake import write_deltalake

    assert count(lake) == 10
    place = lake.get("silver.orders").location
    shutil.rmtree(place)
    write_deltalake(place, pa.table({"only": [1, 2]}))
    assert lake.table("silver.orders").columns == ["only"]
    assert count(lake) == 2


def test_a_new_table_may_meet_what_another_left(lake: penstock.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that is not there is made by CREATE, which Delta does in fewer jobs; OR REPLACE keeps its meaning."""

    def make(name: str) -> str:
        lake.sql(f"create or replace table silver.{name} as select 1 as id")
        return str(lake.delta(f"silver.{name}").history(1).first().operation)

    left = Path(lake.root) / "silver" / "killed"
    left.mkdir()
    (left / "part-00000.parquet").write_bytes(b"half")
    assert make("fresh") == "CREATE TABLE AS SELECT"
    assert make("fresh") == "CREATE OR REPLACE TABLE AS SELECT"
    assert make("killed") == "CREATE OR REPLACE TABLE AS SELECT"

    other = penstock.connect(lake.root, session=SESSION)
    found = lake.find

    def too_early(name: Name) -> Relation | None:
        relation = found(name)
        if relation is None:
            other.sql(f"create table {name.sql} as select 2 as old")
        return relation

    with monkeypatch.context() as patch:
        patch.setattr(lake, "find", too_early)
        assert make("raced") == "CREATE OR REPLACE TABLE AS SELECT"
    assert [row.asDict() for row in lake.table("silver.raced").collect()] == [{"id": 1}]


def test_frames_are_written_by_name(lake: penstock.Lake) -> None:
    frame = lake.spark.range(3).withColumnRenamed("id", "k")
    lake.write(frame, "bronze.keys")
    lake.write(frame, "bronze.keys", mode="append")
    assert count(lake, "bronze.keys") == 6
    lake.write(frame.selectExpr("k", "k % 2 as odd"), "bronze.keys", mode="overwrite", partition_by=["odd"])
    assert count(lake, "bronze.keys") == 3
    assert lake.log_of("bronze.keys").partition_columns == ["odd"]
    lake.sql("create view bronze.v as select 1 as a")
    with pytest.raises(PenstockError, match="is a view"):
        lake.write(frame, "bronze.v")
    with pytest.raises(PenstockError, match="not a write mode"):
        lake.write(frame, "bronze.keys", mode="upsert")


def test_jobs_belong_to_the_tag_around_them(lake: penstock.Lake) -> None:
    runner = lake.runner
    group = lambda: runner.spark.sparkContext.getLocalProperty("spark.jobGroup.id")  # noqa: E731
    with runner.tagged("outer"):
        runner.run("select 1")
        with runner.beside(group) as beside:
            assert (group(), beside.result()) == ("outer", "outer")
    assert group() is None


def test_what_has_no_job_yet_is_cancelled_too(lake: penstock.Lake) -> None:
    """As while a statement is planned: adaptive execution begins with stages that Spark lets through."""
    runner = lake.runner
    runner.spark.conf.set("spark.sql.adaptive.enabled", "true")
    endless = "java_method('java.lang.Thread', 'sleep', 600000L)"
    try:
        with runner.tagged("cancelled"):
            frame = runner.run(f"select k, count(*) from (select {endless} as k from range(2)) group by k").frame
            runner.cancel()
            with pytest.raises(Exception, match=r"(?i)cancelled"):
                frame.collect()
            with pytest.raises(PenstockError, match="cancelled"):
                runner.run("select 1")
        # And no more than that.
        for _ in range(20):
            assert runner.run("select 1 as one").frame.collect() == [(1,)]
    finally:
        runner.spark.conf.unset("spark.sql.adaptive.enabled")


def test_delta_hands_out_deltas_own_table(lake: penstock.Lake) -> None:
    table = lake.delta("silver.orders")
    table.delete("id >= 5")
    assert table.history(1).first().operation == "DELETE"
    assert count(lake) == 5


def test_statements_say_what_they_wrote(lake: penstock.Lake) -> None:
    written = lake.runner.run("update silver.orders set name = 'x' where id < 4").written
    assert written is not None
    assert (written.version, written.rows_updated) == (1, 4)
    assert lake.runner.run("select 1").written is None


def test_errors_name_the_condition_and_the_line(lake: penstock.Lake) -> None:
    with pytest.raises(StatementError) as caught:
        lake.sql("select\n  nope\nfrom silver.orders")
    assert caught.value.condition.startswith("UNRESOLVED_COLUMN")
    assert "line 2: nope" in str(caught.value)
    assert "\tat " not in str(caught.value)


def test_read_only_reads(lake: penstock.Lake) -> None:
    reader = penstock.connect(lake.root, session=SESSION, read_only=True)
    assert count(reader) == 10
    reader.sql("create temporary view t as select * from silver.orders")
    assert reader.sql("select * from t").count() == 10
    for statement in ("insert into silver.orders values (1, 'a')", "create schema x", "vacuum silver.orders",
                      "begin delete from silver.orders; end", "execute immediate 'delete from silver.orders'",
                      "generate symlink_format_manifest for table silver.orders"):  # fmt: skip
        with pytest.raises(PenstockError, match="reading only"):
            reader.sql(statement)


def test_the_readmes_examples_run(lake: penstock.Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    monkeypatch.chdir(Path(lake.root).parent)
    connect = penstock.connect
    monkeypatch.setattr(penstock, "connect", lambda root, **given: connect(root, **{"session": SESSION, **given}))
    scope: dict[str, object] = {"df": lake.spark.createDataFrame([(200, "new")], "id bigint, name string")}
    for block in blocks:
        exec(block, scope)


class TestBothWays:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "ours.sql": "{{ config(materialized='table') }} select * from {{ source('theirs', 'made') }}",
            "seen.sql": "select * from {{ ref('ours') }}",
            "sources.yml": "sources: [{name: theirs, schema: theirs, tables: [{name: made}]}]",
        }

    def test_what_is_made_here_dbt_sees_and_the_other_way_round(self, project) -> None:
        lake = penstock.connect(project.adapter.lake.root, session=SESSION)
        lake.sql("create table theirs.made as select 42 as answer")
        run_dbt(["run"])
        assert lake.sql(f"select answer from {project.test_schema}.seen").first().answer == 42
