"""Where a table stands, as its log says."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.delta.commits import Commit, note_of
from penstock.delta.table import Table

GENERATION = "penstock.generation"
"""The table property with the number of the plan that created the table, or replaced it last."""
LEDGER = "penstock.ledger"
"""The table property with the identity of the table's life. Tables of 0.1.0 have none before their next refresh."""


@dataclass(frozen=True)
class State:
    """Where a table stands, read from one version of its log."""

    table: Table | None
    mark: int | None
    """The number of the last commit of ours; None before the first."""
    void: int | None
    """The last number that was cancelled. The plan after it records this as well."""
    generation: int
    """The number of the plan that created or last replaced the table."""
    ledger: str | None = None
    """The identity of the table's life; None for tables of 0.1.0, and if there is no table."""
    others: tuple[Commit, ...] = field(default=(), compare=False)
    """Commits of other writers above the version that our newest commit was built on, newest first."""

    @property
    def version(self) -> int:
        """The version that this state was read from; -1 if there is no table."""
        return -1 if self.table is None else self.table.version

    @property
    def last_is_void(self) -> bool:
        """Whether our last commit cancelled its plan."""
        return self.mark is not None and self.void == self.mark

    def note(self, what: object) -> str:
        """A unique note for one commit that is built on this state."""
        return note_of(what, self.version)
