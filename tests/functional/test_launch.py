"""A JVM that is started without Spark's script is the JVM that the script starts."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

from penstock.api import connect
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
