"""Explore a scenario, or play one of its schedules and tell each step.

python -m tests.exploration                                        names of the scenarios
python -m tests.exploration 'refresh and run'                      explore it
python -m tests.exploration 'refresh and run' 'refresh x2, run x11, refresh x9'
"""

from __future__ import annotations

import os
import sys
from typing import Any

from tests.exploration.catalogue import SCENARIOS
from tests.exploration.process import LAKE, ROOT, in_memory
from tests.exploration.scenario import Scenario
from tests.exploration.scheduler import State
from tests.exploration.world import Log, World

_WIDTH = 150


def main(name: str | None = None, schedule: str | None = None) -> int:
    if name is None:
        print(*SCENARIOS, sep="\n")
        return 0
    scenario = SCENARIOS[name]
    with in_memory():
        if schedule is not None:
            return _play(scenario, schedule)
        explored = scenario.explore(int(os.environ.get("PENSTOCK_PREEMPTIONS", "2")))
    print(explored)
    for found in explored.found:
        print(found)
    return 1 if explored.found else 0


def _play(scenario: Scenario, schedule: str) -> int:
    explorer = scenario.explorer()
    state: State | None = None
    problem: str | None = None
    for choice, request, answer, state in explorer.replay(schedule):
        told = (
            ""
            if request is None or answer is None
            else f"{_short(request)} -> {answer.error or ''} {_short(answer.value)}"
        )
        print(f"{choice:16} {told}"[:_WIDTH])
        problem = problem or scenario.step(state)
    if state is not None and not state.active():
        problem = problem or scenario.end(state)
    for location, log in sorted((state.world if state is not None else World()).logs.items()):
        for commit in log.commits:
            files = ", ".join(row[0] for row in commit.rows)
            print(_plain(f"{location} {commit.version}: {commit.operation}, mark {commit.mark}, {files}"))
    print("no promise is broken" if problem is None else _plain(problem))
    return 1 if problem else 0


def _short(value: Any) -> str:
    if isinstance(value, Log):
        return f"version {value.last.version}, mark {value.last.mark}, {len(value.last.rows)} rows"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_short, value)) + ")"
    return _plain(str(value))


def _plain(text: str) -> str:
    return text.replace(f"{LAKE}/bronze/", "").replace(ROOT, "landing").replace("_checkpoint/sources/", "")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
