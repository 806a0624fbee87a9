"""A query's columns and a table's."""

import pytest

from penstock.delta.schema_changes import Difference
from penstock.delta.table import Column
from penstock.errors import PenstockError


def test_letter_case_and_the_length_of_texts_are_no_difference():
    query_columns = [Column("ID", "int"), Column("name", "string"), Column("tags", "array<string>")]
    table_columns = [Column("id", "int"), Column("Name", "varchar(20)"), Column("tags", "array<char(3)>")]
    assert not Difference(query_columns, table_columns)


def test_each_difference_is_named():
    difference = Difference(
        [Column("id", "bigint"), Column("added", "date")], [Column("id", "int"), Column("old", "string")]
    )
    assert difference.new == [Column("added", "date")]
    assert difference.gone == ["old"]
    assert difference.retyped == {"id": "bigint"}
    with pytest.raises(PenstockError, match=r"new: added; missing: old; of another type: id.*gold\.t.*full-refresh"):
        difference.refuse("gold.t")


def test_equal_columns_are_not_refused():
    Difference([Column("id", "int")], [Column("id", "int")]).refuse("gold.t")
