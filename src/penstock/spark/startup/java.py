"""Where Java and Spark are on this machine."""

from __future__ import annotations

import os
import re
import runpy
import shutil
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import PenstockError

_CORE = re.compile(r"spark-core_(\d+\.\d+)-(\d+\.\d+)(\.\d+\S*)?\.jar")
_SCALA = "2.13"


def find_java() -> str:
    """The `java` of JAVA_HOME, or else of the path; an error if there is none."""
    home = os.environ.get("JAVA_HOME")
    candidate = os.path.join(home, "bin", "java") if home else None
    java = candidate if candidate and os.access(candidate, os.X_OK) else shutil.which("java")
    if java is None:
        raise PenstockError(
            "Spark needs Java 17 or 21, and there is none",
            fix="Install one (Debian, Ubuntu: `apt-get install openjdk-17-jre-headless`; "
            "macOS: `brew install openjdk@17`) or set JAVA_HOME.",
        )
    return java


def find_spark_home(given: str | None = None) -> str:
    """The folder of Spark: `given`, else by pyspark's own rules, which look at SPARK_HOME first.

    An error if its version is not pyspark's. pyspark itself is imported later, while the JVM starts.
    """
    if given or os.environ.get("SPARK_HOME"):
        home = os.path.realpath(os.path.expanduser(given or os.environ["SPARK_HOME"]))
        _check_version(home, "`session.spark_home`" if given else "SPARK_HOME", version("pyspark"))
        return home
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    rules = runpy.run_path(str(Path(found.origin).with_name("find_spark_home.py")))
    return str(rules["_find_spark_home"]())


def _check_version(home: str, named: str, pyspark: str) -> None:
    """Fail unless a folder holds a Spark of the minor version of pyspark, built for the Scala that Delta's jars are for."""
    jars = Path(home, "jars")
    found = next((match for jar in jars.glob("spark-core_*.jar") if (match := _CORE.fullmatch(jar.name))), None)
    if found is None:
        raise PenstockError(
            f"{named} names no installation of Spark: it has no `jars/spark-core_*.jar`",
            where=home,
            fix=f"Name the folder of Spark {pyspark} that holds `bin` and `jars`, or remove {named}: pip has installed Spark "
            "together with pyspark.",
        )
    scala, minor, rest = found.groups()
    if minor != ".".join(pyspark.split(".")[:2]):
        raise PenstockError(
            f"The Spark of {named} is {minor}{rest or ''}, and the pyspark of this Python is {pyspark}: both must have "
            "the same version",
            where=home,
            fix=f"Install pyspark {minor} (dbt-penstock supports pyspark 4.1.0 to 4.2.0), name an installation of Spark "
            f"{pyspark}, or remove {named} to use the Spark that pip has installed.",
        )
    if scala != _SCALA:
        raise PenstockError(
            f"The Spark of {named} is built for Scala {scala}, and Delta's jars are for Scala {_SCALA}",
            where=home,
            fix=f"Name an installation of Spark for Scala {_SCALA}.",
        )
