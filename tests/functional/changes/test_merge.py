"""One version range at a time: what is written, and what is refused with nothing changed."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from penstock import PenstockError
from penstock.changes import ChangeSource, merge_changes
from penstock.sql.names import Name
from tests.functional.changes.conftest import FEED

PLAIN = "select id, name from {s}.a"


@pytest.fixture
def a(world):
    world.sql("create table {s}.a {feed} as select id, concat('n', id) as name, id % 3 as g from range(10)")
    return world


def test_every_kind_of_change_in_one_version_range(a):
    select = "select id, name from {s}.a where g <> 2"
    assert a.merge(select).rows_inserted == 7
    for text in (
        "insert into {s}.a values (20, 'new', 0), (21, 'gone again', 0)",
        "update {s}.a set name = 'changed' where id = 1",
        "update {s}.a set g = 2 where id = 3",  # ceases to match
        "update {s}.a set g = 0 where id = 2",  # begins to match
        "delete from {s}.a where id in (4, 21)",
        "update {s}.a set id = case id when 6 then 7 else 6 end where id in (6, 7)",  # trade keys
        "insert overwrite {s}.a select * from {s}.a",
        "update {s}.a set name = 'there' where id = 9",
        "update {s}.a set name = 'n9' where id = 9",  # and back
        "optimize {s}.a",
    ):
        a.sql(text)
    report = a.merge(select)
    a.check(select)
    assert (report.rows_inserted, report.rows_updated, report.rows_deleted) == (2, 3, 2)
    assert a.log().statistics().rows == 7, "rows that a deletion vector takes out do not count"
    assert report.way == "rows"
    assert a.merge(select).nothing_new


def test_rows_that_do_not_change_are_not_in_the_targets_feed(a):
    a.merge(PLAIN, properties={"delta.enableChangeDataFeed": "true"})
    a.sql("update {s}.a set g = 7")
    a.sql("update {s}.a set name = 'x' where id = 1")
    a.merge(PLAIN)
    version = a.log().version
    changes = a.sql(f"select id, _change_type from table_changes('{{s}}.target', {version})").collect()
    assert sorted(tuple(row) for row in changes) == [(1, "update_postimage"), (1, "update_preimage")]


@pytest.mark.parametrize("items", ["*", "a.*", "id, info.*", "id, to_json(struct(*)) as everything"])
def test_stars_of_all_kinds(world, items):
    world.sql("create table {s}.a {feed} as select id, named_struct('x', id, 'y', 'n') as info from range(3)")
    select = f"select {items} from {{s}}.a"
    world.merge(select)
    world.sql("update {s}.a set info = named_struct('x', 9L, 'y', 'm') where id = 1")
    world.merge(select)
    world.check(select)


@pytest.mark.parametrize(
    "layout",
    [
        {"partition_by": ["part", "day"]},
        {"cluster_by": ["id"]},
        {"properties": {"delta.columnMapping.mode": "name"}},
        {
            "partition_by": "part",
            "properties": {"delta.enableChangeDataFeed": "true"},
        },
    ],
    ids=str,
)
def test_rows_are_found_in_any_layout(world, layout):
    """Twice, so that the second run meets files with deletion vectors, and others without."""
    world.sql(
        "create table {s}.a {feed} as select id, id % 3 as part, date_add(date '2026-01-01', cast(id % 2 as int)) as day, "
        "concat('n', id) as name from range(40)"
    )
    named = "name as `the name`" if "delta.columnMapping.mode" in layout.get("properties", {}) else "name"
    select = f"select id, part, day, {named} from {{s}}.a where name <> 'hidden'"
    for turn in range(3):
        world.merge(select, ["id", "part"], **layout)
        # By Spark: delta-rs does not read columns by other names.
        assert world.rows("select * from {s}.target") == world.rows(select)
        world.sql(f"update {{s}}.a set name = concat(name, '{turn}') where id % 7 = {turn}")
        world.sql(f"update {{s}}.a set part = part + 1 where id % 11 = {turn}")
        world.sql(f"update {{s}}.a set name = 'hidden' where id = {turn}")
        world.sql(f"delete from {{s}}.a where id % 9 = {turn}")
        world.sql(f"insert into {{s}}.a values (100 + {turn}, 1, date '2026-02-01', 'new')")


def test_from_python_by_changes(a):
    select = "select id, upper(name) as name from @changes where id < 5"
    for _ in range(2):
        a.merge(select, source=f"{a.schema}.a")
        a.check("select id, upper(name) as name from {s}.a where id < 5")
        a.sql("delete from {s}.a where id = 1")


def test_kinds_of_values_that_can_not_be_compared(world):
    world.sql(
        "create table {s}.a {feed} as select id, map('k', id, 'none', null) as m, parse_json(concat('[', id, ']')) as v, "
        "named_struct('x', id, 'm', map(1, 'a')) as s, array(id) as xs, cast('nan' as double) as d from range(4)"
    )
    select = "select id, m, v, s, xs, d from {s}.a"
    world.merge(select)
    world.sql("update {s}.a set m = map('k', id) where id = 1")
    world.sql("update {s}.a set v = parse_json('{{\"a\": 1}}') where id = 2")
    world.sql("update {s}.a set d = d")
    report = world.merge(select)
    assert (report.rows_inserted, report.rows_updated, report.rows_deleted) == (0, 2, 0)
    shown = "select id, to_json(m) as m, to_json(v) as v, s.x, to_json(s.m) as sm, xs, d from "
    assert world.rows(shown + "{s}.target") == world.rows(shown + "{s}.a")


def test_duplicate_and_null_keys_show_an_example_and_change_nothing(a):
    select = "select g as k, name from {s}.a where id < 2"
    a.merge(select, "k")
    before = a.rows("select * from {s}.target")
    for text, example in (
        ("update {s}.a set g = 0 where id = 1", '{"k":0}'),
        ("update {s}.a set g = null where id = 1", '{"k":null}'),
    ):
        a.sql(text)
        with pytest.raises(PenstockError, match=r"unique_key|another row") as caught:
            a.merge(select, "k")
        assert example in str(caught.value)
        assert a.rows("select * from {s}.target") == before
    a.sql("update {s}.a set g = 5 where id = 1")
    a.merge(select, "k")
    a.check(select)
    # Twice the same new row.
    a.sql("insert into {s}.a values (1, 'n1', 6), (1, 'n1', 6)")
    with pytest.raises(PenstockError, match="more than once"):
        a.merge(select, "k")


def test_version_ranges_of_so_many_versions(a):
    a.merge(PLAIN)
    for index in range(5):
        a.sql(f"update {{s}}.a set name = 'v{index}' where id = {index}")
    report = a.merge(PLAIN, cdf_max_versions=2)
    assert [merged.updated for merged in report.ranges] == [2, 2, 1]
    assert report.windows == report.ranges
    a.check(PLAIN)


def test_a_version_range_without_row_changes_is_remembered_without_spark(a):
    a.merge(PLAIN)
    a.sql("insert into {s}.a values (11, 'x', 1)")
    a.merge(PLAIN)
    a.sql("optimize {s}.a")
    a.sql("alter table {s}.a set tblproperties ('note' = 'x')")
    code = (
        "import sys, penstock\n"
        f"lake = penstock.connect({a.lake.root!r})\n"
        f"report = lake.merge_changes({a.target!r}, key='id', select={PLAIN.format(s=a.schema)!r})\n"
        "assert report.nothing_new\n"
        "assert 'pyspark' not in sys.modules and 'pandas' not in sys.modules\n"
    )
    version, plans = a.log().version, len(list(a.path().glob("_checkpoint/sources/*")))
    subprocess.run([sys.executable, "-c", code], check=True)
    assert a.log().version == version + 1
    assert len(list(a.path().glob("_checkpoint/sources/*"))) == plans + 1
    subprocess.run([sys.executable, "-c", code], check=True)
    assert a.log().version == version + 1


def test_replace_and_restore_of_the_source_are_read_across(a):
    a.merge(PLAIN)
    before = a.log("a").version
    a.sql("create or replace table {s}.a {feed} as select id, 'r' as name, 0L as g from range(3, 12)")
    a.merge(PLAIN)
    a.check(PLAIN)
    a.sql(f"restore table {{s}}.a to version as of {before}")
    a.merge(PLAIN)
    a.check(PLAIN)
    # Another type of a column, in a replace: what the feed can't read is told by the versions around it.
    a.sql("create or replace table {s}.a {feed} as select cast(id as string) as id, name from {s}.a where id <> 2")
    a.merge(PLAIN, on_schema_change="sync_all_columns")
    a.check(PLAIN)


@pytest.mark.parametrize("cdf_max_versions", [None, 1])
def test_changes_before_another_type_or_column(world, cdf_max_versions):
    """Each is read with the columns of its own time, whatever the table has become since."""
    change = "update {s}.a set n = n + 1 where id < 5"
    replace = "create or replace table {s}.a {feed} as select "
    model = "select id, n from {s}.a"
    world.sql("create table {s}.a {feed} as select id, id as n, 'x' as more from range(10)")
    options = {"on_schema_change": "sync_all_columns", "cdf_max_versions": cdf_max_versions}
    world.merge(model, **options)
    for items in ("id, cast(n as int) as n, more", "id, cast(n as bigint) as n, more", "id, n"):
        world.sql(change)
        world.sql(replace + items + " from {s}.a")
        world.merge(model, **options)
        world.check(model)


def test_other_columns_without_other_rows(a):
    """A new column of the source, or of the model's SQL, is a change of the table also while no row changes."""
    everything, more = "select * from {s}.a", "select *, upper(name) as loud from {s}.a"
    options = {"on_schema_change": "append_new_columns"}
    a.merge(everything, **options)
    a.sql("alter table {s}.a add columns (extra string)")
    a.merge(everything, **options)
    a.check(everything)
    a.sql("alter table {s}.a add columns (another string)")
    a.sql("update {s}.a set another = 'x' where id = 1")
    (merged,) = a.merge(everything, **options).ranges
    assert (merged.updated, merged.whole) == (1, "")
    a.check(everything)
    version = a.log().version
    assert a.merge(everything, **options).version == version
    report = a.merge(more, **options)
    assert "has changed since the table was built" in report.warnings[0]
    assert [column.name for column in a.log().columns] == ["id", "name", "g", "extra", "another", "loud"]
    version = a.log().version
    assert a.merge(more, **options).version == version
    with pytest.raises(PenstockError, match=r"columns differ from the table's columns .*missing: loud"):
        a.merge(everything, on_schema_change="fail")
    a.merge(everything, on_schema_change="sync_all_columns")
    a.check(everything)
    a.sql("alter table {s}.a add columns (ignored string)")
    a.merge(everything)
    assert "ignored" not in [column.name for column in a.log().columns]


def test_killed_after_the_table_got_its_new_columns(a):
    """Before the plan is written: the next run finds columns that no plan tells of."""
    everything, options = "select * from {s}.a", {"on_schema_change": "append_new_columns"}
    a.merge(everything, **options)
    a.sql("alter table {s}.a add columns (extra string)")
    a.sql("update {s}.a set extra = 'x' where id = 1")

    def killed(at: str) -> None:
        if at == "plan":
            raise KeyboardInterrupt

    plans = sorted(a.path().glob("_checkpoint/sources/*"))
    source = ChangeSource.from_mapping({"unique_key": "id", **options})
    select = everything.format(s=a.schema)
    with pytest.raises(KeyboardInterrupt):
        merge_changes(a.lake, Name.parse(a.target), source, select, runner=a.lake.runner, step=killed)
    assert "extra" in [column.name for column in a.log().columns]
    assert sorted(a.path().glob("_checkpoint/sources/*")) == plans
    assert a.merge(everything, **options).rows_updated == 1
    a.check(everything)


MAPPED = (
    "create table {s}.a (id int, v string, n int) tblproperties ('delta.enableChangeDataFeed' = 'true', "
    "'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
)


@pytest.fixture
def mapped(world):
    world.sql(MAPPED)
    world.sql("insert into {s}.a values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    return world


_INSERT, _UPDATE = "insert into {s}.a values (4, 4)", "update {s}.a set v = 'new' where id = 1"


@pytest.mark.parametrize(
    ("policy", "between", "after"),
    [
        ("ignore", "run", None),
        ("append_new_columns", _INSERT, None),
        ("sync_all_columns", "run", _UPDATE),
    ],
)
def test_a_column_dropped_and_added_again(mapped, policy, between, after):
    """Rows that no commit has changed have lost what was in it."""
    select = "select * from {s}.a where id > 0"
    mapped.merge(select, on_schema_change=policy)
    mapped.sql("alter table {s}.a drop column v")
    if between == "run":
        mapped.merge(select, on_schema_change=policy)
    elif between:
        mapped.sql(between)
    mapped.sql("alter table {s}.a add column v string")
    if after:
        mapped.sql(after)
    mapped.merge(select, on_schema_change=policy)
    mapped.check(select)
    version = mapped.log().version
    assert mapped.merge(select, on_schema_change=policy).version == version


def test_a_widened_column_reads_otherwise_in_rows_that_stay(mapped):
    texts, values = "select id, cast(n as string) as s from {s}.a", "select id, n from {s}.a"
    rows = "select id, struct(*) as row from {s}.a"
    other = f"{mapped.schema}.values"
    mapped.merge(texts)
    mapped.merge(values, target=other)
    mapped.merge(rows, target=f"{mapped.schema}.rows")
    mapped.sql("alter table {s}.a alter column n type double")
    (merged,) = mapped.merge(texts).ranges
    assert (merged.updated, merged.whole) == (3, f"{mapped.schema}.a: n changed without the rows")
    mapped.check(texts)
    mapped.sql("insert into {s}.a values (9, 'i', 1e300)")
    mapped.merge(texts)
    mapped.check(texts)
    said = r"a 2 to 3 does not fit: .*n is double in the model and int in the table.*sync_all_columns"
    with pytest.raises(PenstockError, match=said):
        mapped.merge(values, target=other)
    mapped.merge(values, target=other, on_schema_change="sync_all_columns")
    mapped.check(values, other)
    mapped.merge(rows, target=f"{mapped.schema}.rows", on_schema_change="sync_all_columns")
    mapped.check(rows, f"{mapped.schema}.rows")


def test_a_value_that_is_cast_is_warned_about(a):
    select = "select id, g from {s}.a"
    a.merge(select)
    a.sql("create or replace table {s}.a {feed} as select id, name, g + 0.5d as g from {s}.a")
    (warning,) = a.merge(select).warnings
    assert "g is double in the model and bigint in the table: fractions are cut off" in warning
    a.sql("update {s}.a set g = 9.5 where id = 1")
    a.sql("update {s}.a set g = 8.5 where id = 2")
    (warning,) = a.merge(select, cdf_max_versions=1).warnings
    assert "fractions are cut off" in warning
    assert a.merge(select).warnings == []


@pytest.mark.parametrize("way", ["rows", "keys"])
def test_a_struct_goes_by_the_names_of_its_fields(a, way):
    """Spark's cast has them by place."""
    read = "from {s}.a" if way == "rows" else "from {s}.a left semi join (select 7 as g) as t on t.g <> a.g"
    first = f"select id, named_struct('x', id, 'y', -id) as s {read}"
    then = f"select id, named_struct('new', name, 'y', -id, 'x', id) as s {read}"
    assert a.merge(first).way == way
    a.sql("update {s}.a set name = 'changed', g = 5 where id in (1, 2)")
    report = a.merge(then)
    assert any("s.new (string) is not in the table: its values are not stored" in said for said in report.warnings)
    a.check(first)
    a.sql("update {s}.a set name = 'again' where id in (1, 2)")
    report = a.merge(then, on_schema_change="append_new_columns")
    assert not any("not stored" in said for said in report.warnings)
    assert [column.type for column in a.log().columns] == ["bigint", "struct<x:bigint,y:bigint,new:string>"]
    rows = a.sql(f"select id, s.x, s.y, s.new from {a.target} where id in (1, 2, 3) order by id").collect()
    assert [tuple(row) for row in rows] == [(1, 1, -1, "again"), (2, 2, -2, "again"), (3, 3, -3, None)]


def test_columns_in_another_order(a):
    select = "select id, to_json(struct(*)) as row from {s}.a"
    a.merge(select)
    a.sql("alter table {s}.a alter column name first")
    a.merge(select)
    a.check(select)


def test_a_column_that_the_model_reads_is_dropped(mapped):
    select, options = "select id, upper(v) as loud from {s}.a", {"cdf_max_versions": 1}
    mapped.merge(select, **options)
    mapped.sql("alter table {s}.a drop column v")
    version = mapped.log().version
    for _ in range(2):
        with pytest.raises(
            PenstockError,
            match=r"reads a dropped column: v of .*\.a \(dropped in .*a 2 to 2\)\..*Remove the column from the SQL",
        ):
            mapped.merge(select, **options)
    assert mapped.log().version == version
    mapped.sql("alter table {s}.a add column v string")
    mapped.merge(select, **options)
    mapped.check(select)
    mapped.sql("alter table {s}.a drop column v")
    mapped.sql("update {s}.a set n = 7 where id = 1")
    fewer = "select id, n from {s}.a"
    mapped.merge(fewer, on_schema_change="sync_all_columns", full_refresh=True)
    mapped.check(fewer)


def test_an_aggregate_in_a_subquery_of_an_expression(a):
    a.sql("create table {s}.b {feed} as select id, id % 10 as a_id from range(30)")
    select = "select id, (select count(*) from {s}.b where b.a_id = a.id) as many from {s}.a"
    assert a.merge(select).way == "whole"
    a.sql("delete from {s}.b where id < 5")
    a.merge(select)
    a.check(select)


def test_columns_dropped_and_widened(world):
    world.sql(
        "create table {s}.a (id bigint, name string, n int, more string) tblproperties ("
        "'delta.enableChangeDataFeed' = 'true', 'delta.columnMapping.mode' = 'name', 'delta.enableTypeWidening' = 'true')"
    )
    world.sql("insert into {s}.a values (1, 'a', 1, 'm'), (2, 'b', 2, 'm'), (3, 'c', 3, 'm')")
    select = "select id, name, n from {s}.a"
    world.merge(select)
    world.sql("update {s}.a set n = 5 where id = 1")
    world.sql("alter table {s}.a drop column more")
    world.sql("delete from {s}.a where id = 2")
    world.sql("alter table {s}.a alter column n type bigint")
    world.sql("update {s}.a set n = 5000000000 where id = 3")
    world.merge(select, on_schema_change="sync_all_columns")
    world.check(select)
    world.sql("alter table {s}.a rename column name to title")
    world.sql("update {s}.a set title = 'z' where id = 1")
    renamed = "select id, title as name, n from {s}.a"
    with pytest.raises(PenstockError, match=r"name of .* was renamed to title by version \d+.*--full-refresh"):
        world.merge(renamed)
    world.merge(renamed, on_cdf_gap="full_refresh")
    world.check(renamed)


def no_change(world, match: str, select: str = PLAIN) -> None:
    version, rows = world.log().version, world.rows("select * from {s}.target")
    with pytest.raises(PenstockError, match=match):
        world.merge(select)
    assert (world.log().version, world.rows("select * from {s}.target")) == (version, rows)


def healed(world, select: str = PLAIN) -> None:
    report = world.merge(select, on_cdf_gap="full_refresh")
    assert any("is rebuilt" in warning for warning in report.warnings)
    world.check(select)


def test_gaps_in_the_log(a):
    a.merge(PLAIN)
    a.sql("update {s}.a set name = 'x' where id = 1")
    a.sql("update {s}.a set name = 'y' where id = 2")
    log = a.path("a") / "_delta_log"
    hidden = log / f"{1:020}.json"
    # A checkpoint, so that the table can be read without that commit.
    a.lake.spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(
        a.lake.spark._jsparkSession, str(a.path("a"))
    ).checkpoint()
    hidden.unlink()
    (log / f"{0:020}.json").unlink()
    no_change(a, rf"{a.schema}.a was cleaned up: its versions 1 to 2 are needed, and 1 is gone.*full_refresh")
    healed(a)


def test_the_feed_was_off(a):
    a.merge(PLAIN)
    a.sql("alter table {s}.a set tblproperties ('delta.enableChangeDataFeed' = 'false')")
    no_change(
        a, r"has no change data feed at version 1, so its changes after version 0 cannot be followed.*ALTER TABLE"
    )
    a.sql("alter table {s}.a set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    a.sql("update {s}.a set name = 'fine' where id = 1")
    a.merge(PLAIN)
    a.check(PLAIN)
    a.sql("alter table {s}.a set tblproperties ('delta.enableChangeDataFeed' = 'false')")
    a.sql("update {s}.a set name = 'unseen' where id = 2")
    a.sql("alter table {s}.a set tblproperties ('delta.enableChangeDataFeed' = 'true')")
    no_change(a, r"was off at version 5 \(since 4\)")
    healed(a)


def test_change_files_are_gone(a):
    a.merge(PLAIN)
    a.sql("update {s}.a set name = 'x' where id = 1")
    shutil.rmtree(a.path("a") / "_change_data")
    no_change(a, r"a 1 to 1 are gone from disk.*full_refresh")
    no_change(a, r"a 1 to 1 are gone from disk.*full_refresh")
    healed(a)


def test_a_log_created_again_at_the_same_location(a):
    a.merge(PLAIN)
    a.lake.sql(f"drop table {a.schema}.a")
    a.sql("create table {s}.a {feed} as select id, 'other' as name from range(3)")
    no_change(a, rf"{a.schema}.a was created again")
    healed(a)
    a.sql("insert into {s}.a values (7, 'x')")
    a.merge(PLAIN)
    a.check(PLAIN)


def test_a_target_restored_and_a_target_changed_by_others(a):
    a.merge(PLAIN)
    a.sql("update {s}.a set name = 'x' where id = 1")
    a.merge(PLAIN)
    a.sql("delete from {s}.target where id = 5")
    a.sql("update {s}.a set name = 'y' where id = 2")
    (warning,) = a.merge(PLAIN).warnings
    assert "was changed by others: DELETE (version 2)" in warning
    a.sql("insert into {s}.target values (77, 'alien')")
    a.sql("insert overwrite {s}.target values (78, 'alien')")
    a.sql("update {s}.a set name = 'z' where id = 2")
    no_change(a, "overwritten by another writer in version 5.*RESTORE the table to version 4")
    a.sql("restore table {s}.target to version as of 4")
    (warning,) = a.merge(PLAIN).warnings
    assert "was changed by others: WRITE (version 4), WRITE (version 5); --full-refresh" in warning
    a.sql("restore table {s}.target to version as of 0")
    no_change(a, "restored to an older version")
    a.merge(PLAIN, full_refresh=True)
    a.check(PLAIN)


def test_a_changed_model_is_warned_about(a):
    a.merge(PLAIN)
    a.sql("update {s}.a set name = 'x' where id = 1")
    report = a.merge("select id, upper(name) as name from {s}.a")
    assert any("has changed since the table was built" in warning for warning in report.warnings)
    # As long as old rows stand beside new ones.
    assert a.merge("select id, upper(name) as name from {s}.a").warnings == report.warnings
    assert not a.merge(PLAIN).warnings


def test_a_table_that_is_not_followed_and_joined(world):
    """What a row was made from may be gone from there; then a change of the row must still be seen."""
    world.sql("create table {s}.a {feed} as select id, id as k, id as x from range(6)")
    world.sql("create table {s}.b {feed} as select id as k, concat('b', id) as name from range(6)")
    select = "select a.id, a.x, b.name from {s}.a join {s}.b on a.k = b.k"
    followed = {"cdf_source": f"{world.schema}.a"}
    world.merge(select, **followed)
    world.sql("delete from {s}.b where k in (1, 2, 3)")
    for text in (
        "delete from {s}.a where id = 1",
        "update {s}.a set x = 100 where id = 2",
        "update {s}.a set k = 4 where id = 3",
    ):
        world.sql(text)
    report = world.merge(select, **followed)
    world.check(select)
    assert "not followed" in report.ranges[0].whole


def test_another_key_is_another_table(world):
    world.sql(
        "create table {s}.a {feed} as select id, part from range(3) cross join (select explode(array(0, 1)) as part)"
    )
    select = "select id, part, id * 10 + part as v from {s}.a"
    world.merge(select, ["id", "part"])
    world.sql("delete from {s}.a where id = 1 and part = 0")
    with pytest.raises(PenstockError, match=r"`unique_key` is \(id\) now, and the table was built by \(id, part\)"):
        world.merge(select, "id")
    world.merge(select, ["part", "ID"])
    world.check(select)


def test_values_that_json_does_not_tell_apart(world):
    world.sql(
        "create table {s}.a {feed} as select id, map(cast(concat('k', id) as binary), 1) as m, "
        "if(id = 1, parse_json('null'), null) as v, named_struct('a-b', id) as s from range(3)"
    )
    select = "select id, m, v, s from {s}.a"
    world.merge(select)
    world.sql("insert into {s}.a values (9, map(X'00', 1, X'01', 2), null, null)")
    world.sql("delete from {s}.a where id = 9")
    world.sql("update {s}.a set v = parse_json('null') where id = 2")
    world.merge(select)
    shown = "select id, s.`a-b` as s, v is null as missing, cast(map_keys(m)[0] as string) as k from {s}."
    assert world.rows(shown + "target") == world.rows(shown + "a")


def test_a_mix_of_old_and_new_rows_that_fails(world):
    """No table ever held both: the model is computed as a whole instead."""
    world.sql("create table {s}.a {feed} as select id, id as k, 10 as x from range(1, 5)")
    world.sql("create table {s}.b {feed} as select id as k, id as y from range(5)")
    select = "select a.id, a.x / b.y as r from {s}.a a join {s}.b b on a.k = b.k"
    world.merge(select)
    world.sql("update {s}.b set y = 7 where k = 0")
    world.sql("insert into {s}.a values (0, 0, 10)")
    report = world.merge(select)
    assert re.match(r"its changes alone fail: .*DIVIDE_BY_ZERO", report.ranges[0].whole)
    world.check(select)
    world.sql("alter table {s}.b add columns (extra string)")
    world.sql("insert into {s}.a values (9, 1, 10)")
    star = "select a.id, b.* from {s}.a join {s}.b b on a.k = b.k"
    world.merge(star, target=f"{world.schema}.stars")
    world.sql("alter table {s}.b add columns (more string)")
    world.sql("delete from {s}.a where id = 9")
    world.merge(star, target=f"{world.schema}.stars", on_schema_change="append_new_columns")
    world.check(star, f"{world.schema}.stars")
    world.sql("update {s}.b set y = 0 where k = 1")
    with pytest.raises(PenstockError, match="DIVIDE_BY_ZERO"):
        world.merge(select)


@pytest.mark.parametrize(
    ("select", "keys", "problem"),
    [
        ("select id from @changes", {}, "reads `@changes`, but `source` is not set"),
        (PLAIN, {"source": "silver.a"}, "`source` is set, but the SELECT does not read `@changes`"),
    ],
)
def test_what_is_called_changes_has_a_source(world, select, keys, problem):
    with pytest.raises(PenstockError, match=problem):
        world.merge(select, **keys)


def test_a_first_run_that_failed_does_not_tell_of_other_sql(a):
    with pytest.raises(PenstockError, match="not unique"):
        a.merge("select g as id, name from {s}.a")
    a.merge(PLAIN)
    a.sql("delete from {s}.a where id = 1")
    assert a.merge(PLAIN).warnings == []
    a.check(PLAIN)


ZEROS = "select id, d, f, s, xs, m, deep, n from {s}.a"


@pytest.mark.parametrize(
    ("select", "way"),
    [
        (ZEROS, "rows"),
        ("select a.id, a.d, a.f, a.s, a.xs, a.m, a.deep, b.d as other from {s}.a a join {s}.a b on a.id = b.id", "rows"),
        ("select a.id, a.d, a.f, a.s, a.xs, a.m, a.deep, b.d as other from {s}.a a left join {s}.a b on a.id = b.id", "keys"),
        (ZEROS + " where n < (select max(n) + 1 from {s}.a)", "whole"),
    ],
    ids=["rows", "join", "keys", "whole"],
)  # fmt: skip
@pytest.mark.parametrize("vectors", ["true", "false"])
def test_a_zero_that_changes_its_sign_is_a_change(world, select, way, vectors):
    """Spark groups, joins and compares the two as one, and shows them as two."""
    world.sql(
        "create table {s}.a {feed} as select id, 0.0d as d, 0.0f as f, named_struct('x', 0.0d) as s, "
        "array(0.0d, 1.0d) as xs, map('k', 0.0d) as m, array(named_struct('m', map(1, 0.0f))) as deep, id as n "
        "from range(8)"
    )
    world.merge(select, properties={"delta.enableDeletionVectors": vectors})
    negative = {
        "d": "-0.0d", "f": "-0.0f", "s": "named_struct('x', -0.0d)", "xs": "array(-0.0d, 1.0d)",
        "m": "map('k', -0.0d)", "deep": "array(named_struct('m', map(1, -0.0f)))",
    }  # fmt: skip
    for id, (name, value) in enumerate(negative.items()):
        world.sql(f"update {{s}}.a set {name} = {value} where id = {id}")
    world.sql("update {s}.a set d = cast('nan' as double) where id = 7")
    report = world.merge(select)
    assert report.way == way
    assert (report.rows_inserted, report.rows_updated, report.rows_deleted) == (0, 7, 0)
    world.check(select)
    world.sql("update {s}.a set d = 0.0d, f = 0.0f where id < 2")
    world.sql("update {s}.a set d = cast('nan' as double) where id = 7")
    assert world.merge(select).rows_updated == 2
    world.check(select)


@pytest.mark.parametrize("select", ["select d, n from {s}.a", "select d, sum(n) as n from {s}.a group by d"])
def test_a_zero_that_changes_its_sign_is_the_same_key(world, select):
    world.sql("create table {s}.a {feed} as select cast(id as double) as d, id as n from range(4)")
    world.merge(select, "d")
    world.sql("update {s}.a set d = -0.0d where n = 0")
    world.merge(select, "d")
    world.check(select)
    world.sql("update {s}.a set n = 5 where d = 0")
    world.merge(select, "d")
    world.check(select)
    world.sql("delete from {s}.a where d = 0")
    world.merge(select, "d")
    world.check(select)


@pytest.mark.parametrize("value", ["map('k', id)", "named_struct('m', map('k', id))", "parse_json('1')"])
def test_a_key_that_can_not_be_joined_by_is_refused_at_the_first_run(a, value):
    with pytest.raises(PenstockError, match=r"`unique_key` has k, .*maps and variants"):
        a.merge(f"select {value} as k, name from {{s}}.a", "k")


def test_one_table_name_in_two_schemas(a):
    other = f"{a.schema}_other"
    a.lake.sql(f"create table {other}.a {FEED} as select id, id * 10 as n from range(6)")
    select = (
        f"select {{s}}.a.id, {other}.a.n, a.name, (select max(n) from {other}.a where a.n > 0) as top "
        f"from {{s}}.a join {other}.a on {{s}}.a.id = {other}.a.id where g < 5"
    )
    a.merge(select)
    a.check(select)
    a.sql("update {s}.a set name = 'x' where id = 2")
    a.lake.sql(f"update {other}.a set n = 7 where id = 3")
    a.merge(select)
    a.check(select)


@pytest.mark.parametrize(
    "group", ["rollup(g)", "cube(g)", "g grouping sets ((g), ())", "grouping sets ((g), ())", "g with rollup"]
)
def test_groupings_of_several_kinds_are_computed_as_a_whole(a, group):
    select = f"select coalesce(g, -1) as g, count(*) as c from {{s}}.a group by {group}"
    a.merge(select, "g")
    a.sql("delete from {s}.a where id = 1")
    report = a.merge(select, "g")
    assert "ROLLUP, CUBE or GROUPING SETS" in report.ranges[0].whole
    a.check(select)
    with pytest.raises(PenstockError, match=r"`unique_key`.*is null in the model's result"):
        a.merge(f"select g, count(*) as c from {{s}}.a group by {group}", "g", target=f"{a.schema}.other")
