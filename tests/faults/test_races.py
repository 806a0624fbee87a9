"""Several processes at once, an old one that wakes up late, and state that was damaged."""

from __future__ import annotations

import os
import signal
import time

import pytest
from deltalake import DeltaTable

from penstock import PenstockError


def finished(processes):
    for process in processes:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err


@pytest.mark.parametrize("many", [2, 4])
def test_many_processes_make_the_table_at_once(world, many):
    world.land(12)
    at = time.time() + 6
    finished([world.start(ready=True, at=at) for _ in range(many)])
    world.check()


def test_two_processes_with_jvms_of_their_own(world):
    world.land(4)
    world.finish()
    world.land(8)
    at = time.time() + 20
    finished([world.start(own_jvm=True, ready=True, at=at) for _ in range(2)])
    world.check()


def test_a_full_refresh_races_ordinary_runs(world):
    world.land(6)
    world.finish()
    world.land(6)
    at = time.time() + 6
    finished([world.start(ready=True, at=at, full_refresh=refresh) for refresh in (True, False, False)])
    world.finish()
    world.check()


@pytest.mark.parametrize("step", ["plan", "planned", "write"])
def test_an_old_run_wakes_after_a_full_refresh(world, step):
    world.land(4)
    world.finish()
    world.land(5)
    old = world.start(stop=step)
    while state_of(old.pid) != "T":
        assert old.poll() is None, old.communicate()[1]
        time.sleep(0.02)
    world.finish(full_refresh=True)
    world.check()
    os.kill(old.pid, signal.SIGCONT)
    finished([old])
    world.check()


def test_an_old_run_stopped_with_its_jvm_in_the_middle_of_a_write(world):
    world.land(4)
    world.finish()
    world.land(2)
    before = set(world.table.glob("*.parquet"))
    old = world.start(own_jvm=True)
    while old.poll() is None and set(world.table.glob("*.parquet")) <= before:
        time.sleep(0.001)
    os.killpg(old.pid, signal.SIGSTOP)
    world.finish(full_refresh=True)
    os.killpg(old.pid, signal.SIGCONT)
    finished([old])
    world.check()


def test_a_garbage_plan_is_an_error_with_a_way_out(world):
    world.land(2)
    world.finish()
    world.land(2)
    world.killed(kill="planned")
    number = int(DeltaTable(str(world.table)).metadata().configuration["penstock.generation"]) + 1
    plan = world.table / "_checkpoint" / "sources" / str(number)
    plan.write_bytes(plan.read_bytes()[:-30])
    with pytest.raises(PenstockError, match=rf"(?s)can't be read.*sources/{number}.*Move the plan's file away"):
        world.finish()
    plan.unlink()
    world.finish()
    world.check()


def state_of(pid: int) -> str:
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0]
