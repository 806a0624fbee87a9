"""Spark on the local disk: of two commits of one version only one is made, and nothing lies beside the data."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
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


def private(lake: penstock.Lake, method: str, *arguments: Any) -> Any:
    """A private static method of the log's class, called."""
    gateway: Any = lake.spark.sparkContext._gateway
    jvm = gateway.jvm
    declared = jvm.java.lang.Class.forName(
        "penstock.LocalLog", True, jvm.java.lang.Thread.currentThread().getContextClassLoader()
    ).getDeclaredMethods()
    found = next(one for one in declared if one.getName() == method)
    found.setAccessible(True)
    given = gateway.new_array(jvm.java.lang.Object, len(arguments))
    for index, argument in enumerate(arguments):
        given[index] = argument
    return found.invoke(None, given)


def path_of(lake: penstock.Lake, path: Path) -> Any:
    jvm: Any = lake.spark._jvm
    return jvm.java.io.File(str(path)).toPath()


def test_a_link_that_is_our_own_already_is_a_commit(tmp_path: Path) -> None:
    """NFS may answer "exists" to the request that it was sent a second time."""
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "0.json").hardlink_to(tmp_path / "mine")
    private(lake, "publish", path_of(lake, tmp_path / "mine"), path_of(lake, tmp_path / "0.json"))
    (tmp_path / "theirs").write_text("theirs")
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        private(lake, "publish", path_of(lake, tmp_path / "theirs"), path_of(lake, tmp_path / "0.json"))
    assert (tmp_path / "0.json").read_text() == "mine"


def test_an_error_of_the_disk_is_raised_and_not_taken_for_a_disk_without_links(tmp_path: Path) -> None:
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)
    jvm: Any = lake.spark._jvm
    said = {
        "Operation not permitted": True,
        "Operation not supported": True,
        "No space left on device": False,
        "Input/output error": False,
        None: False,
    }
    for reason, expected in said.items():
        error = jvm.java.nio.file.FileSystemException("a", "b", reason)
        assert private(lake, "hasNoLinks", error) == expected, reason
    with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
        private(lake, "publish", path_of(lake, tmp_path / "none"), path_of(lake, tmp_path / "0.json"))


def test_without_links_one_writer_wins_too(tmp_path: Path) -> None:
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)

    def commit(version: int, writer: int) -> bool:
        temporary = tmp_path / f"{version}-{writer}"
        temporary.write_text(f"writer {writer}")
        try:
            private(lake, "moveAlone", path_of(lake, temporary), path_of(lake, tmp_path / f"{version}.json"))
        except Py4JJavaError as error:
            if "FileAlreadyExistsException" in str(error.java_exception.getCause()):
                return False
            raise
        return True

    with ThreadPoolExecutor(4) as pool:
        for version in range(20):
            won = list(pool.map(lambda writer, version=version: commit(version, writer), range(4)))
            assert won.count(True) == 1
            assert (tmp_path / f"{version}.json").read_text() == f"writer {won.index(True)}"


def test_a_commit_does_not_land_in_another_table_that_took_the_place(tmp_path: Path) -> None:
    lake = penstock.connect(str(tmp_path / "lake"), session=SESSION)
    jvm: Any = lake.spark._jvm
    configuration = lake.spark._jsparkSession.sessionState().newHadoopConf()
    log = jvm.penstock.LocalLog(configuration)

    def commit(version: int) -> None:
        lines = jvm.java.util.ArrayList()
        lines.add("{}")
        path = jvm.org.apache.hadoop.fs.Path(str(tmp_path / f"{version:020}.json"))
        log.write(path, lines.iterator(), False, configuration)

    commit(0)
    commit(1)
    with pytest.raises(Py4JJavaError, match="dropped or replaced while this statement ran"):
        commit(3)
    (tmp_path / f"{1:020}.json").rename(tmp_path / f"{1:020}.checkpoint.parquet")
    commit(2)
    assert sorted(path.name[18:] for path in tmp_path.glob("0*")) == ["00.json", "01.checkpoint.parquet", "02.json"]
