"""Processes killed at every step of the protocol, and at random moments: the rows equal the files, each once."""

from __future__ import annotations

import os
import signal
import time

import pytest
from deltalake import DeltaTable

STEPS = ["plan", "planned", "write", "written", "committed", "summary", "compaction", "compacted", "retention"]


def test_killed_at_every_step(world):
    """Each run finds what the killed one before it left, and is killed itself."""
    world.land(4)
    world.finish()
    for step in STEPS:
        world.land(4 if step in ("compaction", "compacted", "retention") else 2)
        world.killed(kill=step)
        world.check_so_far()
    world.finish()
    world.check()


@pytest.mark.parametrize("step", ["planned", "write", "committed"])
def test_first_run_killed(world, step):
    world.land(5)
    world.killed(kill=step)
    world.check_so_far()
    world.finish()
    world.check()


@pytest.mark.parametrize("step", ["planned", "write"])
def test_full_refresh_killed_before_its_first_commit(world, step):
    world.land(5)
    world.finish()
    version = DeltaTable(str(world.table)).version()
    world.killed(kill=step, full_refresh=True)
    assert DeltaTable(str(world.table)).version() == version
    world.check()
    world.land(3)
    world.finish()
    world.check()


def test_full_refresh_killed_after_its_first_commit(world):
    world.land(5)
    world.finish()
    world.killed(kill="committed", full_refresh=True)
    assert sum(world.rows().values()) == 4
    world.finish()
    world.check()


def test_killed_at_random_moments(world, kills, chance):
    """The JVM is another process's, so that what the killed one was writing may still be committed, later."""
    world.land(4)
    world.finish()
    for _ in range(max(4, kills - 17)):
        world.land(3)
        process = world.start(ready=True, full_refresh=chance.random() < 0.1)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(chance.uniform(0, 3))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        world.check_so_far()
    world.finish()
    world.check()


@pytest.mark.parametrize("first", [True, False])
def test_killed_with_its_jvm_while_data_files_are_written(world, chance, first):
    """Python and the JVM die together, as soon as the first data file of the batch is seen."""
    world.land(3)
    if not first:
        world.finish()
        world.land(3)
    before = set(world.table.glob("*.parquet"))
    process = world.start(own_jvm=True)
    while process.poll() is None and set(world.table.glob("*.parquet")) <= before:
        time.sleep(0.001)
    time.sleep(chance.uniform(0, 0.2))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    world.check_so_far()
    world.finish()
    world.check()
