"""The three ways to keep a model's table up to date."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.changes.incremental.affected_keys import AffectedKeys


@dataclass(frozen=True)
class Rows:
    """Each row of the result comes from one row of each table: the model of the changes is the change of the model."""

    apart: frozenset[tuple[int, int]]
    """Pairs of table reads in different branches of a UNION ALL: the changes of one never meet the other."""
    carried: str | None = None
    """The model's text with a column for the weights of its rows, if it is a chain of SELECTs over one table read."""


@dataclass(frozen=True)
class Keys:
    """The keys that a change can affect are known, and the model is computed again for these keys."""

    affected: AffectedKeys


@dataclass(frozen=True)
class Whole:
    """The model is computed as a whole and compared with the table. This is right for every model that has a key."""

    why: str


MergeWay = Rows | Keys | Whole


def name_of(way: MergeWay) -> str:
    """`rows`, `keys` or `whole`, as reports say it."""
    return type(way).__name__.lower()
