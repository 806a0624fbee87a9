"""The ledger of a model that follows changes: its newest committed plan says which versions are in."""

from __future__ import annotations

from penstock.changes.plan import KIND, ChangePlan
from penstock.errors import PenstockError
from penstock.protocol.journal import Journal
from penstock.protocol.state import State
from penstock.storage import join

_KEPT_PLANS = 100


class _CommittedPlans:
    """Reads plans that are committed."""

    kind = KIND

    def decode(self, number: int, data: bytes, where: str) -> ChangePlan:
        return ChangePlan.from_bytes(number, data, where, committed=True)


class ChangeLedger:
    """Reads and tidies the plans of one table."""

    def __init__(self, journal: Journal[ChangePlan]) -> None:
        self._journal = journal

    def last(self, state: State) -> ChangePlan:
        """The plan of the last number, committed or cancelled; an error if its file is gone."""
        assert state.mark is not None
        last = self._journal.plan(state.mark, state, _CommittedPlans())
        if last is None:
            raise PenstockError(
                f"Plan {state.mark} is committed to the table, and its file is gone",
                where=join(self._journal.location, self._journal.path_of(state.mark)),
                fix="Restore the file from a backup, or run with --full-refresh.",
            )
        return last

    def forget_old_plans(self, state: State) -> None:
        """Delete plans of earlier generations, and all but the newest hundred. A run reads only the newest plan."""
        assert state.mark is not None
        kept = max(state.generation, state.mark - _KEPT_PLANS + 1)
        for number in sorted(self._journal.records().plans):
            if number < kept:
                self._journal.storage.delete(self._journal.path_of(number))
