"""Where Spark is: an existing installation must have pyspark's version."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest

from penstock.errors import PenstockError
from penstock.spark.startup.java import find_spark_home

PYSPARK = version("pyspark")


def installed(folder: Path, jar: str) -> str:
    (folder / "jars").mkdir(parents=True)
    (folder / "jars" / jar).touch()
    return str(folder)


@pytest.mark.parametrize("rest", ["", "-amzn-1"])
def test_an_installation_of_the_same_version(tmp_path: Path, rest: str, monkeypatch: pytest.MonkeyPatch) -> None:
    home = installed(tmp_path / "spark", f"spark-core_2.13-{PYSPARK}{rest}.jar")
    link = tmp_path / "current"
    link.symlink_to(home)
    assert find_spark_home(str(link)) == home
    monkeypatch.setenv("SPARK_HOME", str(link))
    assert find_spark_home() == home


def test_the_profile_wins_over_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "other"))
    home = installed(tmp_path / "spark", f"spark-core_2.13-{PYSPARK}.jar")
    assert find_spark_home(home) == home


@pytest.mark.parametrize(("given", "named"), [(True, "`session.spark_home`"), (False, "SPARK_HOME")])
def test_another_version_is_told_with_both(
    tmp_path: Path, given: bool, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = installed(tmp_path, "spark-core_2.13-3.5.6.jar")
    if not given:
        monkeypatch.setenv("SPARK_HOME", home)
    with pytest.raises(PenstockError) as error:
        find_spark_home(home if given else None)
    told = str(error.value)
    assert told.startswith(f"The Spark of {named} is 3.5.6, and the pyspark of this Python is {PYSPARK}")
    assert home in told
    assert f"remove {named}" in told


def test_another_scala(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"built for Scala 2\.12"):
        find_spark_home(installed(tmp_path, f"spark-core_2.12-{PYSPARK}.jar"))


def test_a_folder_without_spark(tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match=r"names no installation of Spark: it has no `jars/spark-core_\*\.jar`"):
        find_spark_home(str(tmp_path))
