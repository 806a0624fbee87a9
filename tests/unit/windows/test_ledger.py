"""The ledger of windows: what is in, what is missing, and what is tidied."""

from __future__ import annotations

import json

import pytest

from penstock.delta.table import Table
from penstock.errors import NotFound
from penstock.protocol.journal import Journal
from penstock.windows import Window, ledger
from penstock.windows.ledger import Known, WindowLedger
from penstock.windows.plan import APPEND, WindowPlan
from penstock.windows.window import Ranges
from tests.unit.windows.test_meeting import ADDED, at, fill, go
from tests.unit.windows.world import World


def known(world: World) -> Known:
    journal: Journal[WindowPlan] = Journal(str(world.table))
    return WindowLedger(journal).read(journal.state())


def test_holes_are_missing_windows_of_the_first_run_and_between_windows() -> None:
    plan = WindowPlan(1, 1, (), APPEND, whole=Window.of("2026-04-01", "2026-04-05"))
    state = Known(Ranges.of([Window.of("2026-04-02", "2026-04-03")]), plan)
    assert state.holes([Window.of("2026-04-06", "2026-04-07")]).texts() == [
        ["2026-04-01T00:00:00+00:00", "2026-04-02T00:00:00+00:00"],
        ["2026-04-03T00:00:00+00:00", "2026-04-06T00:00:00+00:00"],
    ]
    assert not Known().holes([]).windows


@pytest.mark.parametrize("config", [{}, ADDED])
def test_the_windows_of_a_run_are_in(world: World, config: dict[str, object]) -> None:
    fill(world, 4)
    go(world, at(4), **config)
    assert known(world).ranges == Ranges.of([Window(at(0), at(4))])
    summary = json.loads((world.table / "_checkpoint" / "watermark.json").read_text())
    assert summary["windows"] == [Window(at(0), at(4)).texts()]


def test_a_committed_plan_whose_file_is_missing_is_an_error(world: World) -> None:
    fill(world, 2)
    go(world, at(2), **ADDED)
    mark = Table.open(str(world.table)).mark
    (world.table / "_checkpoint" / "sources" / str(mark)).unlink()
    with pytest.raises(NotFound, match=f"The ledger lacks plan {mark}.*from a backup, or run with --full-refresh"):
        known(world)


def test_many_records_become_few(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_MOST", 5)
    fill(world, 3)
    go(world, at(12))
    folder = world.table / "_checkpoint" / "windows" / Table.open(str(world.table)).properties["penstock.generation"]
    assert len(list(folder.iterdir())) == 11
    go(world, at(13))
    assert len(list(folder.iterdir())) < 5
    go(world, at(14))
    assert world.said == []


def test_old_plans_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "_MOST", 5)
    fill(world, 12)
    for day in (10, 11, 12):
        go(world, at(day), **ADDED)
        world.check(at(day))
    assert len(list((world.table / "_checkpoint" / "sources").iterdir())) < 10
