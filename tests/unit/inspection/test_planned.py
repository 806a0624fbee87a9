from __future__ import annotations

import os
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from penstock.api import Lake, connect
from penstock.changes import ChangeSource
from penstock.changes.plan import ChangePlan
from penstock.errors import PenstockError
from penstock.files import FileSource, Listings
from penstock.inspection.planned import (
    AT_RUN,
    PlannedChanges,
    PlannedFiles,
    PlannedRange,
    PlannedWindows,
    planned_changes,
    planned_files,
    planned_windows,
)
from penstock.protocol.journal import Journal
from penstock.sql.names import Name
from penstock.windows import Window, WindowSettings
from tests.unit.inspection.conftest import History
from tests.unit.windows.world import DAY, FIRST, World


class Killed(BaseException):
    pass


def everything(root: str) -> dict[str, tuple[int, int]]:
    """Every file below a folder, with time and size."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            status = os.stat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (status.st_mtime_ns, status.st_size)
    return found


# Files


def files(shop: History, *, refresh: bool = False, **config: Any) -> PlannedFiles:
    source = FileSource.from_mapping({"source_roots": [str(shop.landing)], "safety_buffer_seconds": 0, **config})
    before = everything(shop.lake.root)
    found = planned_files(shop.lake, shop.name, source, Listings(), refresh=refresh)
    assert everything(shop.lake.root) == before
    return found


def test_the_first_run_of_a_file_model(shop: History) -> None:
    for number in range(5):
        shop.land(at=1_775_000_000 + number)
    (shop.landing / "empty.json").write_text("")
    found = files(shop, max_files_per_trigger=2)
    assert (found.creates, found.files, found.batches, found.skipped, found.young) == (True, 5, 3, 1, 0)
    assert found.bytes == sum(path.stat().st_size for path in shop.landing.iterdir())
    assert found.oldest is not None
    assert found.newest is not None
    assert (found.oldest.timestamp(), found.newest.timestamp()) == (1_775_000_000, 1_775_000_004)
    assert not shop.table.exists()


def test_the_plan_is_what_the_run_does(shop: History) -> None:
    shop.land()
    shop.run()
    for _ in range(3):
        shop.land(at=time.time() - 100)
    shop.land()
    planned = files(shop, safety_buffer_seconds=60, max_files_per_trigger=2)
    report = shop.run(safety_buffer_seconds=60, max_files_per_trigger=2)
    assert (planned.files, planned.batches, planned.young) == (report.files, len(report.batches), report.waiting)
    assert (planned.files, planned.young) == (3, 1)
    again = files(shop, safety_buffer_seconds=60)
    assert (again.files, again.has_work) == (0, False)


def test_a_refresh_plans_all_files(shop: History) -> None:
    shop.land()
    shop.run()
    shop.land()
    assert (files(shop).files, files(shop).creates) == (1, False)
    assert (files(shop, refresh=True).files, files(shop, refresh=True).creates) == (2, True)


def test_an_unfinished_plan_comes_first(shop: History) -> None:
    shop.land()
    shop.run()
    shop.land()

    def step(name: str) -> None:
        if name == "planned":
            raise Killed(name)

    with pytest.raises(Killed):
        shop.run(step=step)
    assert files(shop).unfinished == shop.generation + 1


def test_a_second_life_plans_all_files_again(shop: History) -> None:
    shop.land()
    shop.run()
    shop.land()
    shop.run()
    shop.begin_again()
    found = files(shop)
    assert (found.creates, found.files, found.unfinished) == (True, 2, None)


def test_what_stops_the_run_stops_the_plan(shop: History) -> None:
    path = shop.land()
    shop.run()
    os.utime(path, (1, 1))
    with pytest.raises(PenstockError, match="changed after the ingestion"):
        files(shop)


# Windows


def windows(world: World, wanted: tuple[int, int], **config: Any) -> PlannedWindows:
    settings = WindowSettings.from_config({**world.config, **config})
    asked = tuple(Window(FIRST + wanted[0] * DAY, FIRST + wanted[1] * DAY).steps("day"))
    before = everything(world.lake.root)
    found = planned_windows(world.lake, Name("silver", "events"), settings, asked, None)
    assert everything(world.lake.root) == before
    return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    for day in range(8):
        made.happen(day)
    return made


def test_the_first_windows(world: World) -> None:
    found = windows(world, (0, 4), days_per_batch=3)
    assert (found.creates, len(found.windows), found.jobs, found.holes) == (True, 4, 2, ())
    assert found.windows[0] == "2026-04-01 … 2026-04-02"


def test_windows_that_replace_and_a_hole(world: World) -> None:
    world.run(FIRST + 2 * DAY)
    found = windows(world, (4, 6))
    assert (found.creates, found.windows) == (False, ("2026-04-05 … 2026-04-06", "2026-04-06 … 2026-04-07"))
    assert found.holes == ("2026-04-03 … 2026-04-05",)


def test_windows_below_the_high_watermark_are_skipped(world: World) -> None:
    world.run(FIRST + 4 * DAY)
    found = windows(world, (1, 5), skip_to_high_watermark=True)
    assert (found.skipped, found.windows) == (2, ("2026-04-04 … 2026-04-05", "2026-04-05 … 2026-04-06"))


def test_windows_that_are_added_begin_with_the_missing_ones(world: World) -> None:
    world.run(FIRST + 2 * DAY, delete_before_insert=False)
    found = windows(world, (3, 5), delete_before_insert=False)
    assert found.windows == tuple(
        f"{(FIRST + day * DAY):%Y-%m-%d} … {(FIRST + (day + 1) * DAY):%Y-%m-%d}" for day in (2, 3, 4)
    )
    assert not windows(world, (0, 2), delete_before_insert=False).has_work


def test_a_window_that_is_not_over_waits(world: World) -> None:
    days = (timedelta(days=400_000) // DAY, timedelta(days=400_001) // DAY)
    found = windows(world, days, delete_before_insert=False)
    assert (found.windows, found.waiting) == ((), 1)


# Changes


SELECT = "select id, name from s.a"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = connect(str(tmp_path / "lake"))
    write_deltalake(
        f"{lake.root}/s/a",
        pa.table({"id": pa.array([1], pa.int64()), "name": ["x"]}),
        configuration={"delta.enableChangeDataFeed": "true"},
    )
    return lake


def changes(lake: Lake, select: str = SELECT, **options: Any) -> PlannedChanges:
    source = ChangeSource.from_mapping({"unique_key": "id", **options.pop("config", {})})
    before = everything(lake.root)
    found = planned_changes(lake, Name("t", "copy"), source, select, **options)
    assert everything(lake.root) == before
    return found


def build(lake: Lake, version: int = 0, **fields: Any) -> None:
    """t.copy as a plan of this SQL has built it from a version of s.a; and a plan after it, with these fields."""
    from dataclasses import replace

    from penstock.changes.config import ChangeSource as Source
    from penstock.changes.query import ChangeQuery
    from penstock.changes.source import FollowedSources
    from penstock.protocol.plan import new_ledger

    name = Name("t", "copy")
    query = ChangeQuery.read(lake, SELECT, name)
    sources = FollowedSources(lake, Source.from_mapping({"unique_key": "id"}), query, "t.copy")
    sources.look_up({})
    (whole,) = sources.whole()
    first = replace(whole, end=version, commit=sources._logs[Name("s", "a")].digest(version))
    plan = ChangePlan(
        1, 1, (first,), replace=True, model=query.digest, built=query.digest, key=("id",), ledger=new_ledger()
    )
    write_deltalake(
        f"{lake.root}/t/copy", pa.table({"id": pa.array([], pa.int64()), "name": pa.array([], pa.string())})
    )
    journal: Journal[ChangePlan] = Journal(f"{lake.root}/t/copy")
    assert journal.write_ahead(plan)
    journal.claim(plan, journal.state())
    if fields:
        later = replace(
            plan, number=2, ranges=(replace(first, start=version, before=first.commit),), replace=False, **fields
        )
        assert journal.write_ahead(later)
        journal.commit_empty(2, journal.state())


def append(lake: Lake, rows: int) -> None:
    table = pa.table({"id": pa.array(range(rows), pa.int64()), "name": ["y"] * rows})
    write_deltalake(f"{lake.root}/s/a", table, mode="append")


def test_the_first_build(lake: Lake) -> None:
    found = changes(lake)
    assert (found.creates, found.ranges, found.way) == (True, (PlannedRange("s.a", None, 0, None),), "whole")


def test_version_ranges_with_their_rows(lake: Lake) -> None:
    build(lake)
    assert not changes(lake).has_work
    append(lake, 3)
    append(lake, 4)
    DeltaTable(f"{lake.root}/s/a").delete("id = 1")
    found = changes(lake)
    assert found.ranges == (PlannedRange("s.a", 1, 3, 10),)
    assert (found.way, found.more) == (AT_RUN, False)
    limited = changes(lake, config={"cdf_max_versions": 1})
    assert (limited.ranges, limited.more) == ((PlannedRange("s.a", 1, 1, 3),), True)


@pytest.mark.parametrize(("whole", "way"), [("", "rows"), ("the SQL has a window function", "whole")])
def test_the_way_that_the_last_plan_of_the_same_sql_recorded(lake: Lake, whole: str, way: str) -> None:
    build(lake, rows=True, whole=whole)
    append(lake, 1)
    found = changes(lake)
    assert (found.way, found.why) == (way, whole)


def test_another_sql_is_decided_at_run(lake: Lake) -> None:
    build(lake, rows=True)
    append(lake, 1)
    found = changes(lake, "select id, upper(name) as name from s.a")
    assert found.way == AT_RUN
    assert "has changed since the table was built" in found.warnings[0]


def test_a_gap_is_an_error(lake: Lake) -> None:
    build(lake, rows=True)
    append(lake, 1)
    with pytest.raises(PenstockError, match="unique_key"):
        changes(lake, config={"unique_key": "name"})
