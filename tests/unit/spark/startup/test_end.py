"""How the JVM ends."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.spark.startup import end as module
from penstock.spark.startup.end import end


class World:
    """A JVM, and the steps of its end."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        says = self.steps.append
        self.proc = SimpleNamespace(
            kill=lambda: says("kill"),
            wait=lambda timeout=None: says("wait"),
            stdin=SimpleNamespace(close=lambda: says("close")),
        )
        self.gateway: Any = SimpleNamespace(proc=self.proc, shutdown=lambda: says("shutdown"))
        self.context = SimpleNamespace(stop=lambda: says("stop"))
        self.archive: Any = SimpleNamespace(is_due=False, keep=lambda: says("keep"))
        monkeypatch.setattr(module.process, "gateway", lambda: self.gateway)
        monkeypatch.setattr(module.process, "running_context", lambda: self.context)
        monkeypatch.setattr(module.process, "mute_accumulators", lambda _: says("mute"))
        monkeypatch.setattr(module.process, "forget_gateway", lambda: says("forget"))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


KILLED = ["mute", "shutdown", "kill", "wait", "keep"]
IN_ORDER = ["stop", "forget", "shutdown", "close", "wait", "keep"]


@pytest.mark.parametrize(
    ("local", "fast", "is_due", "steps"),
    [
        (True, True, False, KILLED),
        (True, True, True, IN_ORDER),
        (True, False, False, IN_ORDER),
        (False, True, False, IN_ORDER),
    ],
)
def test_a_jvm_is_killed_if_nothing_needs_its_end(
    world: World, local: bool, fast: bool, is_due: bool, steps: list[str]
) -> None:
    world.archive.is_due = is_due
    end(world.archive, local=local, fast=fast)
    assert world.steps == steps


def test_a_jvm_of_others_is_left_alone(world: World) -> None:
    del world.gateway.proc
    end(world.archive, local=True, fast=True)
    assert world.steps == ["stop", "forget", "shutdown", "keep"]


def test_a_jvm_that_has_ended_leaves_its_archive(world: World) -> None:
    world.gateway = None
    end(world.archive, local=True, fast=True)
    assert world.steps == ["keep"]


def test_a_jvm_that_does_not_end_is_killed(world: World) -> None:
    def wait(timeout: float) -> None:
        raise subprocess.TimeoutExpired("java", timeout)

    world.proc.wait = wait
    module.stop()
    assert world.steps == ["stop", "forget", "shutdown", "close", "kill"]
