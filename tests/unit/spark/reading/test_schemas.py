"""Schemas of files: known columns that gain fields, and json's unknown fields."""

from __future__ import annotations

import pytest
from pyspark.sql.types import ArrayType, LongType, MapType, StringType, StructField, StructType

from penstock import PenstockError
from penstock.spark.reading import rescue
from penstock.spark.reading.inference import file_schema, with_new_fields


def struct(**fields) -> StructType:
    return StructType([StructField(name, type) for name, type in fields.items()])


@pytest.mark.parametrize(
    ("known", "found", "result"),
    [
        (LongType(), StringType(), "bigint"),
        (struct(a=LongType()), struct(A=StringType(), b=StringType()), "struct<a:bigint,b:string>"),
        (ArrayType(struct(a=LongType())), ArrayType(struct(b=LongType())), "array<struct<a:bigint,b:bigint>>"),
        (
            MapType(StringType(), struct(a=LongType())),
            MapType(StringType(), struct(b=LongType())),
            "map<string,struct<a:bigint,b:bigint>>",
        ),
        (struct(a=LongType()), LongType(), "struct<a:bigint>"),
    ],
)
def test_known_types_stay_and_gain_fields(known, found, result):
    assert with_new_fields(known, found).simpleString() == result


def test_a_file_schema_has_the_keys_of_sparks_json_in_order():
    schema = file_schema(struct(id=LongType()), ("day",))
    assert list(schema.struct) == ["fields", "type"]
    assert schema.names == ["id"]
    assert schema.folders == ("day",)


def test_unknown_fields_of_json_are_read_as_texts():
    known = [StructField("a", struct(x=LongType())), StructField("b", LongType())]
    found = struct(a=struct(x=LongType(), y=LongType()), b=LongType(), c=LongType())
    read = StructType(rescue.with_unknown(known, found))
    assert read.simpleString() == "struct<a:struct<x:bigint,y:string>,b:bigint,c:string>"


def test_unknown_fields_that_differ_in_case_are_an_error():
    with pytest.raises(PenstockError, match="the field ID and @data has the column id"):
        rescue.with_unknown([StructField("id", LongType())], struct(ID=LongType()))


def test_the_rescued_column_must_have_a_name_of_its_own():
    rescue.check_name("rescued", ["id"])
    with pytest.raises(PenstockError, match="the files have a column of that name"):
        rescue.check_name("Rescued", ["rescued"])
