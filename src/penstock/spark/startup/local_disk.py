"""Java classes of ours in one jar, compiled once on this machine by the compiler that Spark carries.

`LocalFiles` sets permissions by system calls: Hadoop starts a process for each permission that it sets and each link
that it reads, two dozen for the commit of a small table. `LocalLog` commits by a hard link: with Delta's own log store
two processes can commit the same version of a table on a local disk, and one commit is lost. `S3Log` does the same on
S3, by a put with a condition. `PlanNodes` lists the
nodes of a plan for `facts.py`. The jar also holds the empty file of `yarn_defaults.py`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any

from penstock.lake.relations import digest
from penstock.secrets import logger
from penstock.spark.startup.cache import COMPILED, is_trusted_file, trusted_folder
from penstock.spark.startup.yarn_defaults import YARN_DEFAULTS

log = logger("penstock.local_disk")

_SECONDS_TO_END = 30
_S3_LOG = "penstock.S3Log"
LOG_STORES = {
    "spark.delta.logStore.file.impl": "penstock.LocalLog",
    "spark.delta.logStore.s3.impl": _S3_LOG,
    "spark.delta.logStore.s3a.impl": _S3_LOG,
}
"""The settings that commit by our classes. On a cluster, the driver commits on a disk that it shares with its workers."""

LOCAL_DISK = LOG_STORES | {
    "spark.hadoop.fs.file.impl": "penstock.LocalFiles",
    # Delta writes its version checksums with this class; the default one starts `readlink` processes.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""The settings that use these classes, if this process is all of Spark."""

# Executors may open the disk before they have fetched our jar, and YARN reads its own defaults.
_NOT_ON_A_CLUSTER = ("LocalFiles.java", YARN_DEFAULTS)


def local_disk_jar(
    spark_home: str, java: str, jars: list[str], folder: str, *, local: bool = True, fast: bool = True
) -> str | None:
    """The path of the jar; it is made in `folder` if the cache can't be written. None, with a warning, if it can't be made.

    For a cluster (not `local`) it has neither `LocalFiles` nor the empty file; without `fast`, it has no empty `yarn-default.xml`.
    """
    if os.name != "posix":
        return None
    ours = resources.files("penstock.spark").joinpath("java").iterdir()
    sources = {
        item.name: item.read_text()
        for item in ours
        if (local or item.name not in _NOT_ON_A_CLUSTER) and (fast or item.name != YARN_DEFAULTS)
    }
    name = f"local-disk-{digest(spark_home, jars, sources)}.jar"
    kept = _kept()
    if kept is not None and is_trusted_file(kept / name):
        return str(kept / name)
    path = (kept if kept is not None and os.access(kept, os.W_OK) else Path(folder)) / name
    with tempfile.TemporaryDirectory(dir=path.parent) as work:
        for source, text in sources.items():
            (Path(work) / source).write_text(text)
        try:
            _compile(work, spark_home, java, jars)
        except Exception as error:  # a Spark that was built without this compiler
            log.warning(
                "Delta's own log store is used on the local disk and on S3, because penstock's can't be compiled: %s. "
                "When two processes commit to a table at once, one commit may be lost: run one at a time, or use the "
                "pyspark that pip installs.",
                str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__,
            )
            return None
        made = Path(work) / name
        with zipfile.ZipFile(made, "w") as jar:
            for item in sorted([*Path(work).rglob("*.class"), *Path(work).glob("*.xml")]):
                jar.write(item, item.relative_to(work))
        made.chmod(0o600)
        os.replace(made, path)
    return str(path)


def _compile(work: str, spark_home: str, java: str, jars: list[str]) -> None:
    from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

    classpath = os.pathsep.join([os.path.join(spark_home, "jars", "*"), *jars])
    py4j = next(str(path) for path in Path(spark_home, "jars").glob("py4j-*.jar"))
    port, token, process = launch_gateway(
        jarpath=py4j, classpath=classpath, java_path=java, die_on_exit=True, enable_auth=True, return_proc=True
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        jvm: Any = gateway.jvm
        found = sorted(Path(work).glob("*.java"))
        files = gateway.new_array(jvm.java.io.File, len(found))
        for index, source in enumerate(found):
            files[index] = jvm.java.io.File(str(source))
        compiler = jvm.org.codehaus.janino.Compiler()
        compiler.setDestinationDirectory(jvm.java.io.File(work), False)
        compiler.compile(files)
    finally:
        gateway.shutdown()
        # The JVM ends when this pipe does.
        process.stdin.close()
        try:
            process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            process.kill()


def _kept() -> Path | None:
    """The cache's folder; None if there is none, and none can be made."""
    try:
        return trusted_folder(COMPILED)
    except OSError:
        return None
