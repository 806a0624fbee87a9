"""One JVM for all functional tests: dbt runs in this process."""

from __future__ import annotations

import os

import pytest

pytest_plugins = ["dbt.tests.fixtures.project"]

# Small and steady on two cores that others use too.
SESSION = {
    "memory": "2g",
    "spark_config": {
        "spark.sql.shuffle.partitions": "1",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.adaptive.enabled": "false",
        # Thousands of tiny statements: the optimizing compiler would cost more than it could ever give back.
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    },
}


@pytest.fixture(scope="session", autouse=True)
def quiet_dbt() -> None:
    os.environ.setdefault("DBT_SEND_ANONYMOUS_USAGE_STATS", "false")


@pytest.fixture(scope="class")
def dbt_profile_target(penstock_target: dict[str, object]) -> dict[str, object]:
    return penstock_target


@pytest.fixture(scope="class")
def penstock_target(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    """Each test class has a lake of its own."""
    return {
        "type": "penstock",
        "root": str(tmp_path_factory.mktemp("lake")),
        "threads": 2,
        "session": SESSION,
    }
