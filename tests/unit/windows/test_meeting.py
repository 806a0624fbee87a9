"""Windows as dbt brings them, with delta-rs in Spark's place: packed, added, skipped, killed, and still the same table."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from penstock.windows import Window
from tests.unit.windows.world import DAY, FIRST, Killed, World

ADDED = {"delete_before_insert": False}
MODES = [{}, ADDED]


def at(day: int, hour: int = 0) -> datetime:
    return FIRST + day * DAY + timedelta(hours=hour)


def fill(world: World, days: int) -> None:
    for day in range(days):
        world.happen(day, 2)


def go(world: World, now: datetime, **orders):
    world.clock = now
    return world.run(now, **orders)


def test_a_backlog_of_30_days_is_2_jobs(world: World) -> None:
    fill(world, 30)
    results = go(world, at(30), days_per_batch=15)
    assert [str(job) for job in world.jobs] == ["2026-04-01 … 2026-04-16", "2026-04-16 … 2026-05-01"]
    assert len(results) == 30
    assert results[Window(at(0), at(1))].message.endswith("of 2026-04-01 … 2026-04-16")
    assert results[Window(at(1), at(2))].message == "OK with 2026-04-01 … 2026-04-16"
    world.check(at(30))


@pytest.mark.parametrize("config", MODES)
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("size", [1, 3])
def test_packed_and_side_by_side_it_is_the_same_table(world: World, config, threads, size) -> None:
    fill(world, 10)
    go(world, at(10), threads=threads, days_per_batch=size, **config)
    world.check(at(10))
    go(world, at(10), threads=threads, days_per_batch=size, **config)
    world.check(at(10))


def test_late_rows_come_in_by_lookback(world: World) -> None:
    fill(world, 5)
    go(world, at(4, 12))
    world.happen(3)
    go(world, at(4, 13))
    world.check(at(5))


def test_a_failed_window_fails_its_pack_alone(world: World) -> None:
    fill(world, 6)
    world.broken = {at(2)}
    results = go(world, at(6), days_per_batch=2)
    failed = [window for window, outcome in results.items() if isinstance(outcome, Exception)]
    assert sorted(failed) == [Window(at(2), at(3)), Window(at(3), at(4))]
    assert "its pack 2026-04-03 … 2026-04-05 failed: broken" in str(results[Window(at(3), at(4))])
    world.broken = set()
    go(world, at(6), windows=tuple(sorted(failed)), days_per_batch=2)
    assert str(world.jobs[-1]) == "2026-04-03 … 2026-04-05"
    world.check(at(6))


def test_a_model_of_which_each_window_differs_is_not_shared(world: World) -> None:
    fill(world, 4)
    results = go(world, at(4), days_per_batch=4, text=lambda window: f"{window.start.day} ")
    assert [str(job) for job in world.jobs][1:] == [str(window) for window in list(results)[1:]]
    world.check(at(4))


def test_a_model_that_reads_its_batch_is_not_packed_and_told_so(world: World) -> None:
    fill(world, 3)
    go(world, at(3), days_per_batch=3, packed=False)
    assert len(world.jobs) == 3
    assert "not packed" in world.said[0]


class TestAdded:
    def test_the_open_window_waits_and_comes_the_next_day(self, world: World) -> None:
        fill(world, 4)
        results = go(world, at(3, 12), **ADDED)
        assert results[Window(at(3), at(4))].message == "OK waits until 2026-04-05, when it is over"
        world.check(at(3))
        go(world, at(4, 1), **ADDED)
        world.check(at(4))

    def test_a_failed_window_is_not_passed_over(self, world: World) -> None:
        fill(world, 8)
        world.broken = {at(2)}
        go(world, at(5), **ADDED)
        world.check(at(2))
        results = go(world, at(8), **ADDED)
        assert all("broken 2026-04-03" in str(outcome) for outcome in results.values())
        world.broken = set()
        go(world, at(8), **ADDED)
        world.check(at(8))

    def test_days_without_a_run_are_made_up(self, world: World) -> None:
        fill(world, 12)
        go(world, at(3), **ADDED)
        go(world, at(12), days_per_batch=5, **ADDED)
        world.check(at(12))
        assert [str(job) for job in world.jobs[3:]] == ["2026-04-04 … 2026-04-09", "2026-04-09 … 2026-04-13"]

    def test_a_named_window_that_is_in_is_refused(self, world: World) -> None:
        fill(world, 5)
        go(world, at(5), **ADDED)
        results = go(world, at(5), named=(2, 3), **ADDED)
        said = str(results[Window(at(2), at(3))])
        assert "is in already" in said
        assert "`delete_before_insert: true` for one run with --event-time-start 2026-04-03" in said
        world.check(at(5))
        world.happen(2)
        go(world, at(5), named=(2, 3))
        world.check(at(5))

    def test_nothing_new_runs_no_job(self, world: World) -> None:
        fill(world, 3)
        go(world, at(3), **ADDED)
        jobs = len(world.jobs)
        results = go(world, at(3, 5), **ADDED)
        assert {outcome.message for outcome in results.values()} == {
            "OK nothing new",
            "OK waits until 2026-04-05, when it is over",
        }
        assert len(world.jobs) == jobs

    def test_the_way_of_a_table_is_changed_by_a_full_refresh_alone(self, world: World) -> None:
        fill(world, 3)
        go(world, at(3))
        results = go(world, at(3), **ADDED)
        assert "--full-refresh" in str(results[Window(at(1), at(2))])
        go(world, at(3), full_refresh=True, **ADDED)
        world.check(at(3))
        fill(world, 1)
        results = go(world, at(5))
        assert "--full-refresh" in str(results[Window(at(3), at(4))])


class TestSkipped:
    def test_windows_below_the_high_watermark_are_left_out(self, world: World) -> None:
        fill(world, 5)
        go(world, at(5))
        world.happen(3)
        jobs = len(world.jobs)
        results = go(world, at(5, 1), skip_to_high_watermark=True, windows=tuple(Window(at(2), at(6)).steps("day")))
        assert [outcome.message for outcome in results.values()][:2] == [
            "OK skipped: it ends at or before the high watermark"
        ] * 2
        assert world.jobs[jobs:] == [Window(at(4), at(5)), Window(at(5), at(6))]

    def test_never_in_a_backfill_or_a_full_refresh(self, world: World) -> None:
        fill(world, 5)
        go(world, at(5))
        world.happen(1)
        go(world, at(5), skip_to_high_watermark=True, named=(1, 2))
        world.check(at(5))
        world.happen(0)
        go(world, at(5), skip_to_high_watermark=True, full_refresh=True)
        world.check(at(5))


class TestHoles:
    def test_a_killed_full_refresh_leaves_holes_that_are_reported_and_filled(self, world: World) -> None:
        fill(world, 10)
        go(world, at(10))
        with pytest.raises(Killed):
            go(world, at(10), full_refresh=True, kill=("write", 4))
        go(world, at(10))
        assert len(world.said) == 1
        assert "--event-time-start 2026-04-04 --event-time-end 2026-04-09" in world.said[0]
        go(world, at(10), named=(3, 8))
        assert world.said == []
        world.check(at(10))
        go(world, at(10))
        assert world.said == []

    def test_days_without_a_run_are_holes(self, world: World) -> None:
        fill(world, 10)
        go(world, at(3))
        go(world, at(10))
        assert "2026-04-04 … 2026-04-09" in world.said[0]

    def test_a_first_run_in_which_nothing_fails_has_none(self, world: World) -> None:
        world.by_files = True
        for day in (2, 3, 6):
            world.happen(day)
        results = go(world, at(8))
        assert results[Window(at(0), at(1))].message == "OK no files"
        go(world, at(8))
        assert world.said == []
        world.check(at(8))


@pytest.mark.parametrize("config", MODES)
def test_a_window_that_is_being_written_is_left_alone(world: World, config) -> None:
    world.by_files = True
    fill(world, 5)
    go(world, at(4), **config)
    world.unsettled = {at(3), at(4)}
    go(world, at(5), **config)
    world.check(at(4))
    world.unsettled = set()
    go(world, at(5), **config)
    world.check(at(5))


def test_empty_makes_the_table_and_leaves_it_alone(world: World) -> None:
    fill(world, 3)
    go(world, at(3))
    results = go(world, at(3), empty=True)
    assert {outcome.message for outcome in results.values()} == {"OK left as it is"}
    world.check(at(3))


@pytest.mark.parametrize("config", MODES)
def test_what_empty_has_made_counts_for_nothing(world: World, config) -> None:
    fill(world, 6)
    go(world, at(6), empty=True, **config)
    assert world.made
    assert not world.held()
    go(world, at(6), **config)
    if not config:
        assert "--event-time-start 2026-04-01 --event-time-end 2026-04-05" in world.said[0]
        go(world, at(6), named=(0, 4))
    world.check(at(6))


@pytest.mark.parametrize("config", MODES)
@pytest.mark.parametrize("seed", range(4))
def test_killed_anywhere_it_ends_as_one_clean_run(world: World, config, seed) -> None:
    """Runs, refreshes and kills in any order; then a run, and the backfills that it names."""
    chance = random.Random(seed)
    day = 3
    for _ in range(9):
        # A window that was added is over: only what replaces sees rows that are late.
        for happened in (day, day + 1) if config else (day - 1, day):
            world.happen(happened)
        step = chance.choice(["planned", "write", "committed", "recorded", "plan"])
        kill = (step, chance.randint(1, 4)) if chance.random() < 0.6 else None
        orders = {"days_per_batch": chance.choice([1, 1, 3]), "full_refresh": chance.random() < 0.15, **config}
        try:
            go(world, at(day), kill=kill, **orders)
        except Killed:
            pass
        counts = world.held()
        assert all(times == 1 for times in counts.values())
        day += chance.choice([0, 1, 1, 2])
    go(world, at(day), **config)
    for said in list(world.said):
        start, end = said.split("--event-time-start ")[1].rstrip("`").split(" --event-time-end ")
        days = [(datetime.fromisoformat(f"{text}T00:00:00+00:00") - FIRST).days for text in (start, end)]
        go(world, at(day), named=(days[0], days[1]), **config)
    if not config:
        # Rows that were later than `lookback` reaches are brought in by name.
        go(world, at(day), named=(0, day))
    world.check(at(day))
