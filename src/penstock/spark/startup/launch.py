"""Launches the JVM process: by Spark's script the first time on a machine, later by the command that the script found.

Spark's script starts a JVM to find out how to start the JVM. The command that it finds is kept beside the class archive.
If Spark is configured by its own files or by the environment, each start uses the script.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from penstock.errors import PenstockError
from penstock.secrets import logger
from penstock.spark.startup.cache import is_trusted_file, write_private

if TYPE_CHECKING:
    from pyspark import SparkConf

log = logger("penstock.launch")

_FORMAT = 2
# A JVM takes a second or two to start, but many on a machine that swaps.
_SECONDS_TO_START = 180
_MAIN = "org.apache.spark.api.python.PythonGatewayServer"
_DEFAULT_OPTIONS, _SUBMIT_ARGUMENTS = "spark.driver.defaultJavaOptions", "PYSPARK_SUBMIT_ARGS"
_MEMORY, _OPTIONS = "spark.driver.memory", "spark.driver.extraJavaOptions"
# Settings that spark-submit acts on itself, beyond passing them on.
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

    def __init__(
        self,
        java: str,
        spark_home: str,
        folder: str,
        kept: Path,
        descriptors: tuple[int, ...] = (),
        made_of: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`descriptors` are open files that the JVM holds as well; `made_of` is the digest of the Java and jars it starts with.

        `environment` are variables for Spark's script and for the JVM that it starts.
        """
        self._java, self._spark_home, self._folder, self._kept = java, spark_home, folder, kept
        self._made_of = made_of
        # Settings may be secret, and every user of the machine can read a command line.
        self._options_file, self._settings_file = Path(folder, "java.options"), Path(folder, "spark.properties")
        self._descriptors = descriptors
        self._environment = dict(environment or {})

    def gateway(
        self, configuration: Mapping[str, str], given: Collection[str], said: IO[bytes], *, directly: bool
    ) -> Any:
        """Python's connection to a JVM that starts now; `given` are the names of the user's own settings.

        `directly` asks for a start without Spark's script. The script is used if the command is not known, or fails.
        """
        plain = directly and self.is_plain(given)
        jvm = self.start(configuration, said) if plain else None
        # pyspark is imported while this JVM starts.
        from pyspark.java_gateway import launch_gateway

        try:
            gateway = jvm.gateway() if jvm else None
            if gateway is None:
                with self._submit_arguments(configuration), changed_environment(self._environment):
                    gateway = launch_gateway(  # type: ignore[no-untyped-call]
                        popen_kwargs={"stdout": said, "stderr": said, "pass_fds": self._descriptors}
                    )
                # A user's options can't be told from Spark's own.
                if plain and _OPTIONS not in given:
                    self.keep(gateway, configuration)
        finally:
            for file in (self._options_file, self._settings_file):
                file.unlink(missing_ok=True)
        return gateway

    def is_plain(self, given: Collection[str]) -> bool:
        """Whether Spark's start depends on nothing but settings that spark-submit passes on unchanged."""
        conf = Path(self._spark_home, "conf")
        return (
            os.name == "posix"
            and not any(key.startswith(_FOR_SUBMIT) for key in given)
            and not any(name.startswith("SPARK_") and name != "SPARK_HOME" for name in os.environ)
            and not any(name in os.environ for name in _VARIABLES)
            and not any((conf / name).exists() for name in _FILES)
        )

    def start(self, configuration: Mapping[str, str], said: IO[bytes]) -> Jvm | None:
        """A JVM that starts without Spark's script; None if the command is not known, or is for other jars."""
        try:
            kept = json.loads(self._kept.read_text()) if is_trusted_file(self._kept) else {}
        except (OSError, ValueError):
            return None
        known = {"format": _FORMAT, "spark": self._spark(), "made_of": self._made_of}
        if any(kept.get(key) != value for key, value in known.items()):
            return None
        options = [f"-Xmx{configuration[_MEMORY]}", *kept["options"], self._write_options(configuration)]
        command = [self._java, "-cp", kept["class_path"], *options, _MAIN]
        try:
            return Jvm(command, self._spark_home, self._folder, said, self._descriptors)
        except OSError as error:  # such as a class path that is too long for this machine
            log.debug("the JVM starts by Spark's script, because it can't be started without: %s", error)
            return None

    def keep(self, gateway: Any, configuration: Mapping[str, str]) -> None:
        """Keep the command by which Spark's script has started this JVM."""
        runtime = gateway.jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()
        ours = shlex.split(configuration[_OPTIONS])
        options = [item for item in runtime.getInputArguments() if item not in ours and not item.startswith("-Xmx")]
        known = {"format": _FORMAT, "spark": self._spark(), "made_of": self._made_of}
        text = json.dumps(known | {"class_path": runtime.getClassPath(), "options": options})
        try:
            beside = self._kept.with_name(f"launch.{os.getpid()}")
            write_private(beside, text)
            os.replace(beside, self._kept)
        except OSError as error:  # a home that can't be written costs less than a second, and no run
            log.debug("the command that starts the JVM is not kept: %s", error)

    def _write_options(self, configuration: Mapping[str, str]) -> str:
        """The argument for Java that names a file with the driver's options."""
        options = [*shlex.split(configuration.get(_DEFAULT_OPTIONS, "")), *shlex.split(configuration.get(_OPTIONS, ""))]
        write_private(self._options_file, "".join(_quoted_for_java(option) + "\n" for option in options))
        return f"@{self._options_file}"

    @contextmanager
    def _submit_arguments(self, configuration: Mapping[str, str]) -> Iterator[None]:
        """Pass settings to spark-submit in a file, with those of the user's PYSPARK_SUBMIT_ARGS."""
        before = os.environ.get(_SUBMIT_ARGUMENTS) or "pyspark-shell"
        arguments, theirs, files = _without_settings(shlex.split(before))
        given = {**configuration, **theirs}
        if _OPTIONS in given or _DEFAULT_OPTIONS in given:
            given[_OPTIONS] = self._write_options(given)
        given.pop(_DEFAULT_OPTIONS, None)
        # If a key comes twice, the later line counts.
        text = "".join(Path(file).read_text() + "\n" for file in files)
        text += "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in given.items())
        write_private(self._settings_file, text)
        ours = ["--properties-file", str(self._settings_file), *([] if files else ["--load-spark-defaults"])]
        with changed_environment({_SUBMIT_ARGUMENTS: shlex.join([*ours, *arguments])}):
            yield

    def _spark(self) -> list[Any]:
        """Spark's folder and the time of its jars: Spark's script takes all jars that are there."""
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
        """Python's connection to the JVM; None if the JVM ended before that."""
        from pyspark.java_gateway import launch_gateway
        from pyspark.serializers import UTF8Deserializer, read_int

        until = time.monotonic() + _SECONDS_TO_START
        while not self._told.exists():
            if self._process.poll() is not None:
                return None
            if time.monotonic() > until:
                self._process.kill()
                self._process.wait()
                raise PenstockError(f"The JVM said nothing for {_SECONDS_TO_START} seconds")
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


@contextmanager
def changed_environment(changes: Mapping[str, str]) -> Iterator[None]:
    """Set variables of this process, for what starts inside."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _without_settings(arguments: list[str]) -> tuple[list[str], dict[str, str], list[str]]:
    """spark-submit's arguments without settings; the settings; and the files of settings."""
    left: list[str] = []
    settings: dict[str, str] = {}
    files: list[str] = []
    rest = iter(arguments)
    for argument in rest:
        name, separator, value = argument.partition("=")
        if name not in ("--conf", "-c", "--driver-java-options", "--properties-file"):
            left.append(argument)
            continue
        value = value if separator else next(rest, "")
        if name == "--properties-file":
            files = [value]
        elif name == "--driver-java-options":
            settings[_OPTIONS] = value
        else:
            key, _, text = value.partition("=")
            settings[key] = text
    return left, settings, files


def _escaped(text: str) -> str:
    """A text as Java's properties write it."""
    escaped = "".join(f"\\{letter}" if letter in "\\=:#! " else letter for letter in text)
    return escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")


def _quoted_for_java(option: str) -> str:
    """An option as Java's argument files write it."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def spark_conf(configuration: Mapping[str, str]) -> SparkConf:
    """These settings alone, as PySpark takes them."""
    from pyspark import SparkConf

    return SparkConf(loadDefaults=False).setAll(list(configuration.items()))
