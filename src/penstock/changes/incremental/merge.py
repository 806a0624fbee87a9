"""The change of a model's table, as one MERGE."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.changes.incremental.classify import Keys, Rows, Shape
from penstock.changes.incremental.weights import WEIGHT, Views, identity, net
from penstock.changes.query import ChangeModel
from penstock.changes.version_range import Segment, Span
from penstock.delta.schema_changes import Fitted
from penstock.delta.table import Column
from penstock.errors import PenstockError, StatementError
from penstock.sql.names import Name
from penstock.sql.quoting import literal, quote

ROW, NEW, OLD = "penstock_row", "penstock_new", "penstock_old"
_NOT_UNIQUE, _NULL, _THERE = "penstock-not-unique", "penstock-null", "penstock-there"
_SUFFIXES = {"tinyint": "Y", "smallint": "S", "int": "", "bigint": "L"}
_RAISED = re.compile(rf"({_NOT_UNIQUE}|{_NULL}|{_THERE}) (\{{.*?\}})(?: SQLSTATE|$)", re.DOTALL)


@dataclass(frozen=True)
class Change:
    """A window of a model: what it reads, and what has changed there."""

    model: ChangeModel
    shape: Shape
    spans: Mapping[Name, Span]
    """The sources that are followed."""
    segments: Mapping[Name, Sequence[Segment]]
    pinned: Mapping[Name, int]
    """The versions of the tables that are read as they are."""
    unique_key: tuple[str, ...]

    def new(self, views: Views) -> str:
        """The model at the end of the window."""
        return self.model.bind([self._at(views, place, "end") for place in range(len(self.model.places))])

    def source(self, views: Views, columns: Sequence[Fitted]) -> str:
        """A query with a row for each key that may change: its new row, or null where it goes."""
        if isinstance(self.shape, Rows):
            return self._by_weights(views, columns, self.shape)
        if isinstance(self.shape, Keys):
            return self._by_keys(views, columns, self.shape)
        return self._grouped(f"select {self._keyed(columns)}, 1 as penstock_n from ({self.new(views)}\n)", "false")

    @property
    def changing(self) -> list[int]:
        """The places where rows have changed."""
        return [index for index, place in enumerate(self.model.places) if self.segments.get(place.name)]

    def _by_weights(self, views: Views, columns: Sequence[Fitted], shape: Rows) -> str:
        rows = self._weighted(views, columns, shape)
        keyed = f"select {self._keyed(columns)}, {WEIGHT} as penstock_n from {rows}"
        old = f"any_value({ROW}) filter (where penstock_n < 0)"
        grouped = self._grouped(keyed, "sum(if(penstock_n < 0, 1, 0)) = 0", f", {old} as {OLD}")
        changed = f"{ROW} is null or {OLD} is null or {differs(columns, OLD, ROW)}"
        return f"select * except ({OLD}) from ({grouped}\n) where {changed}"

    def _weighted(self, views: Views, columns: Sequence[Fitted], shape: Rows) -> str:
        """The rows that the model makes of the changes, with their weights."""
        shown = ", ".join(_cast(column) for column in columns)
        if shape.carried is not None:
            name = self.model.places[0].name
            changes = views.net(self.spans[name], self.segments[name])
            text = ChangeModel(shape.carried, self.model.places).bind([changes])
            return views.of(f"select {shown}, {WEIGHT} from ({text}\n)")
        parts = [
            f"select {shown}, {sign} as {WEIGHT} from ({self._step(views, place, sign, shape.apart)}\n)"
            for place in self.changing
            for sign in (1, -1)
        ]
        rows = views.of("\nunion all\n".join(parts))
        if len(self.changing) == 1:
            return rows
        # What one place's change makes another's may take back.
        return views.of(net(rows, [(column.name, column.type) for column in columns]))

    def _by_keys(self, views: Views, columns: Sequence[Fitted], shape: Keys) -> str:
        core = shape.core
        keys = key_names(self.unique_key)
        names = [f"{quote(name)} as {key}" for (_, name), key in zip(core.keys, keys)]
        steps = [
            f"select {', '.join(names)} from ({self._bind(views, core.touched(place), place, None, frozenset())}\n)"
            for place in self.changing
        ]
        touched = views.kept("select distinct * from (" + "\nunion all\n".join(steps) + "\n)")
        by_key = " and ".join(
            f"penstock_model.{quote(column)} <=> penstock_touched.{key}" for column, key in zip(self.unique_key, keys)
        )
        again = (
            f"select {self._keyed(columns)}, 1 as penstock_n from (select * from ({self.new(views)}\n) as penstock_model "
            f"left semi join {touched} as penstock_touched on {by_key})"
        )
        types = {column.name.lower(): column.type for column in columns}
        gone = ", ".join(f"cast({key} as {types[column.lower()]})" for column, key in zip(self.unique_key, keys))
        return self._grouped(f"{again}\nunion all\nselect {gone}, null, 0 from {touched}", "false")

    def _step(self, views: Views, place: int, sign: int, apart: frozenset[tuple[int, int]]) -> str:
        return self._bind(views, self.model.text, place, sign, apart)

    def _bind(self, views: Views, text: str, place: int, sign: int | None, apart: frozenset[tuple[int, int]]) -> str:
        """A text with the changes at one place; places before it have moved on already, those after have yet to."""
        relations = []
        for other, read in enumerate(self.model.places):
            if other == place:
                relations.append(views.changed(self.spans[read.name], self.segments[read.name], sign))
            elif (place, other) in apart:
                relations.append(views.nothing(read.location, self._version(other, "end")))
            else:
                relations.append(self._at(views, other, "end" if other < place else "start"))
        return ChangeModel(text, self.model.places).bind(relations)

    def _at(self, views: Views, place: int, which: str) -> str:
        return views.at(self.model.places[place].location, self._version(place, which))

    def _version(self, place: int, which: str) -> int:
        name = self.model.places[place].name
        if name not in self.spans:
            return self.pinned[name]
        span = self.spans[name]
        return span.end if which == "end" or span.start is None else span.start

    def _keyed(self, columns: Sequence[Fitted]) -> str:
        types = {column.name.lower(): column for column in columns}
        keys = [
            f"{_cast(types[column.lower()], bare=True)} as {key}"
            for column, key in zip(self.unique_key, key_names(self.unique_key))
        ]
        row = ", ".join(_cast(column) for column in columns)
        return f"{', '.join(keys)}, struct({row}) as {ROW}"

    def _grouped(self, keyed: str, new: str, more: str = "") -> str:
        """One row a key; more than one, or one without a key, is an error in the same job."""
        keys = key_names(self.unique_key)
        shown = _example(self.unique_key, keys)
        null = " or ".join(f"{key} is null" for key in keys)
        there = "sum(greatest(penstock_n, 0))"
        return (
            f"select {', '.join(keys)}, case when {there} > 0 and ({null}) then raise_error(concat('{_NULL} ', {shown})) "
            f"when {there} > 1 then raise_error(concat('{_NOT_UNIQUE} ', {shown})) "
            f"else any_value({ROW}) filter (where penstock_n > 0) end as {ROW}, {new} as {NEW}{more} "
            f"from ({keyed}\n) group by {', '.join(keys)}"
        )


def extent(source: str, unique_key: Sequence[str]) -> str:
    """A query for how many keys may change, and the least and the greatest value of each of their columns."""
    return f"select count(*), {', '.join(f'min({key}), max({key})' for key in key_names(unique_key))} from {source}"


def within(found: Sequence[Any], unique_key: Sequence[str], columns: Sequence[Column]) -> list[str]:
    """Conditions that every row of the target that changes meets, each on one column, named first: the files that hold
    none are not read."""
    types = {column.name.lower(): column.type for column in columns}
    conditions = []
    for index, key in enumerate(unique_key):
        least, most = (_literal(value, types[key.lower()]) for value in found[2 * index : 2 * index + 2])
        if least is not None and most is not None:
            conditions.append(f"{quote(key)} between {least} and {most}")
    return conditions


def _literal(value: Any, type: str) -> str | None:
    """A value that Delta compares with a file's statistics; None for types whose text would say another."""
    if value is None or (type not in _SUFFIXES and type not in ("date", "string")):
        return None
    if type in _SUFFIXES:
        return f"{value}{_SUFFIXES[type]}"
    return f"date {literal(str(value))}" if type == "date" else literal(value)


def statement(
    target: str,
    source: str,
    unique_key: Sequence[str],
    columns: Sequence[Column],
    *,
    within: Sequence[str] = (),
    whole: bool = False,
) -> str:
    """Deletes, updates and inserts in one; rows whose values stay the same are not written."""
    sets = ", ".join(f"{quote(column.name)} = penstock_changes.{ROW}.{quote(column.name)}" for column in columns)
    names = ", ".join(quote(column.name) for column in columns)
    values = ", ".join(f"penstock_changes.{ROW}.{quote(column.name)}" for column in columns)
    # Delta computes the conditions of rows without a match as well.
    there = f"penstock_target.{quote(unique_key[0])} is not null"
    return (
        f"merge into {target} as penstock_target\nusing {source} as penstock_changes\non {on(unique_key, within)}\n"
        f"when matched and penstock_changes.{ROW} is null then delete\n"
        f"when matched and {refusing_new(unique_key, there, differs(columns))} then update set {sets}\n"
        f"when not matched and penstock_changes.{ROW} is not null then insert ({names}) values ({values})"
        + ("\nwhen not matched by source then delete" if whole else "")
    )


def key_names(unique_key: Sequence[str]) -> list[str]:
    """What the key's columns are called in a source."""
    return [quote(f"penstock_key_{index}") for index in range(len(unique_key))]


def on(unique_key: Sequence[str], within: Sequence[str] = ()) -> str:
    """Which row of the target is a key's."""
    same = [f"{quote(key)} = penstock_changes.{name}" for key, name in zip(unique_key, key_names(unique_key))]
    return " and ".join(f"penstock_target.{condition}" for condition in [*same, *within])


def differs(columns: Sequence[Column], old: str = "penstock_target", new: str = f"penstock_changes.{ROW}") -> str:
    """Whether any value of two rows is another."""
    return " or ".join(
        f"not ({identity(f'{old}.{quote(column.name)}', column.type)} <=> "
        f"{identity(f'{new}.{quote(column.name)}', column.type)})"
        for column in columns
    )


def refusing_new(unique_key: Sequence[str], there: str, otherwise: str) -> str:
    """A condition of a key's row in the target; that there is one is an error where the key is new."""
    shown = _example(unique_key, [f"penstock_changes.{name}" for name in key_names(unique_key)])
    return (
        f"case when penstock_changes.{NEW} and {there} then raise_error(concat('{_THERE} ', {shown})) "
        f"else {otherwise} end"
    )


def checked(query: str, unique_key: Sequence[str]) -> str:
    """The query, failing at a null key."""
    keys = [quote(key) for key in unique_key]
    null = " or ".join(f"{key} is null" for key in keys)
    raised = f"raise_error(concat('{_NULL} ', {_example(unique_key, keys)}))"
    return f"select * from (\n{query}\n) where case when {null} then {raised} else true end"


def twice(query: str, unique_key: Sequence[str]) -> str:
    """A query for one key that comes more than once."""
    keys = ", ".join(quote(key) for key in unique_key)
    return (
        f"select {_example(unique_key, [quote(key) for key in unique_key])} as example from (\n{query}\n) "
        f"group by {keys} having count(*) > 1 limit 1"
    )


def not_unique(unique_key: Sequence[str], example: str, where: str) -> PenstockError:
    return PenstockError(
        f"`unique_key` ({', '.join(unique_key)}) is not unique in the model's result: {example} comes more than once",
        where=where,
        fix="Nothing was changed. Add the columns that tell these rows apart, or make the model return one of them.",
    )


def explained(error: StatementError, unique_key: Sequence[str], where: str) -> PenstockError | None:
    """What our own checks have raised inside of Spark, in words."""
    found = _RAISED.search(str(error))
    if found is None:
        return None
    kind, example = found.groups()
    if kind == _NOT_UNIQUE:
        return not_unique(unique_key, example, where)
    if kind == _NULL:
        return PenstockError(
            f"`unique_key` ({', '.join(unique_key)}) is null in the model's result: {example}",
            where=where,
            fix="Nothing was changed. Filter such rows out, or give them a key.",
        )
    return PenstockError(
        f"A new row has the key {example}, which another row of the table has already: the key is not unique in the "
        "model's result, or someone else wrote that row",
        where=where,
        fix="Nothing was changed. Make the key unique, or run with --full-refresh.",
    )


def _cast(column: Fitted, *, bare: bool = False) -> str:
    text = column.value(quote(column.name))
    return text if bare else f"{text} as {quote(column.name)}"


def _example(unique_key: Sequence[str], values: Sequence[str]) -> str:
    pairs = ", ".join(f"{literal(key)}, {value}" for key, value in zip(unique_key, values))
    return f"to_json(named_struct({pairs}), map('ignoreNullFields', 'false'))"
