"""The one Spark session of this process: started at the first statement that needs it, and silent."""

from __future__ import annotations

import atexit
import logging
import os
import runpy
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.config.session_settings import SessionSettings
from penstock.errors import PenstockError
from penstock.secrets import logger
from penstock.spark.startup import temporary
from penstock.spark.startup.archive import ClassArchive
from penstock.spark.startup.jars import delta_jars, given_jars
from penstock.spark.startup.launch import Launch, spark_conf
from penstock.spark.startup.local_disk import LOCAL_DISK, SHARED_DISK, local_disk_jar
from penstock.spark.startup.memory import driver_memory
from penstock.sql.quoting import PINNED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logger("penstock.session")

# Most of Spark's code is run a few hundred times and not again: the optimizing compiler is kept for what is truly hot,
# and until then code writes down less of what it does.
_COMPILE_LATER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000 "
    "-XX:-C1ProfileInlinedCalls -XX:-C1ProfileCheckcasts"
)
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# The dump of a first run's classes takes seconds; a JVM that does not end is not waited for any longer.
_SECONDS_TO_END = 120
_INTERPRETED = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}
_starting = threading.Lock()
_interpreting: dict[str, SparkSession] = {}


class FirstAlone:
    """Has the first statement that writes run by itself, for some seconds at most.

    It runs all of Spark's and Delta's code for the first time, slowly; four at once would each do that on their own.
    """

    def __init__(self, seconds: float = 5) -> None:
        self._seconds = seconds
        self._first, self._done = threading.Lock(), threading.Event()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        if self._first.acquire(blocking=False):
            try:
                yield
            finally:
                self._done.set()
        else:
            if not self._done.wait(self._seconds):
                self._done.set()
            yield


first_alone = FirstAlone()


def spark_session(settings: SessionSettings) -> SparkSession:
    """A new Spark session, with its own settings and temporary views, on this process's one Spark."""
    with _starting:
        root = _running() or _start(settings)
    session = root.newSession()
    for key, value in settings.spark_config.items():
        if session.conf.isModifiable(key):
            session.conf.set(key, value)
    pin(session)
    return session


def pin(session: SparkSession) -> None:
    """Set what our quoting relies on, also where this process's Spark is not of our making."""
    for key, value in PINNED.items():
        session.conf.set(key, value)


def interpreting_session(spark: SparkSession) -> SparkSession:
    """The session for queries over a handful of rows with hundreds of columns, such as Delta's over a small log.

    To generate and compile code for them, and to plan them anew after each stage, takes longer than they do.
    """
    application = spark.sparkContext.applicationId
    with _starting:
        if application not in _interpreting:
            made = spark.newSession()
            for key, value in _INTERPRETED.items():
                made.conf.set(key, value)
            _interpreting[application] = made
        return _interpreting[application]


def is_running() -> bool:
    """Whether this process has a Spark; asking starts none."""
    return _running() is not None


def cancel(group: str) -> None:
    """Stop the jobs of a group, from any thread: those that run, and those that its statement has yet to start."""
    if is_running():
        from pyspark import SparkContext

        context: Any = SparkContext._active_spark_context
        if context is not None:
            context._jsc.sc().cancelJobGroupAndFutureJobs(group)


def stop() -> None:
    """End this process's Spark, where it runs."""
    if is_running():
        _end_gateway()


def _running() -> SparkSession | None:
    if "pyspark" not in sys.modules:
        return None
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context = SparkContext._active_spark_context
    # One that another thread is starting has no Java side yet.
    if context is None or getattr(context, "_jsc", None) is None:
        return None
    return SparkSession._instantiatedSession or SparkSession(context)


def _start(settings: SessionSettings) -> SparkSession:
    if settings.remote:
        raise PenstockError(
            "Spark Connect (`session.remote`) is not supported yet",
            where=settings.remote,
            fix="Use `session.master` for a cluster, or neither for Spark in this process.",
        )
    java, spark_home = _java(), _spark_home()
    # Spark's Python workers are this Python, not whichever `python3` comes first in the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    temporary.sweep()
    own = temporary.TemporaryFolder()
    folder = own.path
    jars = given_jars(settings.jars) or delta_jars(spark_home, java, settings.repositories)
    local = _is_local(settings)
    disk = local_disk_jar(spark_home, java, jars, folder, local=local)
    jars += [disk] if disk else []
    archive = ClassArchive(java, spark_home, jars)
    configuration = _configuration(settings, folder, jars, archive.java_option())
    if disk:
        configuration = (LOCAL_DISK if local else SHARED_DISK) | configuration
    launch = Launch(java, spark_home, folder, archive.path.with_suffix(".json"), own.descriptors, archive.made_of)
    said = Path(folder) / "spark.log"
    log.debug("starting Spark; what it says goes to %s", said)
    with said.open("wb") as sink:
        try:
            gateway = launch.gateway(configuration, settings.spark_config, sink, local=local)
            from pyspark import SparkContext
            from pyspark.sql import SparkSession

            _silence_python()
            _spare_numpy()
            context = SparkContext(gateway=gateway, conf=spark_conf(configuration))
        except Exception as error:
            raise _start_failed(said, error) from error
    atexit.register(_end, archive, local=local)
    return SparkSession(context)


def _configuration(
    settings: SessionSettings, folder: str, jars: list[str], archive_option: str | None = None
) -> dict[str, str]:
    """What is set, and why, where the name alone does not say it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    conf = {
        "spark.app.name": "penstock",
        "spark.master": settings.master or "local[*]",
        "spark.driver.memory": settings.memory or driver_memory(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # No metastore: names are attached to memory, so nothing is written where the user works.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": os.path.join(folder, "warehouse"),
        "spark.sql.sources.default": "delta",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # Spark 4.2.0 gives batches of Parquet columns to Python workers as they are, and a UDF over them never ends:
        # give it rows.
        "spark.sql.execution.arrow.pythonUDF.columnarInput.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # What each query looks like is written down for the UI, though there is none: shortly.
        "spark.sql.ui.explainMode": "simple",
        "spark.log.level": "ERROR",
        # Spark's own knows S3's names, and neither the keys nor the signatures of Azure.
        "spark.redaction.regex": "(?i)secret|passw|token|access[._]?key|account[._]key|[._]sas[._]|signature|private[._]?key",
        # Files in `day=…/` folders are asked of the disk: an in-memory catalog knows of no partition, and has no rows.
        "spark.sql.hive.manageFilesourcePartitions": "false",
        # Reading a list of more than 32 files would run a job just to list them.
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    }
    conf |= PINNED
    given = dict(settings.spark_config)
    if _is_local(settings):
        # What a killed JVM leaves, such as native libraries, is swept with the folder.
        java_temporary = shlex.quote(f"-Djava.io.tmpdir={folder}")
        options = (_COMPILE_LATER, java_temporary, archive_option, given.pop(_JAVA_OPTIONS, None))
        conf |= {
            # Not `spark.jars`: the class archive holds what the JVM's own class path has.
            "spark.driver.extraClassPath": os.pathsep.join(jars),
            _JAVA_OPTIONS: " ".join(option for option in options if option),
            "spark.local.dir": folder,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            # Delta rebuilds a snapshot in 50 tasks and Spark shuffles in 200: for a cluster, not for these cores.
            "spark.databricks.delta.snapshotPartitions": str(cores),
            "spark.sql.shuffle.partitions": str(2 * cores),
            # VACUUM lists in this many tasks, 10,000 by default: two minutes for a table of one file.
            "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(2 * cores),
        }
    else:
        conf["spark.jars"] = ",".join(jars)
    return conf | given


def _is_local(settings: SessionSettings) -> bool:
    return settings.master is None or settings.master.startswith("local")


def _java() -> str:
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


def _spark_home() -> str:
    """Where Spark is, by pyspark's own rules; without importing all of it, which has time while the JVM starts."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    rules = runpy.run_path(str(Path(found.origin).with_name("find_spark_home.py")))
    return str(rules["_find_spark_home"]())


def _start_failed(said: Path, error: Exception) -> PenstockError:
    lines = [line for line in said.read_text(errors="replace").splitlines() if line.strip()]
    # The first line that names an exception is the reason; the frames below it are not.
    reason = next((line for line in lines if "Exception" in line or "Error" in line), None)
    text = reason or (lines[-1] if lines else str(error).splitlines()[0])
    return PenstockError(
        f"Spark did not start: {text.strip()}",
        fix="Spark needs Java 17 or 21 (`java -version`); check `session:` in the profile.",
    )


def _silence_python() -> None:
    """pyspark prints each failing query's context, and py4j each broken pipe, to stderr."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    # It complains in the root logger's name as well: of a JVM that ends while objects are still being let go of.
    logging.getLogger().addFilter(_is_not_py4js)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


class _IfNumpy:
    """A converter of numpy's values for Java, that looks at a value's type before it asks numpy."""

    def __init__(self, converter: Any) -> None:
        self._converter = converter

    def can_convert(self, value: Any) -> bool:
        ours = any(kind.__module__.partition(".")[0] == "numpy" for kind in type(value).__mro__)
        return ours and self._converter.can_convert(value)

    def convert(self, value: Any, client: Any) -> Any:
        return self._converter.convert(value, client)


def _spare_numpy() -> None:
    """pyspark imports its tests and pandas, which takes a second, to ask whether a text is an array of numpy's."""
    from py4j import protocol
    from pyspark.sql.types import NumpyArrayConverter, NumpyScalarConverter

    converters = protocol.INPUT_CONVERTER
    for index, converter in enumerate(converters):
        if isinstance(converter, (NumpyArrayConverter, NumpyScalarConverter)):
            converters[index] = _IfNumpy(converter)


def _end(archive: ClassArchive, *, local: bool) -> None:
    """As the process ends: a JVM of its own that has nothing left to do or to write is not asked to tidy up."""
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None:
        archive.keep()  # `stop` has ended it already
        return
    if not local or archive.is_due or getattr(gateway, "proc", None) is None:
        _end_gateway()
        archive.keep()
        return
    context: Any = SparkContext._active_spark_context
    if context is not None:
        # Its thread would tell of the broken connection.
        context._accumulatorServer.handle_error = lambda *_: None
    gateway.shutdown()
    gateway.proc.kill()  # not to be refused, so the next line ends
    gateway.proc.wait()


def _end_gateway() -> None:
    from py4j.protocol import Py4JError
    from pyspark import SparkContext

    gateway: Any = SparkContext._gateway
    if gateway is None:
        return
    if SparkContext._active_spark_context is not None:
        try:
            # Else the JVM goes away under pyspark's own threads, which say so on stderr.
            SparkContext._active_spark_context.stop()
        except Py4JError as error:
            log.debug("Spark was gone already: %s", error)
    SparkContext._gateway = None
    SparkContext._jvm = None
    gateway.shutdown()
    if getattr(gateway, "proc", None) is not None:
        # The JVM ends when this pipe does.
        gateway.proc.stdin.close()
        try:
            gateway.proc.wait(timeout=_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            gateway.proc.kill()
