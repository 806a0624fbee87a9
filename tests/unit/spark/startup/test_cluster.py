"""The driver of a cluster: its files, its executors and their Python."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest

from penstock.config.session_settings import SessionSettings
from penstock.spark.startup import cluster
from penstock.spark.startup.cluster import driver_environment, wait_for_executors
from penstock.spark.startup.configuration import spark_configuration
from penstock.spark.startup.python import choose_python


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SPARK_LOCAL_DIRS", "SPARK_SUBMIT_OPTS", "PYSPARK_PYTHON"):
        monkeypatch.delenv(name, raising=False)


def test_the_drivers_files_are_in_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    assert driver_environment({}, "/tmp/penstock-1") == {
        "SPARK_SUBMIT_OPTS": "-Djava.io.tmpdir=/tmp/penstock-1",
        "SPARK_LOCAL_DIRS": "/tmp/penstock-1",
    }
    monkeypatch.setenv("SPARK_SUBMIT_OPTS", "-Da=b")
    assert driver_environment({"spark.local.dir": "/big"}, "/tmp/p") == {
        "SPARK_SUBMIT_OPTS": "-Da=b -Djava.io.tmpdir=/tmp/p"
    }


def test_executors_are_told_nothing_of_the_drivers_folder() -> None:
    settings = SessionSettings.from_mapping(
        {
            "master": "spark://host:7077",
            "driver_host": "10.0.0.7",
            "spark_config": {"spark.jars": "/mine.jar"},
        }
    )
    found = spark_configuration(settings, "/tmp/penstock-1", ["/delta.jar"])
    assert found["spark.jars"] == "/delta.jar,/mine.jar"
    assert found["spark.driver.host"] == "10.0.0.7"
    assert "spark.driver.bindAddress" not in found
    assert "spark.hadoop.fs.file.impl" not in found
    assert {key for key, value in found.items() if "/tmp/penstock-1" in value} == {"spark.sql.warehouse.dir"}


class Context:
    """A context whose executors register one by one."""

    master = "spark://host:7077"

    def getConf(self) -> Any:
        return {"spark.driver.host": "10.0.0.7"}


def test_the_wait_ends_when_no_more_executors_come(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = iter([0, 1, 1, 3])
    asked: list[int] = []

    def count(context: Any) -> int:
        asked.append(next(counts, 3))
        return asked[-1]

    monkeypatch.setattr(cluster, "executor_count", count)
    monkeypatch.setattr(cluster, "_SECONDS_BETWEEN_EXECUTORS", 0.2)
    wait_for_executors(Context())  # type: ignore[arg-type]
    assert asked[:4] == [0, 1, 1, 3]
    assert set(asked[4:]) == {3}


def test_a_cluster_that_gives_no_executor_is_warned_about(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "executor_count", lambda context: 0)
    monkeypatch.setattr(cluster, "_SECONDS_FOR_EXECUTORS", 0.1)
    with caplog.at_level(logging.WARNING, "penstock.session"):
        wait_for_executors(Context())  # type: ignore[arg-type]
    (record,) = caplog.records
    assert "spark://host:7077 has given no executor" in record.getMessage()
    assert "driver at 10.0.0.7" in record.getMessage()
    assert "`session.driver_host`" in record.getMessage()


@pytest.mark.parametrize(
    ("setting", "variable", "chosen"),
    [
        (None, None, sys.executable),
        (None, "/opt/python", "/opt/python"),
        ("python3.11", "/opt/python", "python3.11"),
    ],
)
def test_the_workers_python(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, variable: str | None, chosen: str
) -> None:
    import os

    # As monkeypatch knows the variable now, it is put back afterwards.
    monkeypatch.setenv("PYSPARK_PYTHON", variable or "")
    if variable is None:
        del os.environ["PYSPARK_PYTHON"]
    given = {"spark_config": {"spark.pyspark.python": setting}} if setting else {}
    choose_python(SessionSettings.from_mapping(given))
    assert os.environ["PYSPARK_PYTHON"] == chosen
