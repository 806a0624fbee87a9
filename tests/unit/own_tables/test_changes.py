"""`penstock.changes`, `penstock.windows` and `penstock.relations`."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.api import Lake
from penstock.changes.plan import ChangePlan
from penstock.changes.version_range import VersionRange
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.lake.relations import Link, View
from penstock.protocol.journal import Journal
from penstock.protocol.plan import InvalidPlan, new_ledger
from penstock.sql.names import Name
from penstock.sql.wanted import EVERYTHING, Wanted, wanted_by
from tests.unit.inspection.conftest import History
from tests.unit.windows.world import DAY, FIRST, Killed, World

ADDED = {"delete_before_insert": False}


@pytest.fixture
def shop(tmp_path: Path) -> History:
    return History(tmp_path)


def rows(lake: Lake, name: str, *columns: str, wanted: Wanted = EVERYTHING) -> list[tuple[Any, ...]]:
    found = lake.own_rows.rows(Name("penstock", name), wanted).to_pylist()
    return [tuple(row[column] for column in columns) for row in found]


def follow(shop: History) -> Journal[ChangePlan]:
    """silver.copy is built from version 1 of bronze.events, then one plan is cancelled, and one brings 2 to 3 in."""
    for _ in range(4):
        shop.land()
        shop.run()
    source = Table.open(str(shop.table))
    copy = shop.table.parent.parent / "silver" / "copy"
    write_deltalake(str(copy), pa.table({"id": pa.array([], pa.int64())}))
    journal: Journal[ChangePlan] = Journal(str(copy))
    built = VersionRange("bronze.events", str(shop.table), source.id, None, 1, "")
    first = ChangePlan(7, 7, (built,), replace=True, ledger=new_ledger())
    assert journal.write_ahead(first)
    journal.claim(first, journal.state())
    later = replace(built, start=1, end=3)
    second = replace(first, number=8, ranges=(later,), replace=False, whole="it has a LIMIT")
    assert journal.write_ahead(second)
    journal.cancel(second, journal.state(), InvalidPlan("the model's SQL has changed since it was planned"))
    third = replace(second, number=9)
    assert journal.write_ahead(third)
    journal.commit_empty(9, journal.state())
    return journal


def test_version_ranges_and_the_versions_that_wait(shop: History) -> None:
    journal = follow(shop)
    columns = ("source", "status", "first_version", "last_version", "number", "way", "reason", "version")
    assert rows(shop.lake, "changes", *columns) == [
        ("bronze.events", "committed", None, 1, 7, "build", None, 1),
        ("bronze.events", "cancelled", 2, 3, 8, "whole", "the model's SQL has changed since it was planned", 2),
        ("bronze.events", "committed", 2, 3, 9, "whole", "it has a LIMIT", 3),
        ("bronze.events", "waiting", 4, 4, None, None, None, None),
    ]
    (since,) = (
        row[0] for row in rows(shop.lake, "changes", "waiting_since", wanted=Wanted.only(status="waiting")) if row[0]
    )
    assert abs((datetime.now(timezone.utc) - since).total_seconds()) < 600
    plan = replace(ChangePlan(10, 7, ()), ranges=(VersionRange("bronze.events", str(shop.table), "", 3, 4, ""),), ledger=journal.state().ledger)  # fmt: skip
    assert journal.write_ahead(plan)
    assert rows(shop.lake, "changes", "status", "number")[-2:] == [("unfinished", 10), ("waiting", None)]
    assert rows(shop.lake, "changes", "status", wanted=Wanted.only(table_name="events")) == []


def test_a_source_that_is_gone_is_an_error_unless_what_waits_is_left_out(shop: History) -> None:
    follow(shop)
    shutil.rmtree(shop.table)
    with pytest.raises(PenstockError, match=r"versions of bronze.events that wait for silver.copy are not known"):
        rows(shop.lake, "changes", "status")
    wanted = wanted_by("select * from penstock.changes where status not in ('waiting')", "penstock", "changes")
    assert len(rows(shop.lake, "changes", "status", wanted=wanted)) == 3


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_windows_that_are_added(world: World) -> None:
    for day in range(3):
        world.happen(day, 2)
    world.run(FIRST + 2 * DAY, **ADDED)
    world.run(FIRST + 3 * DAY, **ADDED)
    found = rows(world.lake, "windows", "window_start", "window_end", "status", "rows_inserted")
    assert found == [(FIRST + day * DAY, FIRST + (day + 1) * DAY, "loaded", 2) for day in range(3)]
    numbers = [number for (number,) in rows(world.lake, "windows", "number")]
    assert numbers == sorted(numbers)
    for planned, committed in rows(world.lake, "windows", "planned_at", "committed_at"):
        assert planned <= committed


def test_windows_that_replace_rows_and_holes(world: World) -> None:
    for day in range(6):
        world.happen(day, 2)
    world.run(FIRST + 2 * DAY)
    world.run(FIRST + 6 * DAY, named=(4, 6))
    found = rows(world.lake, "windows", "window_start", "window_end", "status")
    assert found == [
        (FIRST, FIRST + DAY, "loaded"),
        (FIRST + DAY, FIRST + 2 * DAY, "loaded"),
        (FIRST + 2 * DAY, FIRST + 4 * DAY, "hole"),
        (FIRST + 4 * DAY, FIRST + 5 * DAY, "loaded"),
        (FIRST + 5 * DAY, FIRST + 6 * DAY, "loaded"),
    ]
    assert all(
        time is not None for time, status in rows(world.lake, "windows", "committed_at", "status") if status == "loaded"
    )


def test_windows_of_an_earlier_life_and_unfinished_ones(world: World) -> None:
    for day in range(4):
        world.happen(day, 2)
    world.run(FIRST + 3 * DAY, **ADDED)
    shutil.rmtree(world.table / "_delta_log")
    world.run(FIRST + 3 * DAY, **ADDED)
    assert [status for (status,) in rows(world.lake, "windows", "status")] == ["loaded"] * 3
    with pytest.raises(Killed):
        world.run(FIRST + 4 * DAY, kill=("planned", 1), **ADDED)
    assert [status for (status,) in rows(world.lake, "windows", "status")] == ["loaded"] * 3 + ["unfinished"]


def test_windows_whose_plans_are_gone_are_one_range(world: World) -> None:
    for day in range(4):
        world.happen(day)
        world.run(FIRST + (day + 1) * DAY, **ADDED)
    plans = sorted((world.table / "_checkpoint" / "sources").iterdir(), key=lambda path: int(path.name))
    for plan in plans[:-1]:
        plan.unlink()
    assert rows(world.lake, "windows", "window_start", "window_end", "number") == [
        (FIRST, FIRST + 3 * DAY, None),
        (FIRST + 3 * DAY, FIRST + 4 * DAY, int(plans[-1].name)),
    ]


def test_relations_and_what_needs_attention(shop: History) -> None:
    follow(shop)
    shop.quarantine(shop.land("bad.json"))
    shop.land()
    shop.lake.storage.write("gold/v/_view.json", View("select * from penstock.files", (), inputs={"penstock.files": ""}).to_bytes())  # fmt: skip
    raw = Path(shop.lake.root).parent / "raw"
    raw.mkdir()
    (raw / "a.csv").write_text("1")
    shop.lake.storage.write("bronze/raw/_link.json", Link(str(raw), "csv").to_bytes())
    columns = ("table_schema", "table_name", "kind", "row_count", "files_waiting", "files_quarantined", "versions_behind", "error")  # fmt: skip
    assert sorted(rows(shop.lake, "relations", *columns)) == [
        ("bronze", "events", "files", 4, 1, 1, None, None),
        ("bronze", "raw", "raw files", None, None, None, None, None),
        ("gold", "v", "view", None, None, None, None, None),
        ("silver", "copy", "changes", 0, None, None, 2, None),
    ]
    attention = dict(rows(shop.lake, "relations", "table_name", "attention"))
    assert attention["events"] == "1 file in quarantine; 1 file to come in"
    assert attention["v"] is None
    assert rows(shop.lake, "relations", "table_name", wanted=Wanted.only(table_schema="gold")) == [("v",)]
    assert rows(shop.lake, "relations", "table_name", wanted=Wanted.only(table_schema="nowhere")) == []


def test_commits_of_others_are_no_batches(shop: History) -> None:
    shop.land()
    shop.run()
    shop.write_beside()
    DeltaTable(str(shop.table)).delete("id = -1")
    assert rows(shop.lake, "batches", "batch_id") == [(0,)]
