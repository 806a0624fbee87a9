"""Actors on one table at once, and what must hold whatever the schedule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.protocol.state import GENERATION
from tests.exploration.actors import TABLE, Config, Step, run
from tests.exploration.process import location_of
from tests.exploration.scheduler import Budget, Explored, Explorer, Node, State, Tale
from tests.exploration.world import FOREIGN, File, World


@dataclass(frozen=True)
class Scenario:
    """A table as `before` leaves it, actors at once, and two ordinary runs one after the other at the end."""

    name: str
    before: tuple[Step, ...]
    actors: Mapping[str, Step]
    errors: int = 0
    """Requests that succeed and are answered by an error, in one schedule."""
    kills: int = 1
    config: Config = field(default_factory=dict)
    may_fail: str | None = None
    """The errors, as a regular expression, that an actor may end with; none where it is None."""
    may_end: str | None = None
    """The same for the runs at the end; where they end so, the table is left to the user."""
    tables: tuple[str, ...] = (TABLE,)
    """Those that the runs at the end bring up to date."""
    drop: Step | None = None
    """Where the actor `drop` was killed and has left a log, the user drops again by this before the end."""

    # What is explored

    @cached_property
    def _config(self) -> dict[str, Any]:
        return {"max_files_per_trigger": 1, **self.config}

    @cached_property
    def _last(self) -> dict[str, Tale]:
        steps = [(f"end of {table} {time}", run(table)) for table in self.tables for time in (1, 2)]
        return {name: Tale(name, 100 + number, step(self._config)) for number, (name, step) in enumerate(steps)}

    @cached_property
    def _second_drop(self) -> Tale | None:
        return None if self.drop is None else Tale("second drop", 150, self.drop(self._config))

    def explorer(self) -> Explorer:
        world = World()
        for number, step in enumerate(self.before):
            world, node = alone(Tale("before", 200 + number, step(self._config)), world)
            assert _ended("before", node, None) is None, node.outcome
        tales = [Tale(name, number, step(self._config)) for number, (name, step) in enumerate(self.actors.items(), 1)]
        return Explorer(tales, world, self.step, self.end)

    def explore(self, preemptions: int, *, stop_after: int = 1, seconds: float | None = None) -> Explored:
        budget = Budget(preemptions, self.kills, self.errors)
        try:
            return self.explorer().explore(budget, stop_after=stop_after, seconds=seconds)
        finally:
            self.__dict__.pop("_last", None)  # hundreds of MB where the exploration was deep

    # What must hold

    def step(self, state: State) -> str | None:
        """After each request: no file twice in a version, no mark that falls, no end that is not allowed."""
        if state.world.problems:
            return state.world.problems[0]
        node = None if state.current is None else state.nodes[state.current]
        if node is None or node.outcome is None:
            return None
        name = list(self.actors)[state.current or 0]
        if (problem := _ended(name, node, self.may_fail)) is not None:
            return problem
        asked = name.startswith("refresh") and node.outcome.error is None
        return _not_refreshed(name, node, state.world) if asked else None

    def end(self, state: State) -> str | None:
        """After two ordinary runs each file is in the table exactly once, or the last of them said why not."""
        world = state.world
        killed = [name for name, node in zip(self.actors, state.nodes, strict=True) if node is None]
        if "drop" in killed and self._second_drop is not None and location_of(TABLE) in world.logs:
            world, _ = alone(self._second_drop, world)
        for name, tale in self._last.items():
            world, node = alone(tale, world)
            if world.problems:
                return f"{name}: {world.problems[0]}"
            if (problem := _ended(name, node, self.may_end)) is not None:
                return problem
            if node.outcome is not None and node.outcome.error is not None:
                return None
        for table in self.tables:
            if (problem := _incomplete(table, world)) is not None:
                return problem
        return None


def _ended(name: str, node: Node, allowed: str | None) -> str | None:
    outcome = node.outcome
    assert outcome is not None
    if outcome.broken is not None:
        return f"{name}: {outcome.broken}"
    if outcome.error is not None and (allowed is None or not re.search(allowed, outcome.error)):
        return f"{name} failed: {outcome.error}"
    return None


def _not_refreshed(name: str, node: Node, world: World) -> str | None:
    """A refresh that returned has made the table anew, or another did after it had begun."""
    log = world.logs.get(location_of(TABLE))
    before = node.outcome.generation if node.outcome else None
    if log is None or before is None:
        return None
    now = max(int(dict(commit.properties).get(GENERATION, -1)) for commit in log.commits)
    return None if now > before else f"{name} returned, and the generation is {before} as before"


def _incomplete(table: str, world: World) -> str | None:
    log = world.logs.get(location_of(table))
    rows: Counter[File] = Counter(() if log is None else (row for row in log.last.rows if row != FOREIGN))
    for path, file in sorted(world.landing.items()):
        if rows[(path, *file)] != 1:
            return f"{table} has {path} {rows[(path, *file)]} times, and its runs were silent"
    return None


def alone(tale: Tale, world: World) -> tuple[World, Node]:
    """A process from its start to its end, with nobody else there."""
    node = tale.start(world)
    while node.outcome is None:
        assert node.request is not None
        world, answer = world.do(node.request)
        node = tale.go_on(node, answer, world)
    return world, node
