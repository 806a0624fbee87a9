"""The first statement that writes runs alone: four at once would each run all of Spark's code for the first time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class FirstStatement:
    """Has other threads wait for the first one that enters, for some seconds at most; later ones wait for nobody."""

    def __init__(self, seconds: float = 5) -> None:
        self._seconds = seconds
        self._first, self._done = threading.Lock(), threading.Event()

    @contextmanager
    def alone(self) -> Iterator[None]:
        if self._first.acquire(blocking=False):
            try:
                yield
            finally:
                self._done.set()
        else:
            if not self._done.wait(self._seconds):
                self._done.set()
            yield
