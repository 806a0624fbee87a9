"""The filters that dbt puts around `ref()`: written into a model's SQL, found there, and rendered for other windows.

dbt compiles a model for one window at a time, and gives the text alone. A filter stands in this text as plain SQL, so
the text runs everywhere. A comment before it holds its parts, so that it can be rendered again: for a pack of windows,
for a window that a killed run left, and with the type that its column has by then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from penstock.sql import quoting
from penstock.windows.bounds import condition
from penstock.windows.window import Window

_MARKED = re.compile(r"/\*penstock\.window (?P<parts>\{.*?\})\*/.*?/\*penstock\.window end\*/", re.DOTALL)


@dataclass(frozen=True)
class Filter:
    """A range of a relation's event time."""

    relation: str
    """`schema.identifier`; empty for a query."""
    column: str
    start: datetime | None
    end: datetime | None

    def within(self, window: Window) -> Filter:
        """The same filter for another window."""
        return replace(self, start=window.start, end=window.end)

    def sql(self, type: str | None = None) -> str:
        """The condition. Without a type it holds for a column of any type; `a.b` is then a field of a struct."""
        column = quoting.column(self.column, [] if type is None else [quoting.plain(self.column)])
        return condition(column, type, self.start, self.end)

    def marked(self) -> str:
        """The condition as SQL, with its parts as JSON in a comment that `rendered` reads."""
        parts = {
            "relation": self.relation,
            "column": self.column,
            "start": None if self.start is None else self.start.isoformat(),
            "end": None if self.end is None else self.end.isoformat(),
        }
        # A comment may hold another one: a name must neither end this comment nor begin one.
        text = json.dumps(parts).replace("*", "\\u002a")
        return f"/*penstock.window {text}*/ {self.sql()} /*penstock.window end*/"


def is_filtered(text: str) -> bool:
    """Whether a text has filters of dbt."""
    return _MARKED.search(text) is not None


def rendered(text: str, render: Callable[[Filter], str]) -> str:
    """The text with each of its filters rendered by a function."""
    return _MARKED.sub(lambda found: render(_read(found.group("parts"))), text)


def without_windows(text: str) -> str:
    """The text without the ranges of its filters, to be compared with the text of another window."""
    return rendered(text, lambda found: f"{quoting.quote(found.relation)}.{quoting.quote(found.column)}")


def _read(text: str) -> Filter:
    parts = json.loads(text)
    start, end = (None if parts[key] is None else datetime.fromisoformat(parts[key]) for key in ("start", "end"))
    return Filter(parts["relation"], parts["column"], start, end)
