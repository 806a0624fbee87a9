"""Whether other columns of a source change rows that no commit has changed.

The model's text alone says which columns the model reads. The check prefers to find too many of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from penstock.changes.query import ChangeQuery, parse
from penstock.changes.source_log import SourceChanges
from penstock.sql import tokens as sql


class ColumnsRead:
    """The columns that a model reads: by name, by a star, or all together."""

    def __init__(self, query: ChangeQuery, where: str) -> None:
        tree = parse(query.text, where)
        self._words = {token.text.lower() for token in sql.tokens(query.text)}
        stars = list(_stars(tree))
        self.star = bool(stars)
        """Whether the result has whatever columns a table has."""
        inside = any(not isinstance(star.parent, exp.Select) for star in stars)
        natural = any(str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join))
        self._computes_with_all = inside or natural or (self.star and _counts_columns(tree))

    def why_stale(self, changes: SourceChanges, ours: Collection[str]) -> str | None:
        """Why rows that no commit has changed have new values; None if they do not. `ours` are the target's columns."""
        if not changes.has_other_columns:
            return None
        if found := {name for name in changes.reread if self.star or name in self._words}:
            return f"{_listed(found)} changed without the rows"
        # A name in the SQL may stand for another column now, or for none.
        if found := {name for name in changes.added | changes.dropped if name in self._words}:
            return f"{_listed(found)} was added or dropped"
        if self.star and (found := changes.added & set(ours)):
            return f"{_listed(found)} is new, and the table already has such a column"
        return "it has other columns, and the model computes with all of them" if self._computes_with_all else None


def _stars(tree: exp.Expr) -> Iterator[exp.Expr]:
    for star in tree.find_all(exp.Star):
        if isinstance(star.parent, exp.Column):
            yield star.parent
        elif not isinstance(star.parent, exp.Count):
            yield star


def _counts_columns(tree: exp.Expr) -> bool:
    """Whether the position of columns matters, or all of them together: UNION, DISTINCT, PIVOT, `as t(a, b)`."""
    if tree.find(exp.SetOperation, exp.Distinct, exp.Pivot) is not None:
        return True
    aliases = tree.find_all(exp.TableAlias)
    return any(alias.columns and not isinstance(alias.parent, exp.Lateral) for alias in aliases)


def _listed(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
