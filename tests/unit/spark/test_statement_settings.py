"""Settings that hold for one statement, and settings that no statement may change."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import PenstockError
from penstock.spark.statement_settings import configured, refuse_unpinning
from penstock.sql.statement import read


class Conf(dict[str, str]):
    def set(self, key: str, value: str) -> None:
        self[key] = value

    def unset(self, key: str) -> None:
        del self[key]


def test_settings_are_taken_back_also_after_an_error() -> None:
    spark: Any = SimpleNamespace(conf=Conf(a="1"))
    inside: list[dict[str, str]] = []

    def work() -> None:
        with configured(spark, {"a": "2", "b": "3"}):
            inside.append(dict(spark.conf))
            raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        work()
    assert inside == [{"a": "2", "b": "3"}]
    assert spark.conf == {"a": "1"}


@pytest.mark.parametrize(
    "text",
    ["set spark.sql.parser.escapedStringLiterals = true", "SET `spark.sql.parser.escapedStringLiterals`=TRUE;"],
)
def test_what_our_quoting_relies_on_stays(text: str) -> None:
    with pytest.raises(PenstockError, match="escapedStringLiterals can't be set to"):
        refuse_unpinning(read(text))


@pytest.mark.parametrize(
    "text",
    [
        "set spark.sql.parser.escapedStringLiterals",
        "set spark.sql.parser.escapedStringLiterals = false",
        "set spark.sql.ansi.enabled = true",
        "select 'spark.sql.parser.escapedStringLiterals'",
    ],
)
def test_other_settings_are_allowed(text: str) -> None:
    refuse_unpinning(read(text))
