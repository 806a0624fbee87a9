"""Settings of a session that hold for one statement, and the settings that no statement may change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.sql.quoting import PINNED
from penstock.sql.statement import Statement

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTING = re.compile(r"set\s+`?([\w.]+)`?\s*=\s*(.*?)\s*;?\s*", re.IGNORECASE | re.DOTALL)


@contextmanager
def configured(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Settings that hold inside and are taken back right after: Delta would apply them to the next statement too."""
    settings = spark.conf
    before = {key: settings.get(key, None) for key in conf}
    for key, value in conf.items():
        settings.set(key, value)
    try:
        yield
    finally:
        for key, old in before.items():
            if old is None:
                settings.unset(key)
            else:
                settings.set(key, old)


def refuse_unpinning(statement: Statement) -> None:
    """Refuse a SET of the settings that our quoting relies on: the session goes on to run other models."""
    text = statement.text
    if statement.verb != "SET" or not any(key in text for key in PINNED):
        return
    found = _SETTING.fullmatch(text[text.lower().index("set") :])
    key, value = found.groups() if found else ("", "")
    if PINNED.get(key, value.lower()) != value.lower():
        raise PenstockError(
            f"{key} can't be set to {value}: names and texts that are quoted for SQL would be read as something else",
            fix="Leave it out. Use Jinja for variables, and write backslashes twice in a text.",
        )
