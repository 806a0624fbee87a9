"""dbt's own test suite speaks PostgreSQL: its set-up statements are said here as Spark has them."""

from __future__ import annotations

import re
from typing import Any

import pytest

_AS_SPARK_HAS_IT = (
    (re.compile(r"\btimestamp without time zone\b", re.IGNORECASE), "timestamp"),
    (re.compile(r"(?<=::)text\b|\btext(?=\s*[,)\n])", re.IGNORECASE), "string"),
    # Quoted names; Spark reads double quotes as a string.
    (re.compile(r'"(\w+)"'), r"`\1`"),
)


@pytest.fixture(scope="class")
def project(project: Any) -> Any:
    run_sql = project.run_sql

    def run_as_spark(sql: str, fetch: str | None = None) -> Any:
        for pattern, replacement in _AS_SPARK_HAS_IT:
            sql = pattern.sub(replacement, sql)
        return run_sql(sql, fetch) if sql.strip() else None

    def tables_in_schema() -> dict[str, str]:
        """By listing: a lake has no information schema."""
        with project.adapter.connection_named("__test"):
            relations = project.adapter.list_relations(project.database, project.test_schema)
        return {relation.identifier: str(relation.type) for relation in relations}

    project.run_sql = run_as_spark
    project.get_tables_in_schema = tables_in_schema
    return project
