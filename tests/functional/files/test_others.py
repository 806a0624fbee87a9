"""What others do to a table of files, and files that are replaced after their root was spelled otherwise."""

from __future__ import annotations

import time

import pytest

from penstock import PenstockError, files
from penstock.files import FileSource
from penstock.spark.internals.transaction import Transaction
from penstock.sql.names import Name

OLD = 1_700_000_000


def path_of(landing):
    return f"delta.`{landing.location}`"


def spark_of(landing):
    return landing.lake.runner.spark


def two_batches(landing, **keys):
    landing.json("a.json", {"id": 1}, at=OLD)
    landing.json("b.json", {"id": 2}, at=OLD + 1)
    landing.ingest("select id from @data", max_files_per_trigger=1, **keys)


def test_a_dynamic_overwrite_of_a_table_without_partitions_takes_all_rows(landing):
    two_batches(landing)
    frame = spark_of(landing).createDataFrame([(9,)], "id long")
    frame.write.format("delta").mode("overwrite").option("partitionOverwriteMode", "dynamic").save(landing.location)
    assert landing.rows() == [(9,)]
    with pytest.raises(PenstockError, match="overwritten"):
        landing.ingest("select id from @data")


def test_replace_where_true_takes_all_rows(landing):
    two_batches(landing)
    frame = spark_of(landing).createDataFrame([(9,)], "id long")
    frame.write.format("delta").mode("overwrite").option("replaceWhere", "true").save(landing.location)
    assert landing.rows() == [(9,)]
    with pytest.raises(PenstockError, match="overwritten"):
        landing.ingest("select id from @data")


def test_replace_columns_is_an_alter_and_takes_no_row(landing):
    two_batches(landing)
    spark_of(landing).sql(f"alter table {path_of(landing)} replace columns (id bigint, extra string)")
    assert landing.ingest("select id from @data").nothing_new


def test_a_restore_by_timestamp_is_an_error_until_it_is_one_by_version(landing):
    """The log tells the timestamp in the zone of whoever gave it: which version that was can't be told."""
    two_batches(landing)
    time.sleep(1.1)
    moment = spark_of(landing).sql("select cast(current_timestamp() as string)").first()[0]
    time.sleep(1.1)
    spark_of(landing).sql(f"delete from {path_of(landing)} where id = 1")
    spark_of(landing).sql(f"restore table {path_of(landing)} to timestamp as of '{moment}'")
    with pytest.raises(PenstockError, match="to the version of a timestamp, whose number is not in the log"):
        landing.ingest("select id from @data")
    spark_of(landing).sql(f"restore table {path_of(landing)} to version as of 1")
    assert landing.rows() == [(1,), (2,)]
    assert landing.ingest("select id from @data").nothing_new


def test_a_create_or_replace_by_others_names_the_restore_that_undoes_it(landing):
    """docs/files.md: "with the RESTORE that undoes it where there is one"."""
    two_batches(landing)
    landing.lake.sql(f"create or replace table {landing.name} as select 9L as id").collect()
    with pytest.raises(PenstockError, match=r"RESTORE the table to version 1"):
        landing.ingest("select id from @data")


def replace_through(landing, first, second, **keys):
    select = "select id, source_file_uri from @data"
    landing.ingest(select, roots=[str(first)], on_rewritten_file="replace")
    landing.json("eu/a.json", {"id": 7}, at=OLD + 5)
    landing.ingest(select, roots=[str(second)], on_rewritten_file="replace", **keys)
    return landing.rows("id")


def test_a_file_that_came_in_by_one_link_and_is_replaced_by_a_deeper_one(landing, tmp_path):
    landing.json("eu/a.json", {"id": 1}, at=OLD)
    (tmp_path / "link").symlink_to(landing.root, target_is_directory=True)
    (tmp_path / "eu").symlink_to(landing.root / "eu", target_is_directory=True)
    assert replace_through(landing, tmp_path / "link", tmp_path / "eu") == [(7,)]


def test_a_file_that_came_in_by_a_deep_link_and_is_replaced_by_a_higher_one(landing, tmp_path):
    landing.json("eu/a.json", {"id": 1}, at=OLD)
    (tmp_path / "link").symlink_to(landing.root, target_is_directory=True)
    (tmp_path / "eu").symlink_to(landing.root / "eu", target_is_directory=True)
    assert replace_through(landing, tmp_path / "eu", tmp_path / "link") == [(7,)]


def test_a_file_that_is_replaced_after_its_root_was_moved(landing):
    select = "select id, source_file_uri from @data"
    landing.json("a.json", {"id": 1}, at=OLD)
    landing.ingest(select, on_rewritten_file="replace")
    landing.json("b.json", {"id": 2}, at=OLD + 1)
    new = landing.root.with_name("elsewhere")
    landing.root.rename(new)
    landing.root = new
    landing.json("c.json", {"id": 3}, at=OLD + 2)
    landing.json("a.json", {"id": 1}, at=OLD)
    landing.ingest(select, on_rewritten_file="replace", on_moved_root="accept")
    landing.json("a.json", {"id": 8}, at=OLD + 5)
    landing.ingest(select, on_rewritten_file="replace")
    assert landing.rows("id") == [(2,), (3,), (8,)]


def test_a_file_that_moved_with_its_root_and_was_rewritten_in_the_same_move(landing):
    select = "select id, source_file_uri from @data"
    landing.json("a.json", {"id": 1}, at=OLD)
    landing.json("b.json", {"id": 2}, at=OLD)
    landing.ingest(select, on_rewritten_file="replace")
    new = landing.root.with_name("elsewhere")
    landing.root.rename(new)
    landing.root = new
    landing.json("a.json", {"id": 8}, at=OLD + 5)
    landing.ingest(select, on_rewritten_file="replace", on_moved_root="accept")
    assert landing.rows("id") == [(2,), (8,)]


def test_folder_columns_of_a_link_below_a_wider_root(landing, tmp_path):
    """A new file is read at the link's target, below no root of the config: its folder's column is not found."""
    outer = tmp_path / "outer"
    outer.mkdir()
    (outer / "eu").symlink_to(landing.root, target_is_directory=True)
    landing.json("day=2026-01-01/a.json", {"id": 1}, at=OLD)
    landing.ingest("select id, day from @data", roots=[str(outer / "eu")])
    landing.json("day=2026-01-02/b.json", {"id": 2}, at=OLD + 1)
    landing.ingest("select id, day from @data", roots=[str(outer)])
    assert landing.rows("id, cast(day as string)") == [(1, "2026-01-01"), (2, "2026-01-02")]


def test_a_batch_that_comes_in_while_columns_are_dropped(landing, monkeypatch):
    """`sync_all_columns` reads the table at one version and overwrites it at a later one."""
    landing.json("a.json", {"id": 1, "x": 1}, at=OLD)
    landing.ingest("select id, x from @data")
    landing.json("b.json", {"id": 2, "x": 2}, at=OLD + 1)
    overwrite, done = Transaction.overwrite, []

    def first_another_run(self, frame, partition_by, note):
        if not done:
            done.append(1)
            assert landing.ingest("select id, x from @data", source_exclude=["c.json"]).files == 1
        overwrite(self, frame, partition_by, note)

    monkeypatch.setattr(Transaction, "overwrite", first_another_run)
    landing.json("c.json", {"id": 3, "x": 3}, at=OLD + 2)
    landing.ingest("select id from @data", on_schema_change="sync_all_columns")
    assert done
    assert landing.rows("id") == [(1,), (2,), (3,)]


def test_a_batch_of_files_without_the_folder_column_that_others_have(landing):
    """In one batch with others such a file comes in, with a null; alone it stops the run: it depends on the cut."""
    landing.json("k=1/a.json", {"id": 1}, at=OLD)
    landing.json("b.json", {"id": 2}, at=OLD + 1)
    landing.ingest("select id, k from @data", max_files_per_trigger=1)
    assert landing.rows() == [(1, 1), (2, None)]


def test_a_replacing_plan_that_is_left_is_finished_by_another_spelling(landing, tmp_path):
    """It is run before anything was planned: the places of the earlier rows are in the ledger all the same."""

    class Killed(BaseException):
        pass

    def kill(step: str) -> None:
        if step == "planned":
            raise Killed

    select = "select id, source_file_uri from @data"
    landing.json("a.json", {"id": 1}, at=OLD)
    landing.ingest(select, on_rewritten_file="replace")
    landing.json("a.json", {"id": 7}, at=OLD + 5)
    (tmp_path / "link").symlink_to(landing.root, target_is_directory=True)
    keys = {"source_roots": [str(tmp_path / "link")], "safety_buffer_seconds": 0, "on_rewritten_file": "replace"}
    with pytest.raises(Killed):
        files.ingest(
            landing.lake,
            Name.parse(landing.name),
            FileSource.from_mapping(keys),
            select,
            runner=landing.lake.runner,
            step=kill,
        )
    landing.ingest(select, roots=[str(tmp_path / "link")], on_rewritten_file="replace")
    assert landing.rows("id") == [(7,)]
