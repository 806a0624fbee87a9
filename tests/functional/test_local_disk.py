"""Spark on the local disk: of two commits of one version only one is made, and nothing lies beside the data."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError

import penstock
from tests.conftest import SESSION


def test_a_version_is_committed_by_one_writer_only(tmp_path: Path) -> None:
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)
    jvm: Any = lake.spark._jvm
    configuration = lake.spark._jsparkSession.sessionState().newHadoopConf()
    log = jvm.penstock.LocalLog(configuration)

    def commit(version: int, writer: int) -> bool:
        path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / "log with space" / f"{version}.json"))
        lines = jvm.java.util.ArrayList()
        lines.add(f"writer {writer}")
        try:
            log.write(path, lines.iterator(), False, configuration)
        except Py4JJavaError as error:
            if "FileAlreadyExistsException" in str(error.java_exception):
                return False
            raise
        return True

    (tmp_path / "log with space").mkdir()
    with ThreadPoolExecutor(4) as pool:
        for version in range(50):
            won = list(pool.map(lambda writer, version=version: commit(version, writer), range(4)))
            assert won.count(True) == 1
            text = (tmp_path / "log with space" / f"{version}.json").read_text()
            assert text == f"writer {won.index(True)}\n"
    assert len(list((tmp_path / "log with space").iterdir())) == 50, "temporary files were left"


def test_nothing_hidden_lies_beside_the_data(tmp_path: Path) -> None:
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)
    lake.sql("create table silver.orders as select id from range(10)")
    lake.sql("insert into silver.orders values (11)")
    assert [path.name for path in tmp_path.rglob(".*")] == []


def test_checkpoints_are_written_beside_and_renamed(tmp_path: Path) -> None:
    """One that is written in place is read half by others, and a kill leaves it so: the table can't be read any more."""
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)
    lake.sql("create table silver.orders as select id from range(10)")
    jvm: Any = lake.spark._jvm
    session = lake.spark._jsparkSession
    log = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, str(tmp_path / "lake/silver/orders"))
    assert log.store().isPartialWriteVisible(log.logPath(), session.sessionState().newHadoopConf())


def test_tasks_carry_no_settings_of_yarn(tmp_path: Path) -> None:
    configuration = penstock.connect(str(tmp_path / "lake"), session=SESSION).spark._jsc.hadoopConfiguration()  # type: ignore[attr-defined]
    assert configuration.get("fs.file.impl") == "penstock.LocalFiles"
    assert configuration.get("io.file.buffer.size") is not None
    assert configuration.get("yarn.resourcemanager.hostname") is None
