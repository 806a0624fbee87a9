"""The plan of one commit: which windows it adds, and all windows that came in before it."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import Any

from penstock.protocol.plan import Parsing, check_header, header_of
from penstock.windows.window import NONE, Ranges, Window

APPEND, REPLACE = "append", "replace"
KIND = "windows"


@dataclass(frozen=True)
class WindowPlan:
    """Windows that come in by one commit. Each plan holds all windows before it, so the last plan is the ledger."""

    number: int
    generation: int
    windows: tuple[Window, ...]
    mode: str
    """APPEND or REPLACE: how windows come into this table."""
    replace: bool = False
    """Whether the plan creates the table, or replaces it."""
    before: Ranges = NONE
    """The windows that came in before it, in this generation."""
    whole: Window | None = None
    """The range that the run which created the table was asked for. Windows of it that are missing later are holes."""
    schema: dict[str, Any] | None = None
    """The format and columns that the files of `@data` are read with; None for a model over tables."""
    ledger: str | None = None
    """The table's life that the plan belongs to, or begins."""
    time: int = field(default_factory=lambda: int(time.time() * 1000))

    @property
    def ranges(self) -> Ranges:
        """All windows that are in the table once this plan is committed."""
        return self.before.with_(self.windows)

    def to_bytes(self) -> bytes:
        header = header_of(self, KIND, self.generation, self.time) | {
            "mode": self.mode,
            "windows": [window.texts() for window in self.windows],
            "before": self.before.texts(),
            "whole": None if self.whole is None else self.whole.texts(),
            "shape": self.schema,
        }
        return json.dumps(header).encode() + b"\n"

    @classmethod
    def from_bytes(cls, number: int, data: bytes, where: str, *, committed: bool = False) -> WindowPlan:
        """The plan in these bytes; an error that names `where` and the next step, if they are damaged."""
        with Parsing(where, committed=committed):
            header = json.loads(data.partition(b"\n")[0])
            check_header(header, number, KIND, where)
            whole = header["whole"]
            return cls(
                number,
                header["generation"],
                tuple(Window.of(*texts) for texts in header["windows"]),
                header["mode"],
                header["replace"],
                Ranges.of(Window.of(*texts) for texts in header["before"]),
                None if whole is None else Window.of(*whole),
                header["shape"],
                header.get("ledger"),
                header["time"],
            )
