"""A window as it is written down before its data: from which version to which, for each source."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.changes.version_range import Span
from penstock.errors import PenstockError
from penstock.protocol.plan import FORMAT, check_header

KIND = "changes"


@dataclass(frozen=True)
class ChangePlan:
    """One commit of a model that follows changes."""

    number: int
    generation: int
    spans: tuple[Span, ...]
    replace: bool = False
    """Whether it makes the table, or makes it anew."""
    rows: bool = True
    """Whether any row changes in it."""
    columns: bool = False
    """Whether Spark is to look at the model's columns, though no row changes in it."""
    whole: str = ""
    """Why the model is computed as a whole, and compared with the table; nothing where it is not."""
    model: str = ""
    """A digest of the model's SQL."""
    built: str = ""
    """A digest of the SQL that made the rows which this plan leaves unchanged."""
    key: tuple[str, ...] = ()
    """The columns that tell its rows apart."""
    ledger: str | None = None
    """The table's life that it belongs to, or begins."""
    time: int = field(default_factory=lambda: int(time.time() * 1000))

    def position(self, *, void: bool) -> dict[str, Span]:
        """Where each source stands after this plan, or still stands where it was cancelled."""
        return {
            span.name: replace(span, end=span.start, commit=span.before) if void and span.start is not None else span
            for span in self.spans
        }

    def made_by(self, *, void: bool) -> str:
        """A digest of the SQL that all rows of the table were made by after this plan, or without it."""
        return self.model if (self.replace or self.whole) and not void else self.built

    def __str__(self) -> str:
        return ", ".join(str(span) for span in self.spans if not span.is_empty)

    def to_bytes(self) -> bytes:
        content: Mapping[str, Any] = {
            "format_version": FORMAT,
            "kind": KIND,
            **asdict(self),
            "batchId": self.number - self.generation,
        }
        return json.dumps(content, indent=2, ensure_ascii=False).encode()

    @classmethod
    def from_bytes(cls, number: int, data: bytes, where: str) -> ChangePlan:
        try:
            content = json.loads(data)
            check_header(content, number, KIND, where)
            return cls(
                number=number,
                generation=content["generation"],
                spans=tuple(Span(**span) for span in content["spans"]),
                replace=content["replace"],
                rows=content["rows"],
                columns=content.get("columns", False),
                whole=content.get("whole", ""),
                model=content["model"],
                built=content.get("built", content["model"]),
                key=tuple(content.get("key", ())),
                ledger=content.get("ledger"),
                time=content["time"],
            )
        except (ValueError, KeyError, TypeError) as error:
            raise PenstockError(
                f"This plan can't be read: {error}",
                where=where,
                fix="Run with --full-refresh to build the table anew.",
            ) from error
