"""The part of a model where its rows meet: what it takes to tell which keys a change touches.

A proof in short. Take the places one after the other, each from its old rows to its new ones while all others stand
still. The rows that go into the core and change by that step are made from a changed row of that place, as long as the
joins above it drop or fill nothing for want of it. So the core's FROM over the changed rows alone, with a LEFT JOIN of
that place as an INNER JOIN, and no WHERE, as that may ask for what is missing, yields every key that the step can touch.
A key that is made from the side of a LEFT JOIN that may be missing would differ between filled and found: such a model
is computed as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from sqlglot import exp

from penstock.changes.incremental import clauses
from penstock.errors import PenstockError
from penstock.sql import tokens as sql

if TYPE_CHECKING:
    from penstock.changes.query import ChangeModel


_GENERATORS = {
    "EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER", "INLINE", "INLINE_OUTER", "STACK", "JSON_TUPLE",
    "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER", "UNNEST",
}  # fmt: skip


@dataclass(frozen=True)
class Leaf:
    """What one FROM or JOIN reads."""

    alias: str
    columns: frozenset[str] | None
    """None where they can't be told."""
    places: tuple[int, ...]
    join: str
    """"", LEFT, SEMI or ANTI."""
    number: int | None
    """Its place among the joins that are not inner ones; None where it is one."""


@dataclass(frozen=True)
class Core:
    model: ChangeModel
    keys: tuple[tuple[str, str], ...]
    """Each key's text in the core's SELECT, with the name that it has there."""
    leaves: tuple[Leaf, ...]
    from_text: str
    where_text: str
    one_row_a_key: bool
    """Whether the grouping itself makes the key unique."""
    aggregations: int
    """How many there are in it: its GROUP BY, and its DISTINCT."""

    @classmethod
    def find(cls, model: ChangeModel, tree: exp.Expr, unique_key: tuple[str, ...], where: str) -> Core | str:
        """The core, or why there is none."""
        from penstock.changes.incremental.classify import looks_further, places_in, why_not_linear

        node: exp.Expr = tree
        keys = [key.lower() for key in unique_key]
        depth, multiplies = 0, False
        while True:
            if isinstance(node, exp.Subquery) and not node.args.get("alias"):
                node = node.this
                continue
            multiplies |= isinstance(node, exp.Select) and any(map(_generates, node.expressions))
            inner = _wrapped(node)
            if inner is None:
                break
            assert isinstance(node, exp.Select)
            names = [_plain_name(node, key) for key in keys]
            if any(name is None for name in names) or any(
                looks_further(part) for part in (*node.expressions, node.args.get("where")) if part is not None
            ):
                break
            keys, node, depth = [str(name) for name in names], inner, depth + 1
        if not isinstance(node, exp.Select):
            return f"it is a {node.key.upper()}"
        if node.args.get("pivots") or node.args.get("windows"):
            return "it has PIVOT or WINDOW"
        source = node.args.get("from_")
        joins = node.args.get("joins") or []
        scope = _Scope.of(model, node)
        projections = [_projection(node, key) for key in keys]
        grouped = _refuse_other_keys(node, keys, projections, scope, where)
        if isinstance(grouped, str):
            return grouped
        if source is None:
            return "it reads no table"
        clauses_of = (node.args.get(clause) for clause in ("where", "having", "qualify", "group"))
        on = (join.args.get("on") for join in joins)
        for part in (*node.expressions, *clauses_of, *on, *(node.args.get("laterals") or [])):
            if part is not None and next(part.find_all(exp.Query), None) is not None:
                return "it has a subquery in an expression"
        leaves = [_leaf(model, source.this, "", None, places_in(source.this))]
        sided = 0
        for join in joins:
            kind = _kind(join)
            if kind is None:
                return f"it has a {join.side or join.args.get('method')} JOIN"
            leaves.append(_leaf(model, join.this, kind, sided if kind else None, places_in(join.this)))
            sided += bool(kind)
        for part in (source.this, *(join.this for join in joins)):
            if why := why_not_linear(part):
                return why
        missing = {index for index, leaf in enumerate(leaves) if leaf.join == "LEFT"}
        if missing and node.args.get("laterals"):
            return "it has a LATERAL VIEW beside an outer join"
        for key, projection in zip(keys, projections):
            if projection is None:
                read = _leaves_of(_by_star(node, key, leaves), leaves)
            else:
                aliases = {item.alias.lower() for item in node.expressions if isinstance(item, exp.Alias)}
                bare = projection.unalias()
                if any(
                    not column.table and column.name.lower() in aliases - {key} for column in bare.find_all(exp.Column)
                ):
                    return f"the key {key} is made from another column of the SELECT"
                read = _leaves_of(bare, leaves)
            if read & missing:
                return f"the key {key} comes from the side of an outer join that may be missing"
        for index, join in enumerate(joins, start=1):
            if leaves[index].join != "LEFT" and missing & set(range(index)):
                on = join.args.get("on")
                named = [exp.column(item.name) for item in join.args.get("using") or []]
                if any(_leaves_of(part, leaves) & missing for part in (*([on] if on is not None else []), *named)):
                    return "an inner join comes after an outer one and depends on it"
        return cls._cut(model, node, depth, keys, projections, leaves, sided, grouped and not multiplies)

    @classmethod
    def _cut(
        cls,
        model: ChangeModel,
        node: exp.Select,
        depth: int,
        keys: list[str],
        projections: Sequence[exp.Expr | None],
        leaves: list[Leaf],
        sided: int,
        one_row_a_key: bool,
    ) -> Core | str:
        """Find the clauses of the core in the text: the tree says what they are, the tokens where."""
        text, found = model.text, sql.tokens(model.text)
        begin, end = clauses.select_at(found, depth)
        outer = clauses.outside(found, begin, end)
        from_at = clauses.from_in(outer)
        if from_at is None:
            return "its FROM can't be found"
        after = [i for i in range(from_at + 1, len(outer)) if clauses.begins_at(outer, i)]
        stop = outer[after[0]].start if after else found[end - 1].end + 1
        where_text = ""
        if after and outer[after[0]].text.upper() == "WHERE":
            until = outer[after[1]].start if len(after) > 1 else found[end - 1].end + 1
            where_text = text[outer[after[0]].start : until]
        from_text = text[outer[from_at].start : stop]
        items = clauses.items(text, outer[:from_at])
        if len(items) != len(node.expressions) or len(clauses.sided_joins(from_text)) != sided:
            return "its parts can't be told apart"
        cut = [
            (_by_star(node, key, leaves).sql("spark") if projection is None else items[_index(node, projection)], key)
            for key, projection in zip(keys, projections)
        ]
        return cls(model, tuple(cut), tuple(leaves), from_text, where_text, one_row_a_key, _aggregations(node))

    def touched(self, place: int) -> str:
        """The SQL of the keys that change when what is read at this place does; the places are still to be bound."""
        leaf = next(leaf for leaf in self.leaves if place in leaf.places)
        from_text, where_text = self.from_text, self.where_text
        if leaf.join in ("LEFT", "ANTI"):
            assert leaf.number is not None
            start, end = clauses.sided_joins(from_text)[leaf.number]
            instead = "inner join" if leaf.join == "LEFT" else "left semi join"
            from_text = from_text[:start] + instead + from_text[end:]
            where_text = where_text if leaf.join == "ANTI" else ""
        return f"select {', '.join(text for text, _ in self.keys)} {from_text}\n{where_text}"


def _wrapped(node: exp.Expr) -> exp.Expr | None:
    """What a SELECT that only projects and filters one subquery reads."""
    if not isinstance(node, exp.Select):
        return None
    if any(
        node.args.get(clause)
        for clause in ("joins", "laterals", "group", "having", "distinct", "qualify", "windows", "pivots")
    ):
        return None
    source = node.args.get("from_")
    inner = source.this if source is not None else None
    if not isinstance(inner, exp.Subquery) or inner.args.get("pivots") or inner.args.get("joins"):
        return None
    alias = inner.args.get("alias")
    if alias is not None and alias.columns:
        return None
    return inner.this if isinstance(inner.this, exp.Query) else None


def _projection(select: exp.Select, key: str) -> exp.Expr | None:
    """The item of the SELECT that a key is; None where it comes by a star."""
    return next((item for item in select.expressions if item.alias_or_name.lower() == key and not item.is_star), None)


def _plain_name(select: exp.Select, key: str) -> str | None:
    """What a key is called in the subquery that a SELECT reads; None where it is more than a column of it."""
    item = _projection(select, key)
    if item is None:
        return key if select.is_star else None
    bare = item.unalias()
    if not isinstance(bare, exp.Column):
        return None
    # A part of a struct looks like a column of a table.
    qualifier = [part.name.lower() for part in bare.parts[:-1]]
    return bare.name.lower() if qualifier in ([], [select.args["from_"].this.alias.lower()]) else None


def _by_star(select: exp.Select, key: str, leaves: Sequence[Leaf]) -> exp.Column:
    """The column that a key is where it comes by a star; of `a.*`, a's."""
    stars = {item.table.lower() for item in select.expressions if isinstance(item, exp.Column) and item.is_star}
    having = [leaf.alias for leaf in leaves if leaf.alias in stars and (leaf.columns is None or key in leaf.columns)]
    return exp.column(key, table=having[0] if len(having) == 1 else None, quoted=True)


def _generates(part: exp.Expr) -> bool:
    """Whether an item of a SELECT makes several rows of one."""
    functions = part.find_all(exp.Func)
    names = {(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper() for node in functions}
    return bool(names & _GENERATORS)


@dataclass(frozen=True)
class _Scope:
    """What the columns of a SELECT stand for."""

    leaves: tuple[Leaf, ...]
    named: frozenset[str]
    """The columns of USING, which go without a table."""
    merged: frozenset[str]
    """Those that are the same in all tables, because all joins are inner ones."""

    @classmethod
    def of(cls, model: ChangeModel, node: exp.Select) -> _Scope:
        source, joins = node.args.get("from_"), node.args.get("joins") or []
        read = [*([source.this] if source is not None else []), *(join.this for join in joins)]
        leaves = tuple(_leaf(model, part, "", None, []) for part in read)
        named = frozenset(column.name.lower() for join in joins for column in join.args.get("using") or [])
        inner = all(_kind(join) == "" for join in joins)
        return cls(leaves, named, named if inner else frozenset())

    def spelled(self, expression: exp.Expr) -> str:
        """The same for the same value, whichever way its columns are qualified."""
        bare = expression.unnest()
        if isinstance(bare, exp.Column):
            return self._column(bare)
        return bare.copy().transform(self._spelled).sql("spark", normalize=True, identify=False).lower()

    def _spelled(self, node: exp.Expr) -> exp.Expr:
        if type(node) is exp.Column:
            return exp.var(self._column(node))
        if isinstance(node, exp.Literal) and node.is_string:
            # Names know no case, values do: 'A' is not 'a'.
            return exp.var(f"text_{node.name.encode().hex()}")
        return node

    def has(self, name: str) -> bool:
        return bool(self._readers(name))

    def _readers(self, name: str) -> list[int]:
        return [index for index, leaf in enumerate(self.leaves) if leaf.columns is None or name in leaf.columns]

    def _column(self, column: exp.Column) -> str:
        *qualifier, name = [part.name.lower() for part in column.parts]
        if name in self.merged and len(qualifier) < 2:
            return name
        if not qualifier:
            readers = self._readers(name)
            alone = readers[:1] if name in self.named or len(readers) == 1 else []
        else:
            alone = [index for index, leaf in enumerate(self.leaves) if [leaf.alias] == qualifier]
        # What is of no table alone is a part of a struct, or as it stands.
        return f"leaf_{alone[0]}_{name}" if len(alone) == 1 else ".".join([*qualifier, name])


def _refuse_other_keys(
    node: exp.Select, keys: list[str], projections: Sequence[exp.Expr | None], scope: _Scope, where: str
) -> bool | str:
    """Whether the grouping makes the key unique; aggregates and windows that mix keys are refused."""
    for key, projection in zip(keys, projections):
        if projection is None and not node.is_star:
            raise PenstockError(f"`unique_key` names {key}, and the model's result has no such column", where=where)
    shown = [
        scope.spelled(_by_star(node, key, scope.leaves) if projection is None else projection.unalias())
        for key, projection in zip(keys, projections)
    ]
    parts = [*node.expressions, *([node.args["qualify"]] if node.args.get("qualify") else [])]
    for window in (window for part in parts for window in _own(part, exp.Window)):
        by = {scope.spelled(item) for item in window.args.get("partition_by") or []}
        if not set(shown) <= by:
            raise PenstockError(
                f"A window function looks across keys: PARTITION BY lacks {', '.join(keys)}",
                where=where,
                fix="Partition by every column of `unique_key`, or use `materialized: table`.",
            )
    aggregates = [
        item
        for part in (*node.expressions, node.args.get("having"))
        if part is not None
        for item in _own(part, exp.AggFunc)
        if not _is_windowed(item)
    ]
    group = node.args.get("group")
    if group is None:
        if aggregates:
            raise _no_key(keys, "there is no GROUP BY", where)
        return False
    if any(group.args.get(kind) for kind in ("rollup", "cube", "grouping_sets")) or any(
        isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)) for item in group.expressions
    ):
        return "it has ROLLUP, CUBE or GROUPING SETS"
    if group.args.get("all"):
        grouped = {scope.spelled(item.unalias()) for item in node.expressions if not item.find(exp.AggFunc)}
    else:
        grouped = {scope.spelled(_meant(node, item, scope)) for item in group.expressions}
    absent = [key for key, spelled in zip(keys, shown) if spelled not in grouped]
    if absent:
        raise _no_key(absent, "GROUP BY lacks it", where)
    return grouped <= set(shown)


def _is_windowed(item: exp.Expr) -> bool:
    """Whether an aggregate has an OVER, with whatever stands between them."""
    parent = item.parent
    while isinstance(parent, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        parent = parent.parent
    return isinstance(parent, exp.Window)


def _own(part: exp.Expr, kind: type[exp.Expr]) -> list[exp.Expr]:
    """What is of this kind in an expression, and not in a subquery of it."""
    return [node for node in part.walk(prune=lambda node: isinstance(node, exp.Query)) if isinstance(node, kind)]


def _aggregations(node: exp.Select) -> int:
    return sum(bool(node.args.get(clause)) for clause in ("group", "distinct"))


def _no_key(keys: list[str], why: str, where: str) -> PenstockError:
    return PenstockError(
        f"The model aggregates without its key: `unique_key` has {', '.join(keys)}, and {why}",
        where=where,
        fix="Group by every column of `unique_key`, or use `materialized: table`.",
    )


def _meant(node: exp.Select, item: exp.Expr, scope: _Scope) -> exp.Expr:
    """What an item of GROUP BY stands for: a position, an alias that is no column's name, or itself."""
    if isinstance(item, exp.Literal) and item.is_int:
        at = int(item.this) - 1
        return node.expressions[at].unalias() if 0 <= at < len(node.expressions) else item
    if isinstance(item, exp.Column) and not item.table and not scope.has(item.name.lower()):
        named = next(
            (e for e in node.expressions if isinstance(e, exp.Alias) and e.alias.lower() == item.name.lower()), None
        )
        if named is not None and not named.this.find(exp.AggFunc):
            return cast("exp.Expr", named.this)
    return item


def _kind(join: exp.Join) -> str | None:
    side, kind = (join.side or "").upper(), (join.kind or "").upper()
    if join.args.get("method"):
        return None
    words = f"{side} {kind}".split()
    if words in ([], ["INNER"], ["CROSS"]):
        return ""
    if words in (["LEFT"], ["LEFT", "OUTER"]):
        return "LEFT"
    if words in (["SEMI"], ["LEFT", "SEMI"]):
        return "SEMI"
    if words in (["ANTI"], ["LEFT", "ANTI"]):
        return "ANTI"
    return None


def _leaf(model: ChangeModel, node: exp.Expr, join: str, number: int | None, places: list[int]) -> Leaf:
    return Leaf(node.alias_or_name.lower(), _columns(model, node), tuple(places), join, number)


def _columns(model: ChangeModel, node: exp.Expr) -> frozenset[str] | None:
    from penstock.changes.incremental.classify import places_in

    if isinstance(node, exp.Table):
        numbers = places_in(node)
        return frozenset(model.places[numbers[0]].columns) if numbers else None
    if isinstance(node, exp.Subquery):
        alias = node.args.get("alias")
        if alias is not None and alias.columns:
            return frozenset(column.name.lower() for column in alias.columns)
        return _columns(model, node.this)
    if isinstance(node, exp.Union):
        return _columns(model, node.left)
    if not isinstance(node, exp.Select):
        return None
    names: set[str] = set()
    for item in node.expressions:
        if not item.is_star:
            names.add(item.alias_or_name.lower())
            continue
        for part in (node.args["from_"].this, *(join.this for join in node.args.get("joins") or [])):
            below = _columns(model, part)
            if below is None:
                return None
            names |= below
    return frozenset(names)


def _leaves_of(expression: exp.Expr, leaves: list[Leaf]) -> set[int]:
    """Which leaves an expression may read; all that can't be ruled out."""
    read: set[int] = set()
    for column in expression.find_all(exp.Column):
        named = (
            {index for index, leaf in enumerate(leaves) if leaf.alias == column.table.lower()}
            if column.table
            else set()
        )
        if not named:
            # A part of a struct looks like a column of a table.
            name = (column.parts[0].name if column.table else column.name).lower()
            named = {index for index, leaf in enumerate(leaves) if leaf.columns is None or name in leaf.columns}
        read |= named
    return read


def _index(node: exp.Select, projection: exp.Expr) -> int:
    return next(index for index, item in enumerate(node.expressions) if item is projection)
