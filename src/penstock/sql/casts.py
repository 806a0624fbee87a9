"""Conversions between the types of a query and a table: what a value may lose, and the SQL that converts it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from penstock.errors import PenstockError
from penstock.sql.quoting import field_name, quote

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(-?\d+))?\))?")
_SIZED_TEXT = re.compile(r"(?:var)?char\(\d+\)")
_SYNONYMS = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float",
    "timestamp_ltz": "timestamp",
}  # fmt: skip
# The number of decimal digits that a value may have, and the number that always fits.
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
_HOLDS = {"tinyint": 2, "smallint": 4, "int": 9, "bigint": 18, "float": 6, "double": 15}
_WIDER = {
    "tinyint": {"smallint", "int", "bigint", "float", "double"},
    "smallint": {"int", "bigint", "float", "double"},
    "int": {"bigint", "double"},
    "float": {"double"},
    "date": {"timestamp", "timestamp_ntz"},
    "string": {"binary"},
}
_AS_TEXT = {*_DIGITS, "float", "double", "boolean", "date", "timestamp_ntz"}
_NESTED = ("struct", "array", "map")
_TIMES = ("date", "timestamp", "timestamp_ntz")
_NUMBERS = (*_DIGITS, "float", "double", "decimal")


class Verdict(Enum):
    """The effect on values of one type when they are stored as another type."""

    LOSSLESS = "every value is kept"
    CHECKED = "a value that does not fit fails the run"
    LOSSY = "values may be changed without an error"
    REFUSED = "Spark can't do it"


@dataclass(frozen=True)
class Type:
    """A parsed type of Spark's SQL."""

    name: str
    """`struct`, `array` or `map`; or the whole text of a plain type such as `decimal(10,2)`."""
    fields: tuple[tuple[str, Type], ...] = ()
    """The fields of a struct, `element` of an array, or `key` and `value` of a map."""

    def __str__(self) -> str:
        if self.name == "struct":
            return f"struct<{','.join(f'{field_name(name)}:{type}' for name, type in self.fields)}>"
        return f"{self.name}<{','.join(str(type) for _, type in self.fields)}>" if self.fields else self.name

    @property
    def is_nested(self) -> bool:
        return self.name in _NESTED

    @property
    def plain(self) -> str:
        """The type in its usual spelling. VARCHAR and CHAR become STRING, as in a query's result."""
        return "string" if _SIZED_TEXT.fullmatch(self.name) else _SYNONYMS.get(self.name, self.name)

    def field(self, name: str) -> Type | None:
        return next((type for known, type in self.fields if known.lower() == name.lower()), None)


@dataclass(frozen=True)
class Change:
    """A column or field whose type in a query differs from its type in a table."""

    path: tuple[str, ...]
    """The column, then the fields below it, with Delta's names `element`, `key` and `value`."""
    query_type: Type | None
    """None for a field that the query does not have."""
    table_type: Type | None
    """None for a field that the table does not have."""

    def __str__(self) -> str:
        if self.query_type is None:
            return f"{self.name} ({self.table_type}) is not in the model"
        if self.table_type is None:
            return f"{self.name} ({self.query_type}) is not in the table"
        return f"{self.name} is {self.query_type} in the model and {self.table_type} in the table"

    @property
    def name(self) -> str:
        return ".".join(field_name(part) for part in self.path)

    @property
    def sql(self) -> str:
        """The path as ALTER TABLE spells it."""
        return ".".join(quote(part) for part in self.path)

    @property
    def verdict(self) -> Verdict:
        """The effect on the query's values when they are stored in the table."""
        if self.query_type is None:
            return Verdict.LOSSLESS
        return Verdict.LOSSY if self.table_type is None else verdict(self.query_type, self.table_type)


def parse(text: str) -> Type:
    """The parsed form of a type's text.

    >>> str(parse("struct<`a-b`:array<decimal(10,2)>,c:map<string,int>>"))
    'struct<`a-b`:array<decimal(10,2)>,c:map<string,int>>'
    """
    reader = _Reader(text)
    found = reader.type()
    if reader.at < len(text):
        raise PenstockError(f"{text!r} is not a type of Spark", fix="Report this as a bug, with the column's type.")
    return found


class _Reader:
    """Reads a type's text from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def type(self) -> Type:
        name = self._until("<>,(").strip().lower()
        if self._next() == "(":
            end = self.text.index(")", self.at) + 1
            name, self.at = name + self.text[self.at : end].replace(" ", "").lower(), end
        if name not in _NESTED or self._next() != "<":
            return Type(name)
        self.at += 1
        fields: list[tuple[str, Type]] = []
        while self._next() != ">":
            known = {"array": ("element",), "map": ("key", "value")}.get(name)
            field = known[len(fields)] if known else self._field()
            fields.append((field, self.type()))
            self._skip()
            if self._next() == ",":
                self.at += 1
        self.at += 1
        return Type(name, tuple(fields))

    def _field(self) -> str:
        self._skip()
        if self._next() != "`":
            name = self._until(": ")
        else:
            found = re.compile(r"`((?:[^`]|``)*)`").match(self.text, self.at)
            assert found is not None
            name, self.at = found.group(1).replace("``", "`"), found.end()
        self._skip()
        self.at += self._next() == ":"
        return name

    def _skip(self) -> None:
        while self._next() == " ":
            self.at += 1

    def _next(self) -> str:
        return self.text[self.at : self.at + 1]

    def _until(self, ends: str) -> str:
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in ends:
            self.at += 1
        return self.text[start : self.at]


def changes(query_type: Type, table_type: Type, *path: str) -> Iterator[Change]:
    """The fields in which two types differ. Letter case, the order of fields and the length of texts do not matter.

    >>> [str(change) for change in changes(parse("struct<a:double,b:int>"), parse("struct<a:int>"), "x")]
    ['x.a is double in the model and int in the table', 'x.b (int) is not in the table']
    """
    if not (query_type.is_nested and query_type.name == table_type.name):
        if query_type.plain != table_type.plain:
            yield Change(path, query_type, table_type)
        return
    for name, type in table_type.fields:
        ours = query_type.field(name)
        if ours is None:
            yield Change((*path, name), None, type)
        else:
            yield from changes(ours, type, *path, name)
    for name, type in query_type.fields:
        if table_type.field(name) is None:
            yield Change((*path, name), type, None)


def verdict(query_type: Type, table_type: Type) -> Verdict:
    """The effect on a query's values in a table's column. LOSSY if it is not certain that the values are kept.

    >>> verdict(parse("int"), parse("bigint")).name, verdict(parse("double"), parse("int")).name
    ('LOSSLESS', 'LOSSY')
    """
    if query_type.is_nested and query_type.name == table_type.name:
        found = [change.verdict for change in changes(query_type, table_type)]
        return max(found, key=list(Verdict).index, default=Verdict.LOSSLESS)
    source, target = query_type.plain, table_type.plain
    if source == target or source == "void" or target in _WIDER.get(source, ()):
        return Verdict.LOSSLESS
    if _is_refused(query_type, table_type):
        return Verdict.REFUSED
    exact, wanted = _exact(source), _exact(target)
    if target in _DIGITS:
        wanted = _HOLDS[target], 0
    if target == "string":
        return Verdict.LOSSLESS if source in _AS_TEXT or exact else Verdict.LOSSY
    if source in _DIGITS and target in _DIGITS:
        return Verdict.CHECKED
    if exact is not None and wanted is not None:
        (before, after), (kept_before, kept_after) = exact, wanted
        if after > kept_after:
            return Verdict.LOSSY
        return Verdict.LOSSLESS if before <= kept_before else Verdict.CHECKED
    if exact is not None and target in ("float", "double"):
        return Verdict.LOSSLESS if sum(exact) <= _HOLDS[target] else Verdict.LOSSY
    return Verdict.LOSSY


def _exact(name: str) -> tuple[int, int] | None:
    """The digits before and after the decimal point of an exact number type; None for other types."""
    if name in _DIGITS:
        return _DIGITS[name], 0
    found = _DECIMAL.fullmatch(name)
    if found is None:
        return None
    precision, scale = int(found.group(1) or 10), int(found.group(2) or 0)
    return precision - scale, scale


def _is_refused(query_type: Type, table_type: Type) -> bool:
    source, target = (_family(type) for type in (query_type, table_type))
    if source in _NESTED or target in _NESTED:
        return target not in ("string", "variant") and source != "variant"
    pair = {source, target}
    if "binary" in pair:
        return "string" not in pair
    if "boolean" in pair and not pair.isdisjoint(_TIMES):
        return True
    return pair in ({"number", "date"}, {"number", "timestamp_ntz"})


def _family(type: Type) -> str:
    """`number` for every number type; else the type's name without its parameters."""
    name = type.plain.split("(")[0].split(" ")[0]
    return "number" if name in _NUMBERS or _DECIMAL.fullmatch(type.plain) else name


def effect(query_type: Type, table_type: Type) -> str:
    """The effect on a query's values in a table's column, in words for a warning."""
    found = verdict(query_type, table_type)
    if found is Verdict.CHECKED:
        return "a value that is too large fails the run"
    source, target = query_type.plain, table_type.plain
    whole = (_exact(target) or (0, 1))[1] == 0
    if _family(query_type) == "number" and _family(table_type) == "number":
        if whole and source not in _DIGITS:
            return "fractions are cut off" if target in _DIGITS else "fractions are rounded"
        return "digits are rounded off" if source not in ("tinyint", "smallint") else "values are cast"
    if target == "date" and source.startswith("timestamp"):
        return "the time of day is cut off"
    if {source, target} <= {"timestamp", "timestamp_ntz", "string"} and "timestamp" in (source, target):
        return "values are converted with the session's time zone, and a text that is not a time fails the run"
    if source == "string":
        return "values are parsed from their text, and a text that can't be parsed fails the run"
    return "values are cast"


def merged(table_type: Type, query_type: Type) -> Type:
    """The table's type, followed by the fields that only the query has.

    >>> str(merged(parse("struct<a:int>"), parse("struct<b:date,a:double>")))
    'struct<a:int,b:date>'
    """
    if not (query_type.is_nested and query_type.name == table_type.name):
        return table_type
    kept = [(name, merged(type, query_type.field(name) or type)) for name, type in table_type.fields]
    added = [(name, type) for name, type in query_type.fields if table_type.field(name) is None]
    return Type(table_type.name, (*kept, *added))


def convert(value: str, query_type: Type, table_type: Type, *, cast_plain: bool = True, depth: int = 0) -> str:
    """The SQL that converts a value from one type to another. Fields match by name; Spark's cast matches by position.

    With `cast_plain=False`, only nested values are converted, for a statement that casts plain values itself.

    >>> convert("x", parse("struct<b:int,a:int>"), parse("struct<a:bigint,b:int>"))
    'if(x is null, null, struct(cast(x.`a` as bigint) as `a`, x.`b` as `b`))'
    """
    if str(query_type) == str(table_type):
        return value
    if not (query_type.is_nested and query_type.name == table_type.name):
        return value if query_type.plain == table_type.plain or not cast_plain else f"cast({value} as {table_type})"

    def inner(name: str, item: str) -> str:
        ours, theirs = query_type.field(name), table_type.field(name)
        assert ours is not None
        assert theirs is not None
        return convert(item, ours, theirs, cast_plain=cast_plain, depth=depth + 1)

    if table_type.name == "struct":
        items = [
            f"{inner(name, f'{value}.{quote(known)}')} as {quote(name)}"
            if (known := _name_in_query(query_type, name)) is not None
            else f"cast(null as {type}) as {quote(name)}"
            for name, type in table_type.fields
        ]
        return f"if({value} is null, null, struct({', '.join(items)}))"
    item, key = f"penstock_item_{depth}", f"penstock_key_{depth}"
    if table_type.name == "array":
        changed = inner("element", item)
        return value if changed == item else f"transform({value}, {item} -> {changed})"
    if (changed := inner("value", item)) != item:
        value = f"transform_values({value}, ({key}, {item}) -> {changed})"
    if (changed := inner("key", key)) != key:
        value = f"transform_keys({value}, ({key}, {item}) -> {changed})"
    return value


def _name_in_query(query_type: Type, name: str) -> str | None:
    """A field's name as the query spells it; None if the query does not have the field."""
    return next((known for known, _ in query_type.fields if known.lower() == name.lower()), None)
