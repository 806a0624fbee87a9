"""Who acts on the table at once, and what must hold whatever the schedule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.errors import NotFound
from penstock.journal import FOLDER, GENERATION, note_of
from tests.exploration.process import ROOT, Actor, Process, location_of, work_of
from tests.exploration.scheduler import Budget, Explored, Explorer, Node, State, Tale
from tests.exploration.world import FOREIGN, File, World

TABLE = "events"
Config = Mapping[str, Any]
Step = Callable[[Config], Actor]
"""An actor, once the config of the model is known."""


# The engine


def run(table: str = TABLE) -> Step:
    """An ordinary run."""
    return lambda config: lambda: _drive(table, config, replace=False)


def refresh(table: str = TABLE) -> Step:
    """A run with --full-refresh."""
    return lambda config: lambda: _drive(table, config, replace=True)


def _drive(table: str, config: Config, *, replace: bool) -> None:
    work = work_of(table, dict(config))
    work.journal.drive(work, replace=replace)
    work.close()


def drop_log_first(config: Config) -> Actor:
    """A drop that removes `_delta_log`, then the rest object by object."""

    def actor() -> None:
        location = location_of(TABLE)
        Process.ask("break log", location)
        Process.ask("remove log", location)
        _delete_all(location)

    return actor


def drop_ledger_first(config: Config) -> Actor:
    """A drop on a store: `_checkpoint` object by object, then the commits, oldest first."""

    def actor() -> None:
        location = location_of(TABLE)
        _delete_all(location)
        Process.ask("break log", location)
        Process.ask("remove log", location)

    return actor


def drop_by_rename(config: Config) -> Actor:
    """A drop on a disk: all of it takes a hidden name at once. What becomes of that name is nobody's business."""

    def actor() -> None:
        Process.ask("rename", location_of(TABLE), f"{location_of('.dropped')}-{Process.current.number}")  # type: ignore[union-attr]

    return actor


def _delete_all(location: str) -> None:
    for key in Process.ask("list", f"{location}/{FOLDER}"):
        Process.ask("delete", key)


def clone(config: Config) -> Actor:
    """A clone of the table into `copy`: one version with its marks and its ledger, which then takes the name at once."""

    def actor() -> None:
        source, hidden = location_of(TABLE), location_of(".copy")
        while True:
            log = Process.ask("open", source)
            try:
                for key in Process.ask("list", f"{source}/{FOLDER}"):
                    Process.ask("put", hidden + key[len(source) :], Process.ask("get", key))
            except NotFound:
                continue  # another run has tidied up meanwhile
            # A compaction of later numbers may be all that is left of those up to the mark.
            if Process.ask("open", source).last.mark == log.last.mark:
                break
        Process.ask("clone", hidden, log, log.last.version, note_of("clone"))
        Process.ask("rename", hidden, location_of("copy"))

    return actor


# Others


def does(*request: Any) -> Step:
    """An actor with one request."""

    def actor() -> None:
        Process.ask(*request)

    return lambda config: actor


def land(name: str, size: int = 10) -> Step:
    """A file appears; a name that is there already changes."""
    return does("land", f"{ROOT}/{name}", size)


def vanish(name: str) -> Step:
    return does("vanish", f"{ROOT}/{name}")


def restore(back: int) -> Step:
    """RESTORE to so many versions before the newest."""
    return does("restore", location_of(TABLE), back)


foreign_replace = does("foreign replace", location_of(TABLE))
foreign_overwrite = does("foreign overwrite", location_of(TABLE))
foreign_append = does("foreign append", location_of(TABLE))


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
    """Where a killed drop has left a log that nobody can read, the user drops again by this before the end."""

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
            assert node.outcome is not None and not node.outcome.error and not node.outcome.broken, node.outcome
        tales = [Tale(name, number, step(self._config)) for number, (name, step) in enumerate(self.actors.items(), 1)]
        return Explorer(tales, world, self.step, self.end)

    def explore(self, preemptions: int, *, stop_after: int = 1, seconds: float | None = None) -> Explored:
        budget = Budget(preemptions, self.kills, self.errors)
        return self.explorer().explore(budget, stop_after=stop_after, seconds=seconds)

    # What must hold

    def step(self, state: State) -> str | None:
        """After each request: no file twice in a version, no mark that falls, no end that is not allowed."""
        if state.world.problems:
            return state.world.problems[0]
        node = None if state.current is None else state.nodes[state.current]
        if node is None or node.outcome is None:
            return None
        name = list(self.actors)[state.current or 0]
        if (problem := self._ended(name, node, self.may_fail)) is not None:
            return problem
        asked = name.startswith("refresh") and node.outcome.error is None
        return self._not_refreshed(name, node, state.world) if asked else None

    @staticmethod
    def _ended(name: str, node: Node, allowed: str | None) -> str | None:
        outcome = node.outcome
        assert outcome is not None
        if outcome.broken is not None:
            return f"{name}: {outcome.broken}"
        if outcome.error is not None and (allowed is None or not re.search(allowed, outcome.error)):
            return f"{name} failed: {outcome.error}"
        return None

    @staticmethod
    def _not_refreshed(name: str, node: Node, world: World) -> str | None:
        """A refresh that returned has made the table anew, or another did after it had begun."""
        log = world.logs.get(location_of(TABLE))
        before = node.outcome.generation if node.outcome else None
        if log is None or before is None:
            return None
        now = int(dict(log.last.properties).get(GENERATION, -1))
        return None if now > before else f"{name} returned, and the generation is {now} as before"

    def end(self, state: State) -> str | None:
        """After two ordinary runs each file is in the table exactly once, or the last of them said why not."""
        world = state.world
        log = world.logs.get(location_of(TABLE))
        if log is not None and log.broken and self._second_drop is not None:
            world, _ = alone(self._second_drop, world)
        for name, tale in self._last.items():
            world, node = alone(tale, world)
            if world.problems:
                return f"{name}: {world.problems[0]}"
            if (problem := self._ended(name, node, self.may_end)) is not None:
                return problem
            if node.outcome is not None and node.outcome.error is not None:
                return None
        for table in self.tables:
            if (problem := _incomplete(table, world)) is not None:
                return problem
        return None


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
