"""All schedules of a few processes with at most so many preemptions, kills and false errors.

A process is a deterministic function of the answers that it got, so its answers so far tell its next request. `Tale`
keeps that as a tree: a node for each sequence of answers, with the request that follows. A schedule is then played on
the world alone, and the engine runs only where a process gets answers that it never got before: from its first step,
with the answers so far, and on to its end as if nobody else were there, which is what the next schedules begin with.

States that were reached before, by processes that had seen the same, with at least the same budget left, are not
explored again. A state is compared by a hash of 64 bits.
"""

from __future__ import annotations

import gc
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import PenstockError
from tests.exploration.process import Actor, Process
from tests.exploration.world import Answer, Request, World

LIMIT = 400
"""The requests after which a process counts as one that never ends."""


class Endless(BaseException):
    """A process has made more requests than any run needs."""


@dataclass(frozen=True)
class Outcome:
    """How a process ended."""

    error: str | None = None
    """The text of a PenstockError."""
    broken: str | None = None
    """Any other exception, which is a bug of the engine."""
    generation: int | None = None
    """The table's generation when the process first read it."""


@dataclass(eq=False)
class Node:
    """A process after a sequence of answers."""

    parent: Node | None = None
    answer: Answer | None = None
    depth: int = 0
    request: Request | None = None
    outcome: Outcome | None = None
    children: dict[Answer, Node] = field(default_factory=dict)

    def answers(self) -> list[Answer]:
        found: list[Answer] = []
        node = self
        while node.parent is not None and node.answer is not None:
            found.append(node.answer)
            node = node.parent
        return found[::-1]

    def after(self, answer: Answer) -> Node:
        found = self.children.get(answer)
        if found is None:
            found = self.children[answer] = Node(self, answer, self.depth + 1)
        return found


class Tale:
    """All that is known of one process: what it asks for after each sequence of answers."""

    runs = 0
    """How often the engine was run."""

    def __init__(self, name: str, number: int, actor: Actor) -> None:
        self.name = name
        self.number = number
        self._actor = actor
        self._root = Node()

    def start(self, world: World) -> Node:
        if self._root.request is None and self._root.outcome is None:
            self._run(self._root, world)
        return self._root

    def go_on(self, node: Node, answer: Answer, world: World) -> Node:
        """The process after one more answer, in the world after it."""
        after = node.after(answer)
        if after.request is None and after.outcome is None:
            self._run(after, world)
        return after

    def _run(self, node: Node, world: World) -> None:
        Tale.runs += 1
        teller = _Teller(self._root, node.answers(), world)
        process = Process.current = Process(teller, self.number)
        try:
            self._actor()
            outcome = Outcome(generation=process.generation)
        except PenstockError as error:
            outcome = Outcome(error=f"{type(error).__name__}: {error}")
        except Endless:
            outcome = Outcome(broken=f"it has not ended after {LIMIT} requests")
        except Exception as error:
            outcome = Outcome(broken=f"{type(error).__name__}: {error}")
        finally:
            Process.current = None
        assert node.depth <= teller.node.depth, "the process did not repeat itself"
        assert teller.node.request is None, "the process did not repeat itself"
        teller.node.outcome = outcome


class _Teller:
    """The door of a process that runs alone: known answers first, then those of a world that only it changes."""

    def __init__(self, root: Node, known: list[Answer], world: World) -> None:
        self.node = root
        self._known = known
        self._world = world

    def ask(self, *request: Any) -> Any:
        if self.node.depth >= LIMIT:
            raise Endless
        if self.node.request is None:
            self.node.request = request
        assert self.node.request == request, (
            f"{request} instead of {self.node.request}: the process did not repeat itself"
        )
        if self.node.depth < len(self._known):
            answer = self._known[self.node.depth]
        else:
            self._world, answer = self._world.do(request)
        self.node = self.node.after(answer)
        return answer.get()


@dataclass(frozen=True)
class Budget:
    """What a schedule may still do."""

    preemptions: int = 2
    kills: int = 1
    errors: int = 0
    """Requests that succeed and are answered by an error."""

    def covers(self, other: Budget) -> bool:
        return self.preemptions >= other.preemptions and self.kills >= other.kills and self.errors >= other.errors

    @property
    def left(self) -> int:
        return self.preemptions + self.kills + self.errors


@dataclass(frozen=True)
class Path:
    """The choices so far, newest first."""

    choice: str
    before: Path | None

    def choices(self) -> list[str]:
        found: list[str] = []
        path: Path | None = self
        while path is not None:
            found.append(path.choice)
            path = path.before
        return found[::-1]


@dataclass(frozen=True)
class State:
    """A world, and where each process is in it: None where it was killed."""

    world: World
    nodes: tuple[Node | None, ...]
    current: int | None
    budget: Budget
    path: Path | None = None

    def active(self) -> list[int]:
        return [index for index, node in enumerate(self.nodes) if node is not None and node.outcome is None]

    def request(self, index: int) -> Request:
        """What a process that has not ended asks for next."""
        node = self.nodes[index]
        assert node is not None, "it was killed"
        assert node.request is not None, "it has ended"
        return node.request

    @property
    def key(self) -> tuple[int, tuple[int, ...], int | None]:
        running = None if self.current is None else self.nodes[self.current]
        current = None if running is None or running.outcome is not None else self.current
        # Of a process that has ended, only that it has makes a difference.
        nodes = tuple(0 if node is None else 1 if node.outcome is not None else id(node) for node in self.nodes)
        return self.world.key, nodes, current


@dataclass(frozen=True)
class Found:
    """A broken promise, and the schedule that breaks it."""

    problem: str
    schedule: str

    def __str__(self) -> str:
        return f"{self.problem}\n  schedule: {self.schedule}"


@dataclass
class Explored:
    """What an exploration did."""

    found: list[Found] = field(default_factory=list)
    states: int = 0
    executions: int = 0
    """Schedules played to their end; those that join an earlier one are not counted."""
    runs: int = 0
    seconds: float = 0.0
    """Of this process: the machine may be busy."""
    complete: bool = True

    def __str__(self) -> str:
        rate = self.executions / self.seconds if self.seconds else 0
        return (
            f"{self.executions:,} executions, {self.states:,} states, {self.runs:,} runs of the engine in "
            f"{self.seconds:.1f} s ({rate:,.0f} executions a second){'' if self.complete else ', cut short'}"
        )


Check = Callable[[State], "str | None"]


class Explorer:
    """Explores the schedules of some processes from one world on.

    `step` looks at each state after a request, `end` at each state in which all processes have ended or were killed;
    both say what is wrong, or None.
    """

    def __init__(self, tales: list[Tale], world: World, step: Check, end: Check) -> None:
        self.tales = tales
        self._world = world
        self._step = step
        self._end = end

    def explore(self, budget: Budget, *, stop_after: int = 1, seconds: float | None = None) -> Explored:
        """Play every schedule within the budget, those that spend least first; stop at the first broken promises."""
        threshold = gc.get_threshold()
        # The states stay: to look for garbage among them again and again takes a tenth of the time.
        gc.set_threshold(20_000, 50, 1_000)
        try:
            return self._explore(budget, stop_after, seconds)
        finally:
            gc.set_threshold(*threshold)

    def _explore(self, budget: Budget, stop_after: int, seconds: float | None) -> Explored:
        began, runs = time.process_time(), Tale.runs
        explored = Explored()
        seen: dict[Any, list[Budget]] = {}
        ended: set[Any] = set()
        waiting: dict[int, list[State]] = defaultdict(list)
        nodes = tuple(tale.start(self._world) for tale in self.tales)
        waiting[budget.left].append(State(self._world, nodes, None, budget))
        for left in range(budget.left, -1, -1):
            stack = waiting[left]
            while stack:
                if seconds is not None and explored.states % 256 == 0 and time.process_time() - began > seconds:
                    explored.complete = False
                    stack.clear()
                    break
                state = stack.pop()
                before = seen.setdefault(state.key, [])
                if any(known.covers(state.budget) for known in before):
                    continue
                before.append(state.budget)
                explored.states += 1
                problem = self._step(state)
                if problem is None and not state.active():
                    explored.executions += 1
                    if state.key not in ended:
                        ended.add(state.key)
                        problem = self._end(state)
                if problem is not None:
                    explored.found.append(Found(problem, text_of(state.path)))
                    if len(explored.found) >= stop_after:
                        explored.complete = False
                        waiting.clear()
                        break
                    continue
                # The last one is popped first: the process that runs goes on.
                for after in self.moves(state):
                    (stack if after.budget.left == left else waiting[after.budget.left]).append(after)
            if not explored.complete and not waiting:
                break
        explored.seconds = time.process_time() - began
        explored.runs = Tale.runs - runs
        return explored

    def moves(self, state: State) -> Iterator[State]:
        """Every state that may come next; the cheapest last."""
        active = state.active()
        budget = state.budget
        going_on = state.current in active
        if budget.kills and state.current is not None and going_on:
            # To kill a process while another runs is the same as to kill it when it was preempted.
            yield self._killed(state, state.current)
        for index in sorted(active, key=lambda index: index == state.current):
            costs = going_on and index != state.current
            if costs and not budget.preemptions:
                continue
            left = Budget(budget.preemptions - costs, budget.kills, budget.errors)
            if left.errors:
                yield from self._wrongly_answered(state, index, left)
            yield self._gone_on(state, index, left)

    def _killed(self, state: State, index: int) -> State:
        nodes = tuple(None if other == index else node for other, node in enumerate(state.nodes))
        left = Budget(state.budget.preemptions, state.budget.kills - 1, state.budget.errors)
        return State(state.world, nodes, None, left, Path(f"kill {self.tales[index].name}", state.path))

    def _gone_on(self, state: State, index: int, left: Budget) -> State:
        world, answer = state.world.do(state.request(index))
        return self._answered(state, index, world, answer, left, self.tales[index].name)

    def _wrongly_answered(self, state: State, index: int, budget: Budget) -> Iterator[State]:
        left = Budget(budget.preemptions, budget.kills, budget.errors - 1)
        for kind, (world, answer) in enumerate(state.world.do_with_error(state.request(index)), 1):
            yield self._answered(state, index, world, answer, left, f"{self.tales[index].name} error {kind}")

    def _answered(self, state: State, index: int, world: World, answer: Answer, left: Budget, choice: str) -> State:
        tale, node = self.tales[index], state.nodes[index]
        assert node is not None
        node = tale.go_on(node, answer, world)
        while node.request is not None and node.request[0] == "time":
            _, answer = world.do(node.request)
            node = tale.go_on(node, answer, world)
        nodes = tuple(node if other == index else old for other, old in enumerate(state.nodes))
        return State(world, nodes, index, left, Path(choice, state.path))

    def replay(self, schedule: str) -> Iterator[tuple[str, Request | None, Answer | None, State]]:
        """Play one schedule: each choice, with the request and its answer, and the state after it."""
        state = State(self._world, tuple(tale.start(self._world) for tale in self.tales), None, Budget(99, 99, 99))
        names = [tale.name for tale in self.tales]
        for choice in choices_of(schedule):
            if choice.startswith("kill "):
                state = self._killed(state, names.index(choice[5:]))
                yield choice, None, None, state
                continue
            name, _, kind = choice.partition(" error ")
            index = names.index(name)
            request = state.request(index)
            ways = list(state.world.do_with_error(request)) if kind else []
            world, answer = ways[int(kind) - 1] if kind else state.world.do(request)
            state = self._answered(state, index, world, answer, state.budget, choice)
            yield choice, request, answer, state


def text_of(path: Path | None) -> str:
    """A schedule for people and for `replay`: `run 12, kill run, other 30`."""
    parts: list[tuple[str, int]] = []
    for choice in [] if path is None else path.choices():
        if parts and parts[-1][0] == choice and not choice.startswith("kill "):
            parts[-1] = (choice, parts[-1][1] + 1)
        else:
            parts.append((choice, 1))
    return ", ".join(choice if choice.startswith("kill ") else f"{choice} x{times}" for choice, times in parts)


def choices_of(schedule: str) -> list[str]:
    """
    >>> choices_of("run x2, kill run, other error 1 x1")
    ['run', 'run', 'kill run', 'other error 1']
    """
    found: list[str] = []
    for part in schedule.split(", "):
        times = re.fullmatch(r"(.+) x(\d+)", part)
        found += [part] if times is None else [times.group(1)] * int(times.group(2))
    return found
