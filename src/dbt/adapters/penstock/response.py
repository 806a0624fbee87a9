"""The result of a statement or a model, as `run_results.json` has it."""

from __future__ import annotations

from dataclasses import dataclass

from dbt.adapters.contracts.connection import AdapterResponse

from penstock.spark.backend import Result
from penstock.wording import count


@dataclass
class PenstockAdapterResponse(AdapterResponse):
    """The counts of a statement or a model."""

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
            _message=f"OK {count(written.rows, 'row')}" if written.rows else "OK",
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
