"""Takes files out of quarantine: they count as new again, and the next run reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import CommitConflict, PenstockError
from penstock.files.ledger import Ledger
from penstock.files.plan import FilePlan
from penstock.files.records import QUARANTINED, RECORDS, RELEASED, known, lines
from penstock.protocol.journal import Journal
from penstock.protocol.state import State
from penstock.secrets import logger
from penstock.steps import Step, no_step

log = logger("penstock.files")

_ATTEMPTS = 5


@dataclass(frozen=True)
class Released:
    """The files that were released, and the commit that says so."""

    paths: tuple[str, ...]
    """Their names in the ledger."""
    number: int
    version: int


def release(journal: Journal[FilePlan], paths: Iterable[str], step: Step = no_step) -> Released:
    """Release quarantined files, by the paths that they are read from or that the ledger has; all or none.

    This is a plan without files to read: its lines say `released`, and a commit without data brings it in. So a kill
    and other runs find it as they find every plan. PenstockError if a file is not in quarantine.
    """
    wanted = list(dict.fromkeys(paths))
    for _ in range(_ATTEMPTS):
        state = journal.state()
        if state.mark is None:
            raise PenstockError("This table has no ledger, so no file is in quarantine", where=journal.location)
        plan = _planned(journal, state, wanted)
        step("plan")
        if not journal.write_ahead(plan):
            raise PenstockError(
                f"Plan {plan.number} is written and not committed: a run is at work, or was killed",
                where=journal.location,
                fix="Run the model, and release the files afterwards.",
            )
        step("planned")
        version = _commit(journal, plan, state)
        if version is not None:
            return Released(tuple(plan.lines["path"].to_pylist()), plan.number, version)
    raise PenstockError(
        f"Other writers were first {_ATTEMPTS} times in a row", where=journal.location, fix="Try again later."
    )


def _commit(journal: Journal[FilePlan], plan: FilePlan, state: State) -> int | None:
    """The version of the table with this plan; None if the table was replaced meanwhile.

    A run that finds the plan commits it as it stands. So the plan is in as soon as its number is.
    """
    for _ in range(_ATTEMPTS):
        try:
            journal.commit_empty(plan.number, state)
        except CommitConflict as conflict:
            log.debug("another writer was first: %s", conflict)
        state = journal.state()
        if state.ledger != plan.ledger or state.generation > plan.number:
            return None
        if state.mark is not None and state.mark >= plan.number:
            return state.version
    return None


def _planned(journal: Journal[FilePlan], state: State, paths: list[str]) -> FilePlan:
    ledger = Ledger(journal)
    ledger.follow(state)
    assert state.mark is not None
    last = ledger.reader.plan(state.mark, state)
    records = known(ledger.records)
    quarantined = records.filter(pc.equal(records["status"], QUARANTINED))
    chosen = []
    for path in paths:
        name = ledger.roots.known_as(path)
        found = quarantined.filter(pc.is_in(quarantined["path"], pa.array([name, path], pa.string())))
        if found.num_rows == 0:
            raise PenstockError(
                "This file is not in quarantine", where=path, fix="`penstock files TABLE --why PATH` says what it is."
            )
        chosen.append(found)
    files = pa.concat_tables(chosen).select(RECORDS.names) if chosen else quarantined
    return FilePlan(
        number=state.mark + 1,
        generation=state.generation,
        lines=lines(files, RELEASED, "released from quarantine"),
        schema=ledger.schema,
        format=ledger.format,
        roots=ledger.roots,
        voided=(state.mark, "by another run") if state.last_is_void else None,
        ledger=state.ledger,
        model=last.model,
        selection=last.selection,
    )
