"""The JVM's own command, remembered: Spark's script starts a JVM to find out how to start the JVM.

What came out of that the first time is kept beside the class archive, and later starts go straight to Java: two thirds
of a second less. Whoever configures Spark by its files or its environment gets Spark's script each time.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkConf

log = logging.getLogger("penstock.launch")

_FORMAT = 1
_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
_MEMORY, _OPTIONS = "spark.driver.memory", "spark.driver.extraJavaOptions"
# What spark-submit does more with than to hand it on.
_FOR_SUBMIT = (
    "spark.master", "spark.jars", "spark.files", "spark.archives", "spark.submit.", "spark.kerberos.",
    "spark.driver.extraClassPath", "spark.driver.extraLibraryPath", "spark.driver.default",
)  # fmt: skip
_FILES = ("spark-env.sh", "spark-defaults.conf", "java-opts")
_VARIABLES = (
    "HADOOP_CONF_DIR", "YARN_CONF_DIR", "PYSPARK_SUBMIT_ARGS", "PYSPARK_GATEWAY_PORT", "JDK_JAVA_OPTIONS",
    "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS",
)  # fmt: skip


class Launch:
    """The start of this process's JVM."""

    def __init__(self, java: str, spark_home: str, folder: str, kept: Path, descriptors: tuple[int, ...] = ()) -> None:
        """`descriptors` are the open files that the JVM is to hold as well."""
        self._java, self._spark_home, self._folder, self._kept = java, spark_home, folder, kept
        self._descriptors = descriptors

    def gateway(self, configuration: Mapping[str, str], given: Collection[str], said: IO[bytes], *, local: bool) -> Any:
        """Python's connection to a JVM that starts now; `given` are the settings that are the user's."""
        plain = local and self.is_plain(given)
        jvm = self.start(configuration, said) if plain else None
        # pyspark is imported while that JVM starts.
        conf = spark_conf(configuration)
        from pyspark.java_gateway import launch_gateway

        gateway = jvm.gateway() if jvm else None
        if gateway is None:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                conf=conf, popen_kwargs={"stdout": said, "stderr": said, "pass_fds": self._descriptors}
            )
            # A user's options can't be told from Spark's own.
            if plain and _OPTIONS not in given:
                self.keep(gateway, configuration)
        return gateway

    def is_plain(self, given: Collection[str]) -> bool:
        """Whether nothing but settings that are handed on as they are has a say in how Spark starts."""
        conf = Path(self._spark_home, "conf")
        return (
            os.name == "posix"
            and not any(key.startswith(_FOR_SUBMIT) for key in given)
            and not any(name.startswith("SPARK_") and name != "SPARK_HOME" for name in os.environ)
            and not any(name in os.environ for name in _VARIABLES)
            and not any((conf / name).exists() for name in _FILES)
        )

    def start(self, configuration: Mapping[str, str], said: IO[bytes]) -> Jvm | None:
        """A JVM on its way, without Spark's script; None where it is not known how."""
        try:
            kept = json.loads(self._kept.read_text())
        except (OSError, ValueError):
            return None
        if kept.get("format") != _FORMAT or kept.get("spark") != self._spark():
            return None
        options = [f"-Xmx{configuration[_MEMORY]}", *kept["options"], *shlex.split(configuration[_OPTIONS])]
        command = [self._java, "-cp", kept["class_path"], *options, _MAIN]
        return Jvm(command, self._spark_home, self._folder, said, self._descriptors)

    def keep(self, gateway: Any, configuration: Mapping[str, str]) -> None:
        """Remember how Spark's script has started this JVM."""
        runtime = gateway.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        ours = shlex.split(configuration[_OPTIONS])
        options = [item for item in runtime.getInputArguments() if item not in ours and not item.startswith("-Xmx")]
        text = json.dumps(
            {"format": _FORMAT, "spark": self._spark(), "class_path": runtime.getClassPath(), "options": options}
        )
        try:
            beside = self._kept.with_name(f"launch.{os.getpid()}")
            beside.write_text(text)
            os.replace(beside, self._kept)
        except OSError as error:  # a home that can't be written costs less than a second, not the run
            log.debug("how the JVM starts is not kept: %s", error)

    def _spark(self) -> list[Any]:
        """What the class path was made of: Spark's script takes whatever jars are there."""
        jars = Path(self._spark_home, "jars")
        return [self._spark_home, jars.stat().st_mtime_ns if jars.exists() else None]


class Jvm:
    """A JVM that waits for Python to connect, and ends with it."""

    def __init__(
        self, command: list[str], spark_home: str, folder: str, said: IO[bytes], descriptors: tuple[int, ...] = ()
    ) -> None:
        self._told = Path(folder, "gateway")
        told = {"SPARK_HOME": spark_home, "_PYSPARK_DRIVER_CONN_INFO_PATH": str(self._told)}
        # As Spark's script sets it: Python's workers must agree on the hash of a text.
        told |= {"PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            pass_fds=descriptors,
            env={**os.environ, **told},
            # Ctrl-C is for Python, which cancels what runs.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )

    def gateway(self) -> Any | None:
        """Python's connection to it; None where it ended before there was one."""
        from pyspark.java_gateway import launch_gateway
        from pyspark.serializers import UTF8Deserializer, read_int

        while not self._told.exists():
            if self._process.poll() is not None:
                return None
            time.sleep(0.01)
        with self._told.open("rb") as told:
            port, secret = read_int(told), UTF8Deserializer().loads(told)  # type: ignore[no-untyped-call]
        self._told.unlink()
        os.environ |= {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}
        try:
            gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
        finally:
            del os.environ["PYSPARK_GATEWAY_PORT"], os.environ["PYSPARK_GATEWAY_SECRET"]
        gateway.proc = self._process
        return gateway


def spark_conf(configuration: Mapping[str, str]) -> SparkConf:
    from pyspark import SparkConf

    return SparkConf(loadDefaults=False).setAll(list(configuration.items()))
