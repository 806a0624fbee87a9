"""How a JVM is started: no JVM."""

from __future__ import annotations

import io
import json
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from penstock.spark.startup.launch import Launch

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
    kept = {"format": 2, "spark": launch._spark(), "made_of": "", "class_path": "", "options": []}
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    (tmp_path / "spark" / "jars" / "avro.jar").touch()
    os.utime(tmp_path / "spark" / "jars", (1, 1))
    assert launch.start(CONFIGURATION, io.BytesIO()) is None


def ran(launch: Launch, tmp_path: Path) -> list[str]:
    """What is in the file that a JVM is given its options by."""
    (file,) = tmp_path.glob("java.options")
    assert file.stat().st_mode & 0o777 == 0o600
    return file.read_text().splitlines()


def keep(launch: Launch, tmp_path: Path, **other: object) -> None:
    kept = {"format": 2, "spark": launch._spark(), "made_of": "", "class_path": "/a.jar", "options": ["-Dtheirs=1"]}
    (tmp_path / "kept.json").write_text(json.dumps(kept | other))


SECRET = {**CONFIGURATION, "spark.driver.extraJavaOptions": "-Dmy.password='MaRk \\\"\\\\' -XX:Ours=1"}


def test_options_are_on_no_command_line(launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep(launch, tmp_path)
    commands: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, **_: commands.append(command))
    assert launch.start(SECRET, io.BytesIO()) is not None
    assert commands[0][:6] == ["/no/java", "-cp", "/a.jar", "-Xmx2g", "-Dtheirs=1", f"@{tmp_path}/java.options"]
    assert ran(launch, tmp_path) == ['"-Dmy.password=MaRk \\\\\\"\\\\\\\\"', '"-XX:Ours=1"']


def test_what_another_java_was_started_with_is_not_used(launch: Launch, tmp_path: Path) -> None:
    keep(launch, tmp_path, made_of="something else")
    assert launch.start(CONFIGURATION, io.BytesIO()) is None


def test_what_others_may_write_is_not_used(launch: Launch, tmp_path: Path) -> None:
    keep(launch, tmp_path)
    (tmp_path / "kept.json").chmod(0o666)
    assert launch.start(CONFIGURATION, io.BytesIO()) is None


def test_settings_reach_sparks_script_by_a_file(
    launch: Launch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "theirs").write_text("spark.a=1")
    theirs = f"--conf spark.b.secret=MaRk2 -c spark.a=3 --properties-file={tmp_path}/theirs --name x pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", theirs)
    with launch._submit_arguments({**SECRET, "spark.c": "a = b:c\\\n#"}):
        given = os.environ["PYSPARK_SUBMIT_ARGS"]
        file = tmp_path / "spark.properties"
        assert file.stat().st_mode & 0o777 == 0o600
        lines = file.read_text().splitlines()
    assert given == f"--properties-file {file} --name x pyspark-shell"
    assert lines[0] == "spark.a=1", "those that come later win"
    assert {"spark.a=3", "spark.b.secret=MaRk2", r"spark.c=a\ \=\ b\:c\\\n\#"} < set(lines)
    assert f"spark.driver.extraJavaOptions=@{tmp_path}/java.options" in lines
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == theirs


def test_sparks_own_files_are_read_too(launch: Launch, tmp_path: Path) -> None:
    with launch._submit_arguments(CONFIGURATION):
        given = os.environ["PYSPARK_SUBMIT_ARGS"]
    assert given == f"--properties-file {tmp_path}/spark.properties --load-spark-defaults pyspark-shell"
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ
