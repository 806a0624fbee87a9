"""One JVM for all functional tests: dbt runs in this process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from tests.places import PLACES, Place, open_place
from tests.places.marks import MARKS, skip_elsewhere

pytest_plugins = ["dbt.tests.fixtures.project"]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--on", choices=list(PLACES), default="local", help="where Spark and the lakes of the tests are")


def pytest_configure(config: pytest.Config) -> None:
    for line in MARKS.values():
        config.addinivalue_line("markers", line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    name = config.getoption("--on")
    skip_elsewhere(items, name, on_disk=PLACES[name][1].on_disk)


# Tiny queries on two cores. The JVM is a user's: over a whole run its second compiler pays.
SESSION: dict[str, Any] = {
    "memory": "3g",
    "spark_config": {
        # A sixth of the time went into marking, again and again, a heap that is half full for good.
        "spark.driver.extraJavaOptions": "-XX:+UseParallelGC",
        "spark.sql.adaptive.enabled": "false",
        # A third of the time went into Java source that was generated, compiled and run once.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
    },
}

_CORES = len(os.sched_getaffinity(0))
USERS_SESSION: dict[str, Any] = {
    **SESSION,
    "spark_config": {
        **SESSION["spark_config"],
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.codegen.wholeStage": "true",
        "spark.sql.codegen.factoryMode": "FALLBACK",
        "spark.sql.shuffle.partitions": str(2 * _CORES),
        "spark.databricks.delta.snapshotPartitions": str(_CORES),
    },
}
"""As a user's Spark plans and runs queries. Tests marked `users_session` have it; all of them where PENSTOCK_SESSION is users."""


def session_of(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The session of a test: generated code and adaptive execution, for tiny queries, take twice the time."""
    users = request.node.get_closest_marker("users_session") or os.environ.get("PENSTOCK_SESSION") == "users"
    return USERS_SESSION if users else SESSION


SHORT_SESSION = {
    **SESSION,
    "spark_config": {
        **SESSION["spark_config"],
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    },
}
"""For a process that is killed, or ends, within seconds: too soon for the second compiler to be of use."""


def delta_rows(table: Path) -> list[dict[str, Any]]:
    """A table's rows, without a JVM, by the reader of delta-rs that knows deletion vectors."""
    read = QueryBuilder().register("t", DeltaTable(str(table))).execute("select * from t").read_all()
    return pa.table(read).to_pylist()


@pytest.fixture(scope="session")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """Where Spark and the lakes of this test run are, by `--on`."""
    with open_place(request.config.getoption("--on"), tmp_path_factory.getbasetemp()) as opened:
        yield opened


@pytest.fixture(scope="session", autouse=True)
def quiet_dbt() -> None:
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")


@pytest.fixture(scope="class", autouse=True)
def manifest_json(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each run of dbt writes its `manifest.json` twice, a third of the run's own time; few tests read it."""
    if request.node.get_closest_marker("reads_manifest"):
        yield
        return
    with patch("dbt.parser.manifest.write_manifest"), patch("dbt.task.runnable.write_manifest"):
        yield


@pytest.fixture(scope="class")
def dbt_profile_target(penstock_target: dict[str, object]) -> dict[str, object]:
    return penstock_target


@pytest.fixture(scope="class")
def penstock_target(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, place: Place
) -> dict[str, object]:
    """Each test class has a lake of its own."""
    return {
        "type": "penstock",
        "root": place.location(tmp_path_factory.mktemp("lake")),
        "threads": 2,
        **place.connection(session_of(request)),
    }
