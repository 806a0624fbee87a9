"""How a JVM is started: no JVM."""

from __future__ import annotations

import io
import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.launch import Launch
from penstock.session import FirstAlone

CONFIGURATION = {"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:Ours=1 -Dours=true"}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith("SPARK_") or "JAVA" in name:
            monkeypatch.delenv(name)


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    return Launch("/no/java", str(tmp_path / "spark"), str(tmp_path), tmp_path / "kept.json")


def test_plain(launch: Launch) -> None:
    assert launch.is_plain(["spark.sql.shuffle.partitions", "spark.driver.extraJavaOptions", "spark.driver.memory"])


@pytest.mark.parametrize("key", ["spark.jars", "spark.jars.packages", "spark.master", "spark.driver.extraClassPath"])
def test_settings_for_the_script(launch: Launch, key: str) -> None:
    assert not launch.is_plain([key])


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS", "JDK_JAVA_OPTIONS"])
def test_variables_for_the_script(launch: Launch, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "x")
    assert not launch.is_plain([])


@pytest.mark.parametrize("name", ["spark-env.sh", "spark-defaults.conf"])
def test_files_for_the_script(launch: Launch, name: str, tmp_path: Path) -> None:
    (tmp_path / "spark" / "conf").mkdir(parents=True)
    (tmp_path / "spark" / "conf" / name).touch()
    assert not launch.is_plain([])


@pytest.mark.parametrize("kept", [None, "", "{", '{"format": 2}'])
def test_not_known_how(launch: Launch, kept: str | None, tmp_path: Path) -> None:
    if kept is not None:
        (tmp_path / "kept.json").write_text(kept)
    assert launch.start(CONFIGURATION, io.BytesIO()) is None


def test_what_is_kept(launch: Launch, tmp_path: Path) -> None:
    """What Spark's script has added, without what each start says by itself."""
    options = ["-Xmx2g", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-XX:Ours=1", "-Dours=true", "-Dtheirs=1"]
    runtime = SimpleNamespace(getInputArguments=lambda: options, getClassPath=lambda: "/a.jar:/b.jar")
    management = SimpleNamespace(ManagementFactory=SimpleNamespace(getRuntimeMXBean=lambda: runtime))
    jvm = SimpleNamespace(java=SimpleNamespace(lang=SimpleNamespace(management=management)))
    launch.keep(SimpleNamespace(jvm=jvm), CONFIGURATION)
    kept = json.loads((tmp_path / "kept.json").read_text())
    assert kept["options"] == ["--add-opens=java.base/java.lang=ALL-UNNAMED", "-Dtheirs=1"]
    assert kept["class_path"] == "/a.jar:/b.jar"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


def test_other_jars_are_asked_for_again(launch: Launch, tmp_path: Path) -> None:
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    kept = {"format": 1, "spark": launch._spark(), "class_path": "", "options": []}
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    (tmp_path / "spark" / "jars" / "avro.jar").touch()
    os.utime(tmp_path / "spark" / "jars", (1, 1))
    assert launch.start(CONFIGURATION, io.BytesIO()) is None


def test_first_alone() -> None:
    """The others wait for the first, and for no other."""
    alone = FirstAlone(seconds=60)
    said: list[str] = []
    begun, may_end = threading.Event(), threading.Event()

    def first() -> None:
        with alone():
            begun.set()
            may_end.wait(10)
            said.append("first")

    def later() -> None:
        with alone():
            said.append("later")

    threads = [threading.Thread(target=first), *(threading.Thread(target=later) for _ in range(3))]
    threads[0].start()
    begun.wait(10)
    for thread in threads[1:]:
        thread.start()
    may_end.set()
    for thread in threads:
        thread.join(10)
    assert said == ["first", "later", "later", "later"]


def test_first_alone_not_for_long() -> None:
    alone = FirstAlone(seconds=0.01)
    passed = threading.Event()

    def later() -> None:
        with alone():
            passed.set()

    with alone():
        thread = threading.Thread(target=later)
        thread.start()
        assert passed.wait(10)
        assert alone._done.is_set(), "the next one would wait as long again"
    thread.join(10)


def test_a_first_that_fails_holds_nobody() -> None:
    alone = FirstAlone(seconds=60)
    with pytest.raises(ValueError, match="wrong"), alone():
        raise ValueError("wrong")
    with alone():
        pass
