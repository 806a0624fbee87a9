"""dbt's connections: a handle that starts nothing, and Spark behind the first statement that needs it."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.penstock.log import logger
from penstock.api import Lake
from penstock.errors import PenstockError, StatementError, from_spark
from penstock.secrets import scrub
from penstock.spark.runner import Result, Runner
from penstock.sql.statement import read
from penstock.sql.tokens import statements
from penstock.storage import given_location

if TYPE_CHECKING:
    import agate


@dataclass
class PenstockAdapterResponse(AdapterResponse):
    """What a statement did, in `run_results.json`."""

    rows_inserted: int | None = None
    rows_updated: int | None = None
    rows_deleted: int | None = None
    version: int | None = None
    files: int | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, result: Result | None) -> PenstockAdapterResponse:
        if result is None:
            return cls(_message="OK", code="OK")
        written = result.written
        if written is None:
            return cls(_message="OK", code="OK", query_id=result.query_id)
        return cls(
            _message=f"OK {written.rows:,} rows" if written.rows else "OK",
            code="OK",
            rows_affected=written.rows,
            query_id=result.query_id,
            rows_inserted=written.rows_inserted,
            rows_updated=written.rows_updated,
            rows_deleted=written.rows_deleted,
            version=written.version,
            files=written.files,
            bytes=written.bytes,
        )


class Cursor:
    """One text of one or more statements: run when executed, the rows of the last read when asked for."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._rows: list[Any] | None = None
        self.result: Result | None = None

    def execute(self, sql: str, bindings: Any = None) -> None:
        # dbt says `commit` before a hook outside of a transaction; here each statement is a commit of its own.
        *before, last = [given for given in statements(sql) if read(given).verb != "COMMIT"] or [None]
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
        """Run a query whose rows nobody reads: Spark would not, and a failing hook would pass."""
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
    """A thread's connection: nothing is started by having one."""

    def __init__(self, lake: Lake) -> None:
        self.lake = lake
        self.runner = Runner(lake, lake.settings)
        self.cancelled = False
        self._conf: dict[str, str] = {}

    def cursor(self) -> Cursor:
        return Cursor(self)

    def set_conf(self, conf: dict[str, str]) -> None:
        """Settings for the next statement alone."""
        self._conf = dict(conf)

    def take_conf(self) -> dict[str, str]:
        conf, self._conf = self._conf, {}
        return conf

    def cancel(self) -> None:
        """By dbt, when its run ends early."""
        self.cancelled = True
        self.runner.cancel()

    def close(self) -> None:
        self.runner.cancel()

    def rollback(self) -> None:
        """Each statement is a commit of its own."""


class PenstockConnectionManager(SQLConnectionManager):
    TYPE = "penstock"

    @property
    def project_root(self) -> str | None:
        known = getattr(self.profile, "project_root", None)
        if known is None:
            # `dbt debug` has the profile alone.
            from dbt.flags import get_flags

            known = getattr(get_flags(), "PROJECT_DIR", None)
        return None if known is None else os.path.abspath(known)

    @cached_property
    def lake(self) -> Lake:
        """The one lake that every thread's connection works on."""
        lake: Lake = self.profile.credentials.lake(self.project_root)  # type: ignore[attr-defined]
        return lake

    def location(self, given: str) -> str:
        """A location out of a config, relative to the project's folder."""
        return given_location(given, self.project_root)

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        if connection.state != ConnectionState.OPEN:
            connection.handle = Handle(self.lake)
            connection.state = ConnectionState.OPEN
        return connection

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
        try:
            with self._as_one():
                yield
        except StatementError as error:
            logger.debug(f"Spark: {error.__cause__}")
            raise DbtDatabaseError(self._located(error)) from error
        except PenstockError as error:
            raise DbtRuntimeError(str(error)) from error
        except Exception as error:  # dbt writes its traceback to the log
            scrub(error)
            raise

    @contextmanager
    def _as_one(self) -> Iterator[None]:
        """All Spark jobs of what dbt asks for are cancelled together; and once they were, nothing new begins."""
        connection = self.get_if_exists()
        handle = None if connection is None else connection.handle
        if not isinstance(handle, Handle):
            yield
            return
        with handle.runner.tagged(str(uuid.uuid4())):
            # Looked at inside: a cancel from now on finds the tag.
            if handle.cancelled:
                raise PenstockError("The run was cancelled")
            yield

    def _located(self, error: StatementError) -> str:
        """Spark counts lines from the statement's start: say where that is in the model."""
        line = error.line
        code = self._model_code()
        if line is None or error.sql is None or not code or code.strip() not in error.sql:
            return str(error)
        before = error.sql[: error.sql.index(code.strip())].count("\n") - _leading_newlines(code)
        return f"{error}\n  line {line - before} of the compiled model" if line > before else str(error)

    def _model_code(self) -> str | None:
        # With macros alone, before a project is read, there are no nodes.
        nodes = getattr(getattr(self, "manifest", None), "nodes", {})
        node = nodes.get(get_node_info().get("unique_id"))
        return getattr(node, "compiled_code", None)

    def cancel(self, connection: Connection) -> None:
        handle = connection.handle
        if isinstance(handle, Handle):
            handle.cancel()

    @classmethod
    def get_response(cls, cursor: Cursor) -> PenstockAdapterResponse:
        return PenstockAdapterResponse.of(cursor.result)

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        return str(type_code)

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[AdapterResponse, agate.Table]:
        from dbt_common.clients.agate_helper import empty_table

        sql = self._add_query_comment(sql)
        _, cursor = self.add_query(sql, auto_begin)
        with self.exception_handler(sql):
            if fetch:
                table = self.get_result_from_cursor(cursor, limit)
            else:
                cursor.drain()
                table = empty_table()
        return self.get_response(cursor), table

    # Delta's commits are per statement: there is no transaction to open.

    def add_begin_query(self) -> None:
        return None

    def add_commit_query(self) -> None:
        return None

    def begin(self) -> Connection:
        connection = self.get_thread_connection()
        connection.transaction_open = True
        return connection

    def commit(self) -> Connection:
        connection = self.get_thread_connection()
        connection.transaction_open = False
        return connection

    def clear_transaction(self) -> None:
        return None


def _plain_row(row: Any) -> tuple[Any, ...]:
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    """What agate can hold; anything nested as JSON."""
    if value is None or isinstance(value, (str, int, float, bool, Decimal, date, datetime)):
        return value
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if hasattr(value, "asDict"):
        value = value.asDict(recursive=True)
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, default=str, ensure_ascii=False)
    return str(value)


def _leading_newlines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")
