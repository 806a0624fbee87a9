"""A progress bar on a terminal. The next line of output covers it."""

from __future__ import annotations

import sys

_WIDTH = 20
_ERASE = "\x1b[2K\r"


class Progress:
    """The progress of one table, in batches."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._shown = False

    def show(self, done: int, of: int) -> None:
        if done < of and sys.stderr.isatty():
            # The cursor goes back to the start of the line, so the next output is not appended to the bar.
            sys.stderr.write(f"{_ERASE}{bar(done, of)} {self._name}\r")
            sys.stderr.flush()
            self._shown = True

    def clear(self) -> None:
        if self._shown:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._shown = False


def bar(done: int, of: int) -> str:
    """
    >>> bar(5, 20)
    '█████░░░░░░░░░░░░░░░ 5 of 20'
    """
    full = _WIDTH * done // of
    return f"{'█' * full}{'░' * (_WIDTH - full)} {done} of {of}"
