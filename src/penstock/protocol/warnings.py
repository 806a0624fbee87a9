"""Warnings that a run gives once."""

from __future__ import annotations

import threading
from collections.abc import Callable


def once(warn: Callable[[str], None]) -> Callable[[str], None]:
    """A way to warn that says each text once, from any thread."""
    said: set[str] = set()
    lock = threading.Lock()

    def say(text: str) -> None:
        with lock:
            if text in said:
                return
            said.add(text)
        warn(text)

    return say
