"""Where Java and Spark are on this machine."""

from __future__ import annotations

import os
import runpy
import shutil
from importlib.util import find_spec
from pathlib import Path

from penstock.errors import PenstockError


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


def find_spark_home() -> str:
    """The folder of Spark, by pyspark's own rules; pyspark is imported later, while the JVM starts."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    rules = runpy.run_path(str(Path(found.origin).with_name("find_spark_home.py")))
    return str(rules["_find_spark_home"]())
