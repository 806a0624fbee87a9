"""Starts Spark, from jars and settings to the first session. `launch` starts the JVM for it. Nothing is printed."""

from __future__ import annotations

import atexit
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.config.session_settings import SessionSettings
from penstock.errors import PenstockError
from penstock.secrets import logger
from penstock.spark.startup import end, temporary
from penstock.spark.startup.archive import ClassArchive
from penstock.spark.startup.checked import check_supported
from penstock.spark.startup.cluster import driver_environment, wait_for_executors
from penstock.spark.startup.compiler_flags import COMPILE_LATER
from penstock.spark.startup.configuration import spark_configuration
from penstock.spark.startup.jars import delta_jars, given_jars
from penstock.spark.startup.java import find_java, find_spark_home
from penstock.spark.startup.launch import Launch, spark_conf
from penstock.spark.startup.local_disk import LOCAL_DISK, LOG_STORES, local_disk_jar
from penstock.spark.startup.numpy_converter import spare_numpy
from penstock.spark.startup.python import choose_python
from penstock.spark.startup.quiet import silence_python
from penstock.spark.startup.store_jars import store_jars
from penstock.spark.startup.store_settings import NO_STORES, StoreSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logger("penstock.session")


def start(settings: SessionSettings, stores: StoreSettings = NO_STORES) -> SparkSession:
    """Start Spark, and end it with this process. An error if Java, a jar or the JVM is missing or fails.

    It starts with the jars and the settings of these stores.

    A JVM that does not start with the shortcuts of `session.fast_start` starts once more without them.
    """
    if settings.remote:
        raise PenstockError(
            "Spark Connect (`session.remote`) is not supported yet",
            where=settings.remote,
            fix="Use `session.master` for a cluster, or neither for Spark in this process.",
        )
    start = _Start(settings, stores)
    if settings.fast_start:
        try:
            return start.session(fast=True)
        except PenstockError as error:
            if start.has_started:
                raise
            log.debug("Spark starts again, without the shortcuts of `session.fast_start`: %s", error)
    return start.session(fast=False)


class _Start:
    """What a start needs, with the shortcuts and without them."""

    def __init__(self, settings: SessionSettings, stores: StoreSettings) -> None:
        self._settings, self._local = settings, settings.is_local
        self._stores = stores
        self.has_started = False
        """Whether a JVM did start; then a second try fails as the first."""
        self._java, self._spark_home = find_java(), find_spark_home(settings.spark_home)
        if settings.spark_home:
            os.environ["SPARK_HOME"] = self._spark_home  # for pyspark, which looks for Spark's script there
        choose_python(settings)
        temporary.sweep()
        self._temporary = temporary.TemporaryFolder()
        self._jars = given_jars(settings.jars) or delta_jars(self._spark_home, self._java, settings.repositories)
        self._jars += store_jars(settings, stores.kinds, self._spark_home, self._java)

    def session(self, *, fast: bool) -> SparkSession:
        """The first session of a Spark that starts now."""
        disk = local_disk_jar(
            self._spark_home, self._java, self._jars, self._temporary.path, local=self._local, fast=fast
        )
        jars = [*self._jars, disk] if disk else self._jars
        archive = ClassArchive(self._java, self._spark_home, jars)
        configuration = self._configuration(archive, jars, disk is not None, fast=fast)
        launch = Launch(
            self._java,
            self._spark_home,
            self._temporary.path,
            archive.path.with_suffix(".json"),
            self._temporary.descriptors,
            archive.made_of,
            {} if self._local else driver_environment(configuration, self._temporary.path),
        )
        session = self._launched(launch, configuration, fast=fast)
        atexit.register(end.end, archive, local=self._local, fast=fast)
        try:
            check_supported(session, archive.made_of)
            if not self._local:
                wait_for_executors(session.sparkContext)
        except PenstockError:
            end.stop()
            raise
        return session

    def _configuration(self, archive: ClassArchive, jars: list[str], has_disk: bool, *, fast: bool) -> dict[str, str]:
        # Files that a killed JVM leaves, such as native libraries, are removed with the folder.
        options = [shlex.quote(f"-Djava.io.tmpdir={self._temporary.path}")]
        if fast and self._local:
            options = [COMPILE_LATER, *options, archive.java_option() or ""]
        configuration = spark_configuration(self._settings, self._temporary.path, jars, options)
        configuration = {**self._stores.settings, **configuration}
        if has_disk:
            configuration = (LOCAL_DISK if self._local else LOG_STORES) | configuration
        return configuration

    def _launched(self, launch: Launch, configuration: dict[str, str], *, fast: bool) -> SparkSession:
        said = Path(self._temporary.path) / "spark.log"
        log.debug("starting Spark; its output goes to %s", said)
        with said.open("wb") as sink:
            try:
                gateway = launch.gateway(
                    configuration, self._settings.spark_config, sink, directly=fast and self._local
                )
                self.has_started = True
                from pyspark import SparkContext
                from pyspark.sql import SparkSession

                silence_python()
                if fast:
                    spare_numpy()
                context = SparkContext(gateway=gateway, conf=spark_conf(configuration))
            except Exception as error:
                raise _start_failed(said, error, None if self._local else configuration["spark.master"]) from error
        return SparkSession(context)


def _start_failed(said: Path, error: Exception, master: str | None) -> PenstockError:
    lines = [line for line in said.read_text(errors="replace").splitlines() if line.strip()]
    # The first line that names an exception is the reason; the frames below it are not.
    reason = next((line for line in lines if "Exception" in line or "Error" in line), None)
    text = reason or (lines[-1] if lines else str(error).splitlines()[0])
    if master is not None:
        return PenstockError(
            f"Spark did not start on the cluster: {text.strip()}",
            where=master,
            fix="Check that the master runs, that this machine can reach it, and that its Spark has the version of pyspark.",
        )
    return PenstockError(
        f"Spark did not start: {text.strip()}",
        fix="Spark needs Java 17 or 21 (`java -version`); check `session:` in the profile.",
    )
