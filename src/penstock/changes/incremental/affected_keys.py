"""Affected keys: which keys of a model's result a change of one table can touch.

A proof in short. Take the table reads one after the other. Change each from its old rows to its new rows, while all
others stay as they are. Every row of the joins that changes by this step comes from a changed row of that table, unless
a join above drops or fills rows because a match is missing. So run the FROM over the changed rows alone. A LEFT JOIN of
that table becomes an INNER JOIN, and the WHERE is left out, because it may ask for a missing match. The result has
every key that the step can touch. A key that comes from the optional side of a LEFT JOIN would be another key with and
without a match: such a model is computed as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from penstock.changes import clauses
from penstock.changes.incremental.column_scope import ColumnScope
from penstock.changes.incremental.grouping import aggregations, makes_key_unique
from penstock.changes.incremental.keyed_select import KeyedSelect, KeysUnknown, descend
from penstock.changes.incremental.leaves import Leaf, column_by_star, leaves_of, leaves_read
from penstock.changes.query import ChangeQuery
from penstock.sql import tokens as sql


@dataclass(frozen=True)
class AffectedKeys:
    """The parts of a model's text that give the affected keys."""

    keys: tuple[tuple[str, str], ...]
    """The text of each key in its SELECT, and its name there."""
    leaves: tuple[Leaf, ...]
    from_text: str
    where_text: str
    one_row_a_key: bool
    """Whether the GROUP BY alone makes the key unique."""
    aggregations: int
    """How many aggregations the SELECT has: its GROUP BY, and its DISTINCT."""

    def touched(self, read: int) -> str:
        """The SQL of the keys that changed rows of one table read can affect; table reads are still placeholders."""
        leaf = next(leaf for leaf in self.leaves if read in leaf.reads)
        from_text, where_text = self.from_text, self.where_text
        if leaf.join in ("LEFT", "ANTI"):
            assert leaf.number is not None
            start, end = clauses.sided_joins(from_text)[leaf.number]
            instead = "inner join" if leaf.join == "LEFT" else "left semi join"
            from_text = from_text[:start] + instead + from_text[end:]
            where_text = where_text if leaf.join == "ANTI" else ""
        return f"select {', '.join(text for text, _ in self.keys)} {from_text}\n{where_text}"


def find_affected_keys(
    query: ChangeQuery, tree: exp.Expr, unique_key: tuple[str, ...], where: str
) -> AffectedKeys | str:
    """The affected keys of a model, or why they cannot be found; an error if the model mixes keys."""
    try:
        keyed = descend(tree, unique_key)
        if keyed.select.args.get("pivots") or keyed.select.args.get("windows"):
            raise KeysUnknown("it has PIVOT or WINDOW")
        unique = makes_key_unique(ColumnScope.of(query, keyed), where)
        _check_clauses(keyed)
        leaves = leaves_of(query, keyed)
        _check_optional_sides(keyed, leaves)
        return _cut(query, keyed, leaves, one_row_a_key=unique and not keyed.multiplies)
    except KeysUnknown as why:
        return str(why)


def _check_clauses(keyed: KeyedSelect) -> None:
    select = keyed.select
    if select.args.get("from_") is None:
        raise KeysUnknown("it reads no table")
    parts = [*select.expressions, *(select.args.get("laterals") or []), *(join.args.get("on") for join in keyed.joins)]
    parts += [select.args.get(clause) for clause in ("where", "having", "qualify", "group")]
    if any(part is not None and part.find(exp.Query) is not None for part in parts):
        raise KeysUnknown("it has a subquery in an expression")


def _check_optional_sides(keyed: KeyedSelect, leaves: list[Leaf]) -> None:
    """KeysUnknown if a key or an inner join depends on rows that a LEFT JOIN may not find."""
    optional = {index for index, leaf in enumerate(leaves) if leaf.join == "LEFT"}
    if optional and keyed.select.args.get("laterals"):
        raise KeysUnknown("it has a LATERAL VIEW beside an outer join")
    for key in keyed.keys:
        if leaves_read(_value(keyed, key, leaves), leaves) & optional:
            raise KeysUnknown(f"the key {key} comes from the optional side of an outer join")
    for index, join in enumerate(keyed.joins, start=1):
        if leaves[index].join == "LEFT" or not optional & set(range(index)):
            continue
        if any(leaves_read(part, leaves) & optional for part in _conditions(join)):
            raise KeysUnknown("an inner join comes after an outer one and depends on it")


def _value(keyed: KeyedSelect, key: str, leaves: Sequence[Leaf]) -> exp.Expr:
    """The expression that a key is. KeysUnknown if it reads another column of the same SELECT by its alias."""
    item = keyed.item(key)
    if item is None:
        return column_by_star(keyed, key, leaves)
    bare = item.unalias()
    aliases = {other.alias.lower() for other in keyed.select.expressions if isinstance(other, exp.Alias)}
    if any(not column.table and column.name.lower() in aliases - {key} for column in bare.find_all(exp.Column)):
        raise KeysUnknown(f"the key {key} is made from another column of the SELECT")
    return bare


def _conditions(join: exp.Join) -> Iterator[exp.Expr]:
    if (on := join.args.get("on")) is not None:
        yield on
    for column in join.args.get("using") or []:
        yield exp.column(column.name)


def _cut(query: ChangeQuery, keyed: KeyedSelect, leaves: list[Leaf], *, one_row_a_key: bool) -> AffectedKeys:
    """Cut the clauses out of the text: the tree says what they are, the tokens say where they are."""
    text, found = query.text, sql.tokens(query.text)
    begin, end = clauses.select_at(found, keyed.depth)
    level = clauses.outside(found, begin, end)
    from_at = clauses.from_in(level)
    if from_at is None:
        raise KeysUnknown("its FROM cannot be found in the text")
    # Where each clause after the FROM begins, and where the SELECT ends.
    after = [index for index in range(from_at + 1, len(level)) if clauses.begins_at(level, index)]
    starts = [*(level[index].start for index in after), found[end - 1].end + 1]
    from_text = text[level[from_at].start : starts[0]]
    has_where = bool(after) and level[after[0]].text.upper() == "WHERE"
    where_text = text[starts[0] : starts[1]] if has_where else ""
    items = clauses.items(text, level[:from_at])
    sided = sum(bool(leaf.join) for leaf in leaves)
    if len(items) != len(keyed.select.expressions) or len(clauses.sided_joins(from_text)) != sided:
        raise KeysUnknown("its parts cannot be told apart in the text")
    keys = []
    for key in keyed.keys:
        item = keyed.item(key)
        by_star = column_by_star(keyed, key, leaves)
        keys.append((by_star.sql("spark") if item is None else items[keyed.index(item)], key))
    return AffectedKeys(tuple(keys), tuple(leaves), from_text, where_text, one_row_a_key, aggregations(keyed.select))
