"""dbt's connections, one for each thread; they open without starting anything."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from dbt.adapters.contracts.connection import AdapterResponse, Connection, ConnectionState
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.events.contextvars import get_node_info
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError

from dbt.adapters.penstock.handle import Cursor, Handle
from dbt.adapters.penstock.log import logger
from dbt.adapters.penstock.response import PenstockAdapterResponse
from penstock.api import Lake
from penstock.errors import PenstockError, StatementError
from penstock.secrets import scrub
from penstock.storage import given_location

if TYPE_CHECKING:
    import agate


class PenstockConnectionManager(SQLConnectionManager):
    TYPE = "penstock"
    manifest: Any = None
    """dbt's manifest; None until a project is parsed."""
    refuses: ClassVar[str] = ""
    """Why no statement may run in this process; `penstock plan` sets it, because macros may run queries at compile time."""

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
        """The lake, shared by the connections of all threads."""
        lake: Lake = self.profile.credentials.lake(self.project_root)  # type: ignore[attr-defined]
        return lake

    def location(self, given: str) -> str:
        """A location from a config; a relative path starts at the project's folder."""
        return given_location(given, self.project_root, options=self.lake.storage_options)

    def open(self, connection: Connection) -> Connection:  # type: ignore[override]
        if connection.state != ConnectionState.OPEN:
            connection.handle = Handle(self.lake, self.refuses)
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
        """Spark jobs that start inside are cancelled together. After a cancel, nothing new starts."""
        connection = self.get_if_exists()
        handle = None if connection is None else connection.handle
        if not isinstance(handle, Handle):
            yield
            return
        with handle.runner.tagged(str(uuid.uuid4())):
            # Checked inside, so that a cancel from now on finds the tag.
            if handle.cancelled:
                raise PenstockError("The run was cancelled")
            yield

    def _located(self, error: StatementError) -> str:
        """The error with the line in the compiled model: Spark counts lines from the start of the statement."""
        line = error.line
        code = self._model_code()
        if line is None or error.sql is None or not code or code.strip() not in error.sql:
            return str(error)
        before = error.sql[: error.sql.index(code.strip())].count("\n") - _leading_newlines(code)
        return f"{error}\n  line {line - before} of the compiled model" if line > before else str(error)

    def _model_code(self) -> str | None:
        # Before a project is read there are no nodes.
        nodes = getattr(self.manifest, "nodes", {})
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

    # Each statement is one Delta commit, so there are no transactions.

    def add_begin_query(self) -> None:
        return None

    def add_commit_query(self) -> None:
        return None

    def begin(self) -> None:
        self.get_thread_connection().transaction_open = True

    def commit(self) -> None:
        self.get_thread_connection().transaction_open = False

    def clear_transaction(self) -> None:
        return None


def _leading_newlines(text: str) -> int:
    return text[: len(text) - len(text.lstrip())].count("\n")
