"""Which table a column belongs to. Two columns of one name count as the same only if their table is the same."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.changes.incremental.keyed_select import KeyedSelect
from penstock.changes.incremental.leaves import Leaf, column_by_star, join_kind, leaf_of
from penstock.changes.query import ChangeQuery


@dataclass(frozen=True)
class ColumnScope:
    """The columns that the expressions of a SELECT can name."""

    keyed: KeyedSelect
    leaves: tuple[Leaf, ...]
    using: frozenset[str]
    """The columns of USING, which are named without a table."""
    merged: frozenset[str]
    """Those columns of USING that have the same value in all tables, because all joins are inner joins."""

    @classmethod
    def of(cls, query: ChangeQuery, keyed: KeyedSelect) -> ColumnScope:
        leaves = tuple(leaf_of(query, relation) for relation in keyed.relations)
        using = frozenset(column.name.lower() for join in keyed.joins for column in join.args.get("using") or [])
        inner = all(join_kind(join) == "" for join in keyed.joins)
        return cls(keyed, leaves, using, using if inner else frozenset())

    def value(self, key: str) -> str:
        """The expression that a key is, as `spelled` writes it."""
        item = self.keyed.item(key)
        return self.spelled(column_by_star(self.keyed, key, self.leaves) if item is None else item.unalias())

    def spelled(self, expression: exp.Expr) -> str:
        """A text that is the same for the same value, however its columns are qualified."""
        bare = expression.unnest()
        if isinstance(bare, exp.Column):
            return self._column(bare)
        return bare.copy().transform(self._spelled).sql("spark", normalize=True, identify=False).lower()

    def has(self, name: str) -> bool:
        """Whether a table may have a column of this name."""
        return bool(self._readers(name))

    def _spelled(self, node: exp.Expr) -> exp.Expr:
        if type(node) is exp.Column:
            return exp.var(self._column(node))
        if isinstance(node, exp.Literal) and node.is_string:
            # Letter case matters in texts, unlike in names.
            return exp.var(f"text_{node.name.encode().hex()}")
        return node

    def _readers(self, name: str) -> list[int]:
        return [index for index, leaf in enumerate(self.leaves) if leaf.columns is None or name in leaf.columns]

    def _column(self, column: exp.Column) -> str:
        *qualifier, name = [part.name.lower() for part in column.parts]
        if name in self.merged and len(qualifier) < 2:
            return name
        if not qualifier:
            readers = self._readers(name)
            alone = readers[:1] if name in self.using or len(readers) == 1 else []
        else:
            alone = [index for index, leaf in enumerate(self.leaves) if [leaf.alias] == qualifier]
        # If no single table has it, it is a field of a struct, or is left as it is written.
        return f"leaf_{alone[0]}_{name}" if len(alone) == 1 else ".".join([*qualifier, name])
