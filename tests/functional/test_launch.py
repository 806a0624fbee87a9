"""A JVM that is started without Spark's script is the JVM that the script starts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock.api import connect
from penstock.errors import PenstockError
from penstock.spark.internals.probe import check_signatures
from penstock.spark.startup.java import find_spark_home
from penstock.spark.startup.launch import Launch
from tests.conftest import SESSION

CONFIGURATION = {"spark.driver.memory": "300m", "spark.driver.extraJavaOptions": "-Dours=true"}


def options(gateway: Any) -> list[str]:
    runtime = gateway.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
    return [runtime.getClassPath(), *runtime.getInputArguments()]


def test_the_same_jvm(tmp_path: Path) -> None:
    from pyspark import SparkContext

    connect(str(tmp_path / "lake"), session=SESSION).spark  # noqa: B018 - there is a JVM now
    java = shutil.which("java")
    assert java is not None
    launch = Launch(java, find_spark_home(), str(tmp_path), tmp_path / "kept.json")
    launch.keep(SparkContext._gateway, CONFIGURATION)
    with (tmp_path / "said").open("wb") as said:
        jvm = launch.start(CONFIGURATION, said)
        assert jvm is not None
        gateway = jvm.gateway()
    assert gateway is not None, (tmp_path / "said").read_text()
    theirs = [item for item in options(SparkContext._gateway) if not item.startswith("-Xmx")]
    ours = options(gateway)
    gateway.shutdown()
    gateway.proc.stdin.close()
    assert gateway.proc.wait(30) == 0
    assert {"-Xmx300m", "-Dours=true"} < set(ours)
    assert [item for item in ours if item not in ("-Xmx300m", "-Dours=true")] == theirs


def test_values_of_numpy_reach_java(tmp_path: Path) -> None:
    """pyspark would import its tests and pandas to tell them; we look at their type first."""
    import numpy as np
    from pyspark.sql.functions import lit

    spark = connect(str(tmp_path / "lake"), session=SESSION).spark
    row = spark.range(1).select(lit(np.array([1, 2])), lit(np.int64(3)), lit("text")).collect()[0]
    assert tuple(row) == ([1, 2], 3, "text")


def test_what_a_killed_jvm_leaves_is_swept(tmp_path: Path) -> None:
    spark: Any = connect(str(tmp_path / "lake"), session=SESSION).spark
    temporary = Path(spark.sparkContext._jvm.java.lang.System.getProperty("java.io.tmpdir"))
    assert temporary.name.startswith(f"penstock-{os.getpid()}-")
    assert temporary.is_dir()


def test_a_jvm_that_does_not_start(tmp_path: Path) -> None:
    """What was kept may be of another Java: then it is not known how, and Spark's script is asked."""
    java = shutil.which("java")
    assert java is not None
    launch = Launch(java, find_spark_home(), str(tmp_path), tmp_path / "kept.json")
    kept = {"format": 2, "spark": launch._spark(), "made_of": "", "class_path": "", "options": ["-XX:+NoSuchThing"]}
    (tmp_path / "kept.json").write_text(json.dumps(kept))
    with (tmp_path / "said").open("wb") as said:
        jvm = launch.start(CONFIGURATION, said)
        assert jvm is not None
        assert jvm.gateway() is None
    assert "NoSuchThing" in (tmp_path / "said").read_text()


def test_this_spark_and_delta_have_what_is_called(tmp_path: Path) -> None:
    check_signatures(connect(str(tmp_path / "lake"), session=SESSION).spark)


@pytest.mark.parametrize(
    ("name", "method", "said"),
    [
        ("org.apache.spark.sql.delta.DeltaLog", "forTable(int)", "org.apache.spark.sql.delta.DeltaLog.forTable(int)"),
        ("org.apache.spark.sql.delta.NoSuchLog", "forTable(int)", "class org.apache.spark.sql.delta.NoSuchLog"),
    ],
)
def test_another_spark_or_delta_is_told_in_one_line(tmp_path: Path, name: str, method: str, said: str) -> None:
    spark = connect(str(tmp_path / "lake"), session=SESSION).spark
    with pytest.raises(PenstockError) as error:
        check_signatures(spark, {name: (method,)})
    assert str(error.value) == (
        f"Spark {spark.version} with Delta 4.4.0 is not supported; missing: {said}. "
        "Install pyspark 4.1.0 to 4.2.0 with delta-spark 4.4.0."
    )


def test_spark_without_shortcuts(tmp_path: Path) -> None:
    """`session.fast_start: false` in a process of its own: Spark's script, plain options, and an end in order."""
    code = (
        "import sys, penstock\n"
        "lake = penstock.connect(sys.argv[1], session={'fast_start': False, 'memory': '1g'})\n"
        "lake.sql('create table s.t as select 1 as id')\n"
        "print(lake.sql('select * from s.t').collect()[0][0])\n"
        "runtime = lake.spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()\n"
        "print([item for item in runtime.getInputArguments() if item.startswith('-XX:')])\n"
        "context = lake.spark.sparkContext._jsc.hadoopConfiguration()\n"
        "print(context.getResource('yarn-default.xml').toString().split('!')[0].split('/')[-1].startswith('hadoop'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "lake")], capture_output=True, text=True, timeout=300
    )
    lines = done.stdout.splitlines()
    assert lines[0] == "1", done.stderr
    assert "Tier4" not in lines[1]
    assert "Archive" not in lines[1]
    assert lines[2] == "True"
