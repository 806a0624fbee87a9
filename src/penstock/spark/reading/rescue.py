"""The rescued column: values that do not fit their columns, and fields without a column, as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from penstock.errors import PenstockError
from penstock.spark.query_columns import type_text
from penstock.sql import casts
from penstock.sql.casts import Type
from penstock.sql.quoting import literal, quote

RECORD = "_record"
"""The key of a whole record: one that can't be parsed, or that has too many or too few fields."""
CORRUPT = "penstock_corrupt"
"""The column in which Spark's readers keep a record that did not fit."""
_PARSED = "penstock_parsed"
# How Spark finds the records in a file, and what it does with bad ones. `from_csv` gets one record at a time.
_NOT_OF_A_RECORD = ("mode", "columnnameofcorruptrecord", "header", "multiline", "linesep", "encoding", "charset")


def check_name(column: str, names: Sequence[str]) -> None:
    """Raise if the files have a column with the name of the rescued column."""
    if column.lower() in (name.lower() for name in names):
        raise PenstockError(
            f"`rescued_data_column` is {column}, and the files have a column of that name",
            fix="Give it a name that the files do not have.",
        )


def with_unknown(fields: Sequence[StructField], found: StructType) -> list[StructField]:
    """The fields to read json with: the known fields, and every unknown field as a text, also inside of structs.

    A text is taken from the file as it is written, with all of its digits.
    """
    known = {field.name.lower(): field.name for field in fields}
    others = {field.name: field.dataType for field in found.fields}
    unknown = [field for field in found.fields if field.name not in known.values()]
    if clash := [field.name for field in unknown if field.name.lower() in known]:
        raise PenstockError(
            f"The files have the field {clash[0]} and @data has the column {known[clash[0].lower()]}: json distinguishes "
            "letter case, a table does not",
            fix="Write the files with one spelling, or declare this spelling in `source_columns`.",
        )
    read = [StructField(field.name, _with_texts(field.dataType, others.get(field.name)), True) for field in fields]
    return StructType([*read, *(StructField(field.name, StringType(), True) for field in unknown)]).fields


def _with_texts(known: DataType, found: DataType | None) -> DataType:
    """A known type with the unknown fields of its structs as texts."""
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
    folders: Sequence[str],
    column: str,
) -> DataFrame:
    """Records of json with the rescued column: values that do not fit their columns, and fields without a column.

    `frame` was read with the fields `read` (`with_unknown` of `fields`), the columns of folders, and `CORRUPT`.
    """
    types = {field.name: casts.parse(type_text(field.dataType)) for field in read}
    known = {field.name: casts.parse(type_text(field.dataType)) for field in fields}
    frame = frame.selectExpr("*", f"from_json({CORRUPT}, 'map<string,string>') as {_PARSED}")
    misfits, pairs = [], []
    for name, type in types.items():
        if name not in known:
            if name not in folders:
                pairs += [literal(name), quote(name)]
            continue
        text = f"{_PARSED}[{literal(name)}]"
        # If a part of a nested value does not fit, Spark keeps the other parts.
        misfits.append(text if type.is_nested else f"if({quote(name)} is null, {text}, null)")
        unknown = _has_unknown(quote(name), type, known[name])
        value = f"case when {unknown} then to_json({quote(name)}) end" if unknown else "null"
        pairs += [literal(name), f"coalesce({misfits[-1]}, {value})"]
    pairs += [literal(RECORD), f"if({_keeps_record(misfits, known)}, {CORRUPT}, null)"]
    found = f"map_filter(map({', '.join(pairs)}), (name, text) -> text is not null)"
    values = [f"{casts.convert(quote(name), types[name], type)} as {quote(name)}" for name, type in known.items()]
    rescued = f"if(cardinality({found}) > 0, to_json({found}), null) as {quote(column)}"
    return frame.selectExpr(*values, *map(quote, folders), rescued)


def _keeps_record(misfits: Sequence[str], known: Mapping[str, Type]) -> str:
    """A condition on a row: its values alone do not tell what was in the record, so the whole record is kept."""
    # Spark writes the numbers of a map again, without the digits that a double cannot hold.
    some = f"filter(array({', '.join(misfits) or 'cast(null as string)'}), text -> text is not null)"
    inexact = f"cardinality({some}) = 0 or exists({some}, text -> instr({CORRUPT}, text) = 0)"
    # In an array of records Spark does not tell which one is bad: each one that lacks a value may be.
    lacks = (
        "true"
        if any(type.is_nested for type in known.values())
        else " or ".join(f"{quote(name)} is null" for name in known)
    )
    return f"case when {CORRUPT} is null then false when ltrim({CORRUPT}) like '[%' then {lacks or 'true'} else {inexact} end"


def _has_unknown(value: str, read: Type, known: Type, depth: int = 0) -> str:
    """A condition on a value: it has a field that its column does not have; empty if it cannot have one."""
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
    frame: DataFrame, fields: Sequence[StructField], folders: Sequence[str], column: str, options: Mapping[str, str]
) -> DataFrame:
    """Rows of csv with the rescued column: values that do not fit, or the whole row if it has too many or too few fields.

    `frame` was read with these fields, the columns of folders, and `CORRUPT`.
    """
    texts = ", ".join(f"{quote(field.name)} string" for field in fields)
    of_record = {key: value for key, value in options.items() if key.lower() not in _NOT_OF_A_RECORD}
    # Every value fits a text, so Spark rejects a row here only for its number of fields.
    row = F.from_csv(
        F.col(CORRUPT),
        f"{texts}, {CORRUPT} string",
        {**of_record, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT},
    )
    frame = frame.withColumn(_PARSED, F.when(F.col(CORRUPT).isNotNull(), row))
    pairs = [part for field in fields for part in (literal(field.name), _misfit(field.name))]
    pairs += [literal(RECORD), f"if({_PARSED}.{CORRUPT} is not null, {CORRUPT}, null)"]
    found = f"map_filter(map({', '.join(pairs)}), (name, text) -> text is not null)"
    whole = f"map({literal(RECORD)}, {CORRUPT})"
    rescued = f"to_json(if(cardinality({found}) > 0, {found}, {whole}))"
    values = [quote(name) for name in (*(field.name for field in fields), *folders)]
    return frame.selectExpr(*values, f"if({CORRUPT} is null, null, {rescued}) as {quote(column)}")


def _misfit(name: str) -> str:
    return f"if({quote(name)} is null, {_PARSED}.{quote(name)}, null)"
