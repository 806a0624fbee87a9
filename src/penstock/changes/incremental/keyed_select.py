"""The SELECT in which the rows of a model meet: below all SELECTs that only project and filter."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from penstock.changes.incremental.linear import needs_other_rows

_GENERATORS = {
    "EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER", "INLINE", "INLINE_OUTER", "STACK", "JSON_TUPLE",
    "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER", "UNNEST",
}  # fmt: skip
_MORE_THAN_A_PROJECTION = ("joins", "laterals", "group", "having", "distinct", "qualify", "windows", "pivots")


class KeysUnknown(Exception):
    """The keys that a change affects cannot be found; the message is the reason, for people."""


@dataclass(frozen=True)
class KeyedSelect:
    """A SELECT, and what the model's key is called in it."""

    select: exp.Select
    keys: tuple[str, ...]
    depth: int
    """The number of SELECTs around it."""
    multiplies: bool
    """Whether it, or a SELECT around it, makes several rows of one."""

    @property
    def relations(self) -> list[exp.Expr]:
        """The relations in its FROM and its JOINs."""
        source = self.select.args.get("from_")
        return [*([] if source is None else [source.this]), *(join.this for join in self.joins)]

    @property
    def joins(self) -> list[exp.Join]:
        return list(self.select.args.get("joins") or [])

    def item(self, key: str) -> exp.Expr | None:
        """The item of the SELECT that a key is; None if it comes by a star."""
        return _item(self.select, key)

    def index(self, item: exp.Expr) -> int:
        return next(index for index, other in enumerate(self.select.expressions) if other is item)


def descend(tree: exp.Expr, unique_key: tuple[str, ...]) -> KeyedSelect:
    """Go down from a model's tree to the SELECT in which its rows meet. KeysUnknown if that is not a SELECT."""
    node: exp.Expr = tree
    keys, depth, multiplies = tuple(key.lower() for key in unique_key), 0, False
    while True:
        if isinstance(node, exp.Subquery) and not node.args.get("alias"):
            node = node.this
            continue
        multiplies |= isinstance(node, exp.Select) and any(map(_generates, node.expressions))
        below = _projected(node, keys)
        if below is None:
            break
        (node, keys), depth = below, depth + 1
    if not isinstance(node, exp.Select):
        raise KeysUnknown(f"it is a {node.key.upper()}")
    return KeyedSelect(node, keys, depth, multiplies)


def _projected(node: exp.Expr, keys: tuple[str, ...]) -> tuple[exp.Expr, tuple[str, ...]] | None:
    """The query that a SELECT projects and filters, row by row, and the names of the keys in it; None if it does more."""
    inner = _wrapped(node)
    if inner is None or not isinstance(node, exp.Select):
        return None
    names = [_name_below(node, key) for key in keys]
    parts = [part for part in (*node.expressions, node.args.get("where")) if part is not None]
    if any(name is None for name in names) or any(map(needs_other_rows, parts)):
        return None
    return inner, tuple(str(name) for name in names)


def _wrapped(node: exp.Expr) -> exp.Expr | None:
    """The query in the FROM of a SELECT that has no other clause than WHERE; None if there is none."""
    if not isinstance(node, exp.Select) or any(node.args.get(clause) for clause in _MORE_THAN_A_PROJECTION):
        return None
    source = node.args.get("from_")
    inner = source.this if source is not None else None
    if not isinstance(inner, exp.Subquery) or inner.args.get("pivots") or inner.args.get("joins"):
        return None
    alias = inner.args.get("alias")
    if alias is not None and alias.columns:
        return None
    return inner.this if isinstance(inner.this, exp.Query) else None


def _name_below(select: exp.Select, key: str) -> str | None:
    """The name of a key in the subquery that a SELECT reads; None if the key is more than a column of it."""
    item = _item(select, key)
    if item is None:
        return key if select.is_star else None
    bare = item.unalias()
    if not isinstance(bare, exp.Column):
        return None
    # A field of a struct looks like a column of a table.
    qualifier = [part.name.lower() for part in bare.parts[:-1]]
    return bare.name.lower() if qualifier in ([], [select.args["from_"].this.alias.lower()]) else None


def _item(select: exp.Select, key: str) -> exp.Expr | None:
    return next((item for item in select.expressions if item.alias_or_name.lower() == key and not item.is_star), None)


def _generates(part: exp.Expr) -> bool:
    """Whether an item of a SELECT makes several rows of one."""
    functions = part.find_all(exp.Func)
    names = {(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper() for node in functions}
    return bool(names & _GENERATORS)
