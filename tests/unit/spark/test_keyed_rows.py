"""The extent of keys as conditions on the table: no Spark."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from penstock.delta.table import Column
from penstock.spark.keyed_rows import KeyedRows


@pytest.mark.parametrize(
    ("type", "least", "most", "expected"),
    [
        ("bigint", 1, 9, ["`k` between 1L and 9L"]),
        ("int", -3, 9, ["`k` between -3 and 9"]),
        ("date", date(2026, 1, 1), date(2026, 2, 1), ["`k` between date '2026-01-01' and date '2026-02-01'"]),
        ("string", "a'b", "c", ["`k` between 'a\\'b' and 'c'"]),
        ("timestamp", datetime(2026, 1, 1), datetime(2026, 1, 2), []),
        ("bigint", None, None, []),
    ],
)  # fmt: skip
def test_only_what_statistics_tell_narrows_the_target(type: str, least: object, most: object, expected: list) -> None:
    assert KeyedRows("r", ("k",), [Column("K", type)]).within([least, most]) == expected


def test_each_key_narrows_on_its_own() -> None:
    columns = [Column("a", "int"), Column("b", "double"), Column("c", "string")]
    assert KeyedRows("r", ("a", "b", "c"), columns).within([1, 2, 0.5, 1.5, "x", "y"]) == [
        "`a` between 1 and 2",
        "`c` between 'x' and 'y'",
    ]
