"""Where a table stands, as its log says."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.delta.commits import Commit, note_of
from penstock.delta.table import Table

GENERATION = "penstock.generation"
"""The table property that names the number of the plan which made, or last replaced, the table."""
LEDGER = "penstock.ledger"
"""The table property that names the table's life; tables of 0.1.0 have none until they are refreshed."""


@dataclass(frozen=True)
class State:
    """Where a table stands, all of it read from one version of its log."""

    table: Table | None
    mark: int | None
    """The last number committed; None before the first."""
    void: int | None
    """The last number that was cancelled; the plan after it says so too, for good."""
    generation: int
    """The number at which the ledger begins."""
    ledger: str | None = None
    """The table's life; None for tables of 0.1.0, and where there is no table."""
    others: tuple[Commit, ...] = field(default=(), compare=False)
    """Commits of others since the version that our newest commit was built on, newest first."""

    @property
    def version(self) -> int:
        """The version that all of this was read at; -1 where there is no table."""
        return -1 if self.table is None else self.table.version

    @property
    def last_is_void(self) -> bool:
        return self.mark is not None and self.void == self.mark

    def note(self, what: object) -> str:
        """A note for one commit of ours that is built on this state."""
        return note_of(what, self.version)
