"""No schedule of a few processes on one table breaks a promise; PENSTOCK_PREEMPTIONS says how deep to look."""

from __future__ import annotations

import os
from collections.abc import Iterator
from unittest.mock import patch

import pytest

from penstock.protocol.journal import Journal
from tests.exploration.actors import land, refresh, run
from tests.exploration.catalogue import SCENARIOS
from tests.exploration.process import MemoryStorage, Process, in_memory, location_of
from tests.exploration.scenario import Scenario
from tests.exploration.scheduler import Found, choices_of
from tests.exploration.world import World

PREEMPTIONS = int(os.environ.get("PENSTOCK_PREEMPTIONS", "2"))
SECONDS = float(os.environ.get("PENSTOCK_EXPLORATION_SECONDS", "600"))
"""For one scenario. A deep exploration that takes longer is cut short, the schedules with most preemptions last."""


@pytest.fixture(autouse=True)
def memory() -> Iterator[None]:
    with in_memory():
        yield


def found_in(scenario: Scenario, preemptions: int) -> list[Found]:
    return scenario.explore(preemptions, seconds=SECONDS).found


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_schedule_breaks_a_promise(name: str) -> None:
    explored = SCENARIOS[name].explore(PREEMPTIONS, seconds=SECONDS)
    print(f"{name}: {explored}")
    commands = [f"python -m tests.exploration '{name}' '{found.schedule}'" for found in explored.found]
    assert not explored.found, "\n".join(map(str, [*explored.found, *commands]))
    assert explored.complete or PREEMPTIONS > 2


# The exploration itself: what it must be able to find


def test_it_finds_a_plan_that_overwrites_another() -> None:
    def write_new(self: MemoryStorage, path: str, data: bytes) -> bool:
        Process.ask("put", f"{self.root}/{path}", data)
        return True

    runs = Scenario(
        "runs",
        (land("a"), run(), land("b")),
        {"run": run(), "file": land("c"), "other": run()},
        config={"max_files_per_trigger": 2},
    )
    assert not found_in(runs, 2)
    with patch.object(MemoryStorage, "write_new", write_new):
        assert found_in(runs, 2)


def test_it_finds_a_refresh_under_a_number_that_is_used() -> None:
    alone = Scenario("refresh", (land("a"), run()), {"refresh": refresh()})
    assert not found_in(alone, 0)
    with patch.object(Journal, "first_free", lambda self, state: state.mark or 0):
        assert found_in(alone, 0)


def test_it_finds_a_kill_between_two_requests() -> None:
    """A ledger that is tidied up before its compaction is written."""

    def write_new(self: MemoryStorage, path: str, data: bytes) -> bool:
        if path.endswith(".parquet"):
            for key in Process.ask("list", f"{self.root}/{path.rpartition('/')[0]}"):
                Process.ask("delete", key)
        return bool(Process.ask("create", f"{self.root}/{path}", data))

    config = {"source_compaction_interval": 2, "source_retention_files": 2}
    one = Scenario("one", (land("a"), land("b")), {"run": run()}, config=config)
    assert not found_in(one, 0)
    with patch.object(MemoryStorage, "write_new", write_new):
        (found,) = found_in(one, 0)
    assert "kill run" in found.schedule


def test_it_finds_a_run_without_end() -> None:
    def endless(config: object) -> object:
        def actor() -> None:
            while True:
                Process.ask("time")
                Process.ask("list", location_of("events"))

        return actor

    (found,) = found_in(Scenario("endless", (), {"run": endless}), 0)  # type: ignore[dict-item]
    assert "not ended" in found.problem


def test_a_schedule_is_played_again_as_it_was() -> None:
    scenario = SCENARIOS["runs"]
    schedule = "run x9, other x3, kill run, other x5"
    played = [list(scenario.explorer().replay(schedule)) for _ in range(2)]
    assert [step[:3] for step in played[0]] == [step[:3] for step in played[1]]
    assert [step[3].world.key for step in played[0]] == [step[3].world.key for step in played[1]]
    assert [step[0] for step in played[0]] == choices_of(schedule)


def test_the_world_is_a_value() -> None:
    empty = World()
    first, created = empty.do(("create", "key", b"1"))
    second, refused = first.do(("create", "key", b"2"))
    assert created.get() is True
    assert refused.get() is False
    assert second is first
    assert empty.objects == {}
    assert first.objects == {"key": b"1"}
    assert first.key != empty.key


def test_an_append_yields_to_a_commit_with_the_mark_and_not_to_an_overwrite() -> None:
    made, _ = World().do(("replace", "t", None, -1, 1, "note", (), (("/a", 1, 1),)))
    life, version, _, mark = made.do(("begin", "t"))[1].get()
    assert (version, mark) == (0, 1)
    append = ("append", "t", life, version, 2, "note", (("/b", 1, 1),))
    overwritten, _ = made.do(("foreign overwrite", "t"))
    assert overwritten.do(append)[1].error is None
    assert overwritten.do(("mark", "t", life, version, 2, False, None))[1].error == "commit failed"
    appended, answer = made.do(append)
    assert answer.error is None
    assert appended.do(append)[1].error == "conflict"
    restored, _ = appended.do(("restore", "t", 1))
    assert [row[0] for row in restored.logs["t"].last.rows] == ["/a"]
    assert restored.logs["t"].last.mark == 2
    assert restored.do(("append", "t", life, 1, 3, "note", ()))[1].error == "metadata"
