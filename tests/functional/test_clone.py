"""Clones in this process: what they carry, and what stays when one can't be made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

import penstock
from penstock.api import Lake
from penstock.delta.table import MARK, VOID, Table
from penstock.errors import PenstockError
from penstock.lake.relations import Link
from penstock.sql.names import Name
from tests.conftest import SESSION, delta_rows

SOURCE, TARGET = Name("clones", "source"), Name("clones", "target")


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return penstock.connect(str(tmp_path / "lake"), session=SESSION)


def mark(location: str, number: int, void: int | None = None) -> None:
    """A commit with marks, as a run makes it."""
    delta = DeltaTable(location)
    marks = [Transaction(MARK, number)] + ([] if void is None else [Transaction(VOID, void)])
    properties = CommitProperties(custom_metadata={"userMetadata": f"penstock {number}"}, app_transactions=marks)
    delta.create_write_transaction([], "append", delta.schema(), commit_properties=properties)


def plan(location: str, number: int, content: str = "{}") -> None:
    path = Path(location, "_checkpoint", "sources", str(number))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


def ids(lake: Lake, name: Name) -> list[int]:
    return sorted(row["id"] for row in delta_rows(Path(lake.get(name).location)))


@pytest.mark.parametrize("elsewhere", [False, True])
def test_marks_void_and_ledger_are_the_sources(lake: Lake, tmp_path: Path, elsewhere: bool) -> None:
    location = str(tmp_path / "elsewhere") if elsewhere else lake.location_of(SOURCE)
    if elsewhere:
        lake.links[SOURCE] = Link(location)
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select id from range(3)")
    plan(location, 0)
    mark(location, 7, void=5)
    plan(location, 7)
    plan(location, 8, "unfinished")
    lake.clone(SOURCE, TARGET)
    table = lake.log_of(TARGET)
    assert (table.mark, table.void) == (7, 5)
    ledger = Path(table.location, "_checkpoint", "sources")
    assert {path.name: path.read_text() for path in ledger.iterdir()} == {"0": "{}", "7": "{}", "8": "unfinished"}
    newest, cloned = table.history(2)
    assert newest["userMetadata"].startswith("penstock clone ")
    assert newest["userMetadata"].endswith(f" base {cloned['version']}")
    assert cloned["operation"] == "CLONE"
    assert sorted(row.id for row in lake.table(str(TARGET)).collect()) == [0, 1, 2]
    assert not list(Path(table.location).glob("*.parquet"))
    assert not list(Path(lake.root).rglob(".penstock-*"))


@pytest.mark.parametrize(("moment", "brought"), [("clone", 2), ("copied", 0), ("cloned", 0)])
def test_a_clone_is_of_one_version(lake: Lake, moment: str, brought: int) -> None:
    """It starts over when a batch comes in before the ledger was copied; later batches are not its own."""
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select id from range(2)")
    location = lake.location_of(SOURCE)
    plan(location, 0)
    mark(location, 0)
    times = 0

    def step(name: str) -> None:
        nonlocal times
        if name == moment and times < 2:
            times += 1
            write_deltalake(
                location,
                DeltaTable(location).to_pyarrow_table().slice(0, 1),
                mode="append",
                commit_properties=CommitProperties(app_transactions=[Transaction(MARK, times)]),
            )
            plan(location, times)

    lake.clone(SOURCE, TARGET, step=step)
    assert times == (2 if moment == "clone" else 1)
    assert lake.log_of(TARGET).mark == brought
    assert len(ids(lake, TARGET)) == 2 + brought
    plans = {path.name for path in Path(lake.location_of(TARGET), "_checkpoint", "sources").iterdir()}
    assert plans == {str(number) for number in range(brought + 1)}


def test_a_source_that_is_made_anew_meanwhile_is_cloned_again(lake: Lake) -> None:
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select id from range(2)")
    mark(lake.location_of(SOURCE), 3)
    anew = False

    def step(name: str) -> None:
        nonlocal anew
        if name == "copied" and not anew:
            anew = True
            lake.drop(SOURCE)
            lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select id from range(5)")
            lake.sql(f"insert into {SOURCE} values (7)")

    lake.clone(SOURCE, TARGET, step=step)
    assert ids(lake, TARGET) == [0, 1, 2, 3, 4, 7]
    assert lake.log_of(TARGET).mark is None


def test_a_source_that_never_rests_is_named_and_the_target_stays(lake: Lake) -> None:
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select id from range(2)")
    lake.sql(f"create table {TARGET} as select 9L as id")
    location = lake.location_of(SOURCE)
    mark(location, 0)

    def step(name: str) -> None:
        if name == "clone":
            mark(location, (Table.open(location).mark or 0) + 1)

    with pytest.raises(PenstockError, match=r"changed 5 times .* clones\.target was not changed"):
        lake.clone(SOURCE, TARGET, step=step)
    assert ids(lake, TARGET) == [9]
    assert not list(Path(lake.root).rglob(".penstock-*"))


@pytest.mark.parametrize("failing", ["clone", "cloned", "copied", "marked", "replace"])
def test_the_old_target_stays_until_the_clone_is_whole(lake: Lake, failing: str) -> None:
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select id from range(2)")
    lake.sql(f"create table {TARGET} as select 9L as id")
    mark(lake.location_of(SOURCE), 0)

    def fail(name: str) -> None:
        if name == failing:
            raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        lake.clone(SOURCE, TARGET, step=fail)
    assert ids(lake, TARGET) == [9]
    assert not list(Path(lake.root).rglob(".penstock-*"))
    lake.clone(SOURCE, TARGET)
    assert sorted(row.id for row in lake.table(str(TARGET)).collect()) == [0, 1]


def test_a_table_that_delta_rs_only_reads_is_marked_by_spark(lake: Lake) -> None:
    lake.sql(
        f"create table {SOURCE} cluster by (id) tblproperties ('penstock.generation' = '0') as select id from range(4)"
    )
    lake.sql(f"delete from {SOURCE} where id = 1")
    table = lake.log_of(SOURCE)

    lake.runner.commit_marks(table, {MARK: 4, VOID: 3}, "penstock 4")
    lake.clone(SOURCE, TARGET)
    cloned = lake.log_of(TARGET)
    assert (cloned.mark, cloned.void) == (4, 3)
    assert cloned.history(1)[0]["userMetadata"].endswith(" base 0")
    assert sorted(row.id for row in lake.table(str(TARGET)).collect()) == [0, 2, 3]
    lake.sql(f"delete from {TARGET} where id = 2")
    assert sorted(row.id for row in lake.table(str(SOURCE)).collect()) == [0, 2, 3]


def test_what_is_no_relation_is_not_replaced(lake: Lake) -> None:
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select 1 as id")
    notes = Path(lake.root, "clones", "target", "notes.txt")
    notes.parent.mkdir()
    notes.write_text("keep me")
    with pytest.raises(PenstockError, match=r"notes\.txt"):
        lake.clone(SOURCE, TARGET)
    assert notes.read_text() == "keep me"
    notes.unlink()
    plan(str(notes.parent), 0, "of an earlier life")
    lake.clone(SOURCE, TARGET)
    assert not Path(lake.location_of(TARGET), "_checkpoint").exists()


def test_a_view_and_a_link_are_replaced_and_data_elsewhere_stay(lake: Lake, tmp_path: Path) -> None:
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select 1L as id")
    lake.sql(f"create view {TARGET} as select 2L as id")
    lake.clone(SOURCE, TARGET)
    assert lake.get(TARGET).kind == "table"
    lake.drop(TARGET)
    lake.sql(f"create table {TARGET} using delta location '{tmp_path / 'elsewhere'}' as select 3L as id")
    lake.clone(SOURCE, TARGET)
    assert lake.get(TARGET).location == lake.folder_of(TARGET)
    assert [row.id for row in lake.table(str(TARGET)).collect()] == [1]
    assert [row["id"] for row in delta_rows(tmp_path / "elsewhere")] == [3]


def test_a_clone_with_a_location_is_made_there_and_replaces_nothing(lake: Lake, tmp_path: Path) -> None:
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select 1L as id")
    lake.links[TARGET] = Link(str(tmp_path / "elsewhere"))
    lake.clone(SOURCE, TARGET)
    assert [row.id for row in lake.table(str(TARGET)).collect()] == [1]
    kept = json.loads(Path(lake.folder_of(TARGET), "_link.json").read_text())
    assert kept["location"] == str(tmp_path / "elsewhere")
    with pytest.raises(PenstockError, match="a clone replaces no table outside of the lake"):
        lake.clone(SOURCE, TARGET)


def test_only_tables_are_cloned(lake: Lake) -> None:
    lake.sql(f"create view {SOURCE} as select 1 as id")
    with pytest.raises(PenstockError, match="is a view, and only tables"):
        lake.clone(SOURCE, TARGET)


def test_a_source_that_others_took_rows_out_of_is_not_cloned(lake: Lake) -> None:
    """In the clone nobody could tell any more: its own commit would stand above."""
    lake.sql(f"create table {SOURCE} tblproperties ('penstock.generation' = '0') as select id from range(2)")
    location = lake.location_of(SOURCE)
    write_deltalake(location, DeltaTable(location).to_pyarrow_table(), mode="append")
    mark(location, 0)
    DeltaTable(location).restore(0)
    with pytest.raises(PenstockError, match="restored to an older version"):
        lake.clone(SOURCE, TARGET)
    assert lake.find(TARGET) is None
