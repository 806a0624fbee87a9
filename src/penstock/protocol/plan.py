"""A plan: a numbered piece of work of one life of one table. It is written down before it runs."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.errors import PenstockError
from penstock.protocol.state import GENERATION, LEDGER, State

FORMAT = 2
READABLE = (1, 2)
"""The formats of plans and compactions that are read. Format 1, of version 0.1.0, has no ledger."""


class Plan(Protocol):
    """The fields and methods of a plan that the protocol uses."""

    @property
    def number(self) -> int: ...
    @property
    def replace(self) -> bool:
        """Whether the plan creates the table, or replaces it."""

    @property
    def ledger(self) -> str | None:
        """The life of the table that the plan belongs to, or begins."""

    def to_bytes(self) -> bytes: ...


@dataclass(frozen=True)
class InvalidPlan:
    """A plan that cannot run as it was written; its number is used up by an empty commit."""

    reason: str
    """For people: it stays in the table's history."""


@dataclass(frozen=True)
class StartOver:
    """The plan did not run, and nothing is wrong with it: read the table's state again and continue from there."""

    reason: str
    """For people; such as that the table's columns were changed to fit the plan's query."""


def new_ledger() -> str:
    """The identity of a table's life, drawn by the plan that creates the table."""
    return str(uuid.uuid4())


def properties_of(plan: Plan) -> dict[str, str]:
    """The table properties that the commit of a replace plan sets."""
    return {GENERATION: str(plan.number)} | ({} if plan.ledger is None else {LEDGER: plan.ledger})


def check_header(header: Mapping[str, Any], number: int, kind: str, where: str) -> None:
    """PenstockError if the plan is of another kind or of a later format, ValueError if it has another number."""
    check_format(header, where)
    if header["kind"] != kind:
        raise PenstockError(
            f"The ledger of this table records {header['kind']}, not {kind}",
            where=where,
            fix="Run once with --full-refresh, or name another table.",
        )
    if header["number"] != number:
        raise ValueError(f"its header says that it is plan {header['number']}")


def check_format(header: Mapping[str, Any], where: str) -> None:
    if header["format_version"] not in READABLE:
        raise PenstockError(
            f"This record has format {header['format_version']}, and this version reads formats up to {FORMAT}",
            where=where,
            fix="Upgrade dbt-penstock.",
        )


def check_ledger(plan: Plan, state: State, where: str, fix: str = "Restore the right file from a backup") -> None:
    """PenstockError if a plan belongs to another life of the table."""
    if plan.ledger != state.ledger:
        raise PenstockError(
            f"Plan {plan.number} belongs to another life of this table ({plan.ledger}, not {state.ledger})",
            where=where,
            fix=f"{fix}, or run with --full-refresh.",
        )


def read_header(data: bytes, where: str) -> dict[str, Any]:
    """The header of a plan of any kind: the first JSON value of its file."""
    with Parsing(where):
        header, _ = json.JSONDecoder().raw_decode(data.decode())
        return dict(header)


def header_of(plan: Plan, kind: str, generation: int, time: int) -> dict[str, Any]:
    """The fields that the headers of all plans have."""
    return {
        "format_version": FORMAT,
        "kind": kind,
        "ledger": plan.ledger,
        "number": plan.number,
        "generation": generation,
        "batchId": plan.number - generation,
        "replace": plan.replace,
        "time": time,
    }


class Parsing:
    """Parse a plan inside: damage becomes a PenstockError that names the file and the next step.

    The next step depends on whether the plan is `committed`, because the ledger needs every committed plan.
    """

    def __init__(self, where: str, *, committed: bool = False) -> None:
        self._where = where
        self._committed = committed

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, (ValueError, KeyError, TypeError)):
            return
        raise PenstockError(
            f"This plan can't be read: {error}",
            where=self._where,
            fix="The plan's number is committed to the table. Restore the plan's file from a backup, or run with "
            "--full-refresh."
            if self._committed
            else "The plan's batch is not in the table. Move the plan's file away, and the next run plans again.",
        ) from error
