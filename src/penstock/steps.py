"""The names of the steps that a run goes through: a fault test is called at each of them, and kills the process there."""

from __future__ import annotations

from collections.abc import Callable

Step = Callable[[str], None]
"""Called with the name of each step as it begins."""


def no_step(name: str) -> None:
    """Do nothing: what a run calls outside of tests."""
