"""The three ways to keep a model's table up to date: by rows, by keys, or recomputed as a whole."""

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
    """Recompute the whole model and compare it with the table. This is right for every model that has a key.

    The reasons, and the modules that find them:

    - The SQL can't be followed by rows or keys: `classify`, with `keyed_select`, `grouping`, `leaves` and `affected_keys`,
      which raise KeysUnknown; `classify_seen`, if only Spark's analyzed plan shows it.
    - A table that the model reads is not followed: `FollowedSources.why_whole` (`source`).
    - A source's columns changed, so rows that no commit has changed have new values: `stale_columns`.
    - The changes alone fail on a value that the model itself never sees: `plan_run`.

    `planning` asks for these reasons before the plan is written, `preparation` once more when Spark has parsed the model.
    To build the table again, after a Gap for example, is another thing: `Planner.rebuild_after`.
    """

    why: str
    """The reason, for people; reports and the log show it."""


MergeWay = Rows | Keys | Whole


def name_of(way: MergeWay) -> str:
    """`rows`, `keys` or `whole`, as reports say it."""
    return type(way).__name__.lower()
