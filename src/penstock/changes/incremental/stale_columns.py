"""Which columns of its tables a model reads, as far as its text tells: rather too many than too few."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from penstock.changes.query import ChangeModel, parse
from penstock.changes.version_range import Between
from penstock.sql import tokens as sql


class Reads:
    def __init__(self, model: ChangeModel, where: str) -> None:
        tree = parse(model.text, where)
        self._words = {token.text.lower() for token in sql.tokens(model.text)}
        stars = list(_stars(tree))
        self.star = bool(stars)
        """Whether it has whatever columns a table has."""
        self._computes = any(not isinstance(star.parent, exp.Select) for star in stars) or (
            self.star and _depends_on_place(tree)
        ) or any(str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join))  # fmt: skip

    def stale(self, between: Between, ours: Collection[str]) -> str | None:
        """What of a table's other columns makes rows that stayed read otherwise; `ours` are the target's columns."""
        if not between.has_other_columns:
            return None
        if found := {name for name in between.reread if self.star or name in self._words}:
            return f"{_told(found)} changed without the rows"
        # A name may stand for another column now, or for none.
        if found := {name for name in between.added | between.dropped if name in self._words}:
            return f"{_told(found)} came or went"
        if self.star and (found := between.added & set(ours)):
            return f"{_told(found)} is new, and the table has such a column already"
        return "it has other columns, and the model computes with all of them" if self._computes else None


def _stars(tree: exp.Expr) -> Iterator[exp.Expr]:
    for star in tree.find_all(exp.Star):
        if isinstance(star.parent, exp.Column):
            yield star.parent
        elif not isinstance(star.parent, exp.Count):
            yield star


def _depends_on_place(tree: exp.Expr) -> bool:
    """Whether columns count by their place or all together: UNION, DISTINCT, PIVOT, `as t(a, b)`."""
    if tree.find(exp.SetOperation, exp.Distinct, exp.Pivot) is not None:
        return True
    aliases = tree.find_all(exp.TableAlias)
    return any(alias.columns and not isinstance(alias.parent, exp.Lateral) for alias in aliases)


def _told(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
