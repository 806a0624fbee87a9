"""Records that do not fit their columns: what of them is kept, as JSON, in the column that `rescued_data_column` names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.spark.schema import type_text
from penstock.sql import casts
from penstock.sql.casts import Type
from penstock.sql.quoting import literal, quote

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType

    from penstock.spark.backend import DataFrame

FORMATS = ("csv", "json")
RECORD = "_record"
"""The key of a whole record: one that can't be taken apart, or that has too many or too few fields."""
CORRUPT = "penstock_corrupt"
"""The column in which Spark's readers keep a record that did not fit."""
_TYPED = "penstock_typed"
_UTF8 = ("utf-8", "utf8")
# How Spark is to find the records, which is done before they are taken apart, and what becomes of bad ones.
_NOT_OF_A_RECORD = ("mode", "columnnameofcorruptrecord", "header", "multiline", "linesep", "encoding", "charset")


def check_format(column: str | None, format: str) -> None:
    """An error where the key would have no effect."""
    if column is not None and format not in FORMATS:
        raise PenstockError(
            f"`rescued_data_column` ({column}) is for csv and json, and these files are {format}: a value there has the "
            "type that its file says, and one that can't be read as the column's type is an error",
            fix="Leave `rescued_data_column` out.",
        )


def check_name(column: str, names: Sequence[str]) -> None:
    """An error where the files have a column of that name."""
    if column.lower() in (name.lower() for name in names):
        raise PenstockError(
            f"`rescued_data_column` is {column}, and the files have a column of that name",
            fix="Give it a name that the files do not have.",
        )


def check_selected(column: str | None, columns: Sequence[str], where: str) -> None:
    """An error where the SELECT leaves the column out: what is in it would be lost."""
    if column is not None and column.lower() not in (name.lower() for name in columns):
        raise PenstockError(
            f"`rescued_data_column` is {column}, and the model does not return it: values that do not fit their columns "
            "would be lost",
            where=where,
            fix=f"Select {quote(column)} from @data under that name.",
        )


def placed(inside: str, time: str, column: str) -> str:
    """A condition that a row lies in a window; a record whose time was rescued lies in none, and would be lost."""
    said = literal(f"A record has no {time} that can be read, so that no window would have it: ")
    raised = f"raise_error(concat({said}, {quote(column)}))"
    return f"case when {quote(time)} is null and {quote(column)} is not null then {raised} else {inside} end"


def check_encoding(column: str | None, format: str, options: Mapping[str, str]) -> None:
    """An error for json of which Spark can't give the records as they are written."""
    given = {key.lower(): value for key, value in options.items()}
    coded = given.get("encoding", given.get("charset", "utf-8"))
    if column is not None and format == "json" and coded.lower() not in _UTF8:
        raise PenstockError(
            f"`rescued_data_column` needs json in UTF-8, and `source_options` names the encoding {coded}",
            fix="Leave `rescued_data_column` out, or have the files written in UTF-8.",
        )


def with_unknown(fields: Sequence[StructField], found: StructType) -> list[StructField]:
    """What json is to be read as: the columns, and as texts the fields that they and their structs do not have.

    A text is taken from the file as it is written; all of its digits, too.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    known = {field.name.lower(): field.name for field in fields}
    others = {field.name: field.dataType for field in found.fields}
    unknown = [field for field in found.fields if field.name not in known.values()]
    if clash := [field.name for field in unknown if field.name.lower() in known]:
        raise PenstockError(
            f"The files have the field {clash[0]} and @data has the column {known[clash[0].lower()]}: json knows letter "
            "case, and a table does not",
            fix="Have the files written with one spelling, or name it so in `source_columns`.",
        )
    read = [StructField(field.name, _with_texts(field.dataType, others.get(field.name)), True) for field in fields]
    return StructType([*read, *(StructField(field.name, StringType(), True) for field in unknown)]).fields


def _with_texts(known: DataType, found: DataType | None) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(known, StructType) and isinstance(found, StructType):
        return StructType(with_unknown(known.fields, found))
    if isinstance(known, ArrayType) and isinstance(found, ArrayType):
        return ArrayType(_with_texts(known.elementType, found.elementType))
    if isinstance(known, MapType) and isinstance(found, StructType):
        value = known.valueType
        for field in found.fields:
            value = _with_texts(value, field.dataType)
        return MapType(known.keyType, value)
    return known


def from_records(
    frame: DataFrame,
    fields: Sequence[StructField],
    read: Sequence[StructField],
    beside: Sequence[str],
    column: str,
) -> DataFrame:
    """Records of json, as Spark has read them, with what did not fit their columns, and with the fields that have none.

    `read` is `with_unknown` of the fields, and `beside` are the columns of folders.
    """
    types = {field.name: casts.parse(type_text(field.dataType)) for field in read}
    known = {field.name: casts.parse(type_text(field.dataType)) for field in fields}
    frame = frame.selectExpr("*", f"from_json({CORRUPT}, 'map<string,string>') as {_TYPED}")
    misfits, pairs = [], []
    for name, type in types.items():
        if name not in known:
            if name not in beside:
                pairs += [literal(name), quote(name)]
            continue
        text = f"{_TYPED}[{literal(name)}]"
        # Of a nested value that did not fit, Spark keeps the part that did.
        misfits.append(text if type.is_nested else f"if({quote(name)} is null, {text}, null)")
        unknown = _has_unknown(quote(name), type, known[name])
        value = f"case when {unknown} then to_json({quote(name)}) end" if unknown else "null"
        pairs += [literal(name), f"coalesce({misfits[-1]}, {value})"]
    # Spark writes a number of a map anew, without the digits that a double has not: then the record is kept as well.
    some = f"filter(array({', '.join(misfits) or 'cast(null as string)'}), text -> text is not null)"
    inexact = f"cardinality({some}) = 0 or exists({some}, text -> instr({CORRUPT}, text) = 0)"
    # Of an array of records Spark does not tell which is the bad one: all that lack a value may be.
    lacks = (
        "true"
        if any(type.is_nested for type in known.values())
        else " or ".join(f"{quote(name)} is null" for name in known)
    )
    kept = f"case when {CORRUPT} is null then false when ltrim({CORRUPT}) like '[%' then {lacks or 'true'} else {inexact} end"
    pairs += [literal(RECORD), f"if({kept}, {CORRUPT}, null)"]
    found = f"map_filter(map({', '.join(pairs)}), (name, text) -> text is not null)"
    values = [f"{casts.convert(quote(name), types[name], type)} as {quote(name)}" for name, type in known.items()]
    rescued = f"if(cardinality({found}) > 0, to_json({found}), null) as {quote(column)}"
    return frame.selectExpr(*values, *map(quote, beside), rescued)


def _has_unknown(value: str, read: Type, known: Type, depth: int = 0) -> str:
    """A condition on a value that was read: that it has fields which its column has not; empty where it can't have."""
    item = f"penstock_item_{depth}"
    if read.name == "struct" and known.name == "struct":
        parts = []
        for name, type in read.fields:
            field, theirs = f"{value}.{quote(name)}", known.field(name)
            parts.append(f"{field} is not null" if theirs is None else _has_unknown(field, type, theirs, depth + 1))
        return " or ".join(f"({part})" for part in parts if part)
    if read.name == known.name and read.name in ("array", "map"):
        which = "element" if read.name == "array" else "value"
        ours, theirs = read.field(which), known.field(which)
        assert ours is not None
        assert theirs is not None
        condition = _has_unknown(item, ours, theirs, depth + 1)
        items = value if read.name == "array" else f"map_values({value})"
        return f"coalesce(exists({items}, {item} -> coalesce({condition}, false)), false)" if condition else ""
    return ""


def from_rows(
    frame: DataFrame, fields: Sequence[StructField], beside: Sequence[str], column: str, options: Mapping[str, str]
) -> DataFrame:
    """Rows of csv, as Spark has read them, with those values that did not fit; the whole row where it has too many or too
    few fields."""
    from pyspark.sql import functions as F

    texts = ", ".join(f"{quote(field.name)} string" for field in fields)
    taken = {key: value for key, value in options.items() if key.lower() not in _NOT_OF_A_RECORD}
    kept = {**taken, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT}
    # Every value fits a text, so that Spark finds fault with the number of fields alone.
    row = F.from_csv(F.col(CORRUPT), f"{texts}, {CORRUPT} string", kept)
    frame = frame.withColumn(_TYPED, F.when(F.col(CORRUPT).isNotNull(), row))
    pairs = [part for field in fields for part in (literal(field.name), _misfit(field.name))]
    pairs += [literal(RECORD), f"if({_TYPED}.{CORRUPT} is not null, {CORRUPT}, null)"]
    found = f"map_filter(map({', '.join(pairs)}), (name, text) -> text is not null)"
    whole = f"map({literal(RECORD)}, {CORRUPT})"
    rescued = f"to_json(if(cardinality({found}) > 0, {found}, {whole}))"
    values = [quote(name) for name in (*(field.name for field in fields), *beside)]
    return frame.selectExpr(*values, f"if({CORRUPT} is null, null, {rescued}) as {quote(column)}")


def _misfit(name: str) -> str:
    return f"if({quote(name)} is null, {_TYPED}.{quote(name)}, null)"
