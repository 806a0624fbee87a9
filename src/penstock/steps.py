"""The steps of a run, by name. A fault test passes a function that kills the process at one of them."""

from __future__ import annotations

from collections.abc import Callable

Step = Callable[[str], None]
"""A function that is called with the name of each step when the step begins."""


def no_step(name: str) -> None:
    """Do nothing. Every run outside of tests uses this function."""
