"""Windows of one life of one table: what an earlier life has left, and what others make meanwhile."""

from __future__ import annotations

import shutil

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.windows.job import WindowJob
from tests.unit.windows.test_meeting import ADDED, MODES, at, fill, go
from tests.unit.windows.world import Killed, World


@pytest.mark.parametrize("config", MODES)
def test_plans_and_records_of_an_earlier_life_count_for_nothing(world: World, config) -> None:
    fill(world, 6)
    go(world, at(6), **config)
    shutil.rmtree(world.table / "_delta_log")
    go(world, at(6), **config)
    world.check(at(6))
    go(world, at(6), **config)
    world.check(at(6))


def test_an_unfinished_plan_of_an_earlier_life_is_not_run(world: World) -> None:
    fill(world, 3)
    go(world, at(3), **ADDED)
    fill(world, 2)
    world.happen(3, 2)
    with pytest.raises(Killed):
        go(world, at(4), kill=("planned", 1), **ADDED)
    shutil.rmtree(world.table / "_delta_log")
    go(world, at(4), **ADDED)
    world.check(at(4))


@pytest.mark.parametrize("config", MODES)
def test_a_table_that_another_run_makes_first(world: World, config, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look whether there is a table and the making of it."""
    fill(world, 4)
    drive, done = WindowJob._drive, []

    def after_another(work: WindowJob, *, replace: bool) -> None:
        if not done:
            done.append(True)
            go(world, at(4), **config)
        drive(work, replace=replace)

    monkeypatch.setattr(WindowJob, "_drive", after_another)
    go(world, at(4), **config)
    world.check(at(4))


@pytest.mark.parametrize("config", MODES)
def test_an_empty_table_of_others_becomes_ours(world: World, config) -> None:
    fill(world, 3)
    DeltaTable.create(str(world.table), schema=pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))]))
    go(world, at(3), windows=world.windows(at(3), full=True), **config)
    world.check(at(3))
    assert Table.open(str(world.table)).properties["penstock.ledger"]
    world.happen(3, 2)
    go(world, at(4), **config)
    world.check(at(4))


@pytest.mark.parametrize("config", MODES)
def test_a_restore_below_our_windows_is_an_error(world: World, config) -> None:
    fill(world, 3)
    go(world, at(3), **config)
    table = DeltaTable(str(world.table))
    table.restore(table.version() - 1)
    with pytest.raises(PenstockError, match="restored"):
        go(world, at(4), **config)
    go(world, at(4), full_refresh=True, **config)
    world.check(at(4))


def test_records_of_earlier_generations_go(world: World) -> None:
    fill(world, 4)
    go(world, at(4))
    go(world, at(4), full_refresh=True)
    go(world, at(4))
    folders = [folder.name for folder in (world.table / "_checkpoint" / "windows").iterdir() if any(folder.iterdir())]
    assert folders == [Table.open(str(world.table)).properties["penstock.generation"]]
    world.check(at(4))
