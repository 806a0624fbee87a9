"""A thread's connection and its cursors: nothing starts until a statement needs Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from penstock.api import Lake
from penstock.errors import PenstockError, from_spark
from penstock.spark.backend import Result
from penstock.spark.runner import Runner
from penstock.sql.statement import read
from penstock.sql.tokens import statements


class Cursor:
    """Runs a text of one or more statements. The rows of the last one are read when they are asked for."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._rows: list[Any] | None = None
        self.result: Result | None = None

    def execute(self, sql: str, bindings: Any = None) -> None:
        if self._handle.refuses:
            raise PenstockError(f"No statement runs here: {self._handle.refuses}")
        # dbt sends `commit` before a hook outside of a transaction; here each statement commits by itself.
        given = [statement for statement in statements(sql) if read(statement).verb != "COMMIT"]
        before, last = given[:-1], given[-1] if given else None
        for statement in before:
            self.result = self._handle.runner.run(statement)
            self.drain()
        if last is not None:
            self.result = self._handle.runner.run(last, self._handle.take_conf())

    @property
    def description(self) -> Sequence[tuple[str, str]] | None:
        if self.result is None or self.result.frame is None:
            return None
        return [(field.name, field.dataType.simpleString()) for field in self.result.frame.schema.fields]

    def drain(self) -> None:
        """Run a query whose rows nobody reads. Without this, Spark would not run it, and a failing hook would pass."""
        if self.result is not None and self.result.frame is not None and self.result.statement.is_query:
            frame = self.result.frame
            self._spark(lambda: frame.write.format("noop").mode("overwrite").save())

    def fetchmany(self, count: int) -> list[Any]:
        if self.result is None or self.result.frame is None:
            return []
        frame = self.result.frame
        return [_plain_row(row) for row in self._spark(lambda: frame.limit(count).collect())]

    def fetchall(self) -> list[Any]:
        if self.result is None or self.result.frame is None:
            return []
        if self._rows is None:
            frame = self.result.frame
            self._rows = [_plain_row(row) for row in self._spark(frame.collect)]
        return self._rows

    def fetchone(self) -> Any:
        rows = self.fetchall()
        return rows[0] if rows else None

    def _spark(self, call: Any) -> Any:
        assert self.result is not None
        runner = self._handle.runner
        with runner.tagged(self.result.query_id):
            try:
                return call()
            except Exception as error:
                raise from_spark(error, self.result.statement.text) from error


class Handle:
    """A thread's connection. It starts nothing."""

    def __init__(self, lake: Lake, refuses: str = "") -> None:
        """`refuses` says why this connection runs no statement; empty if it does."""
        self.lake = lake
        self.refuses = refuses
        self.runner = Runner(lake, lake.settings)
        self.cancelled = False
        self._conf: dict[str, str] = {}

    def cursor(self) -> Cursor:
        return Cursor(self)

    def set_conf(self, conf: dict[str, str]) -> None:
        """Spark settings for the next statement only."""
        self._conf = dict(conf)

    def take_conf(self) -> dict[str, str]:
        conf, self._conf = self._conf, {}
        return conf

    def cancel(self) -> None:
        """Cancel what runs on this connection. dbt calls it when a run ends early."""
        self.cancelled = True
        self.runner.cancel()

    def close(self) -> None:
        self.runner.cancel()

    def rollback(self) -> None:
        """Nothing to do: each statement commits by itself."""


def _plain_row(row: Any) -> tuple[Any, ...]:
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    """A value that agate can hold; a nested value becomes JSON."""
    if value is None or isinstance(value, (str, int, float, bool, Decimal, date, datetime)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if hasattr(value, "asDict"):
        value = value.asDict(recursive=True)
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)
