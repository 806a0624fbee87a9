"""How Spark meets this machine: Java classes of ours, compiled once on it by the compiler that Spark carries.

Hadoop starts a process for every permission that it sets and every link that it looks at: two dozen for the commit of
a small table. And Delta's commit on a local disk is no commit when two processes make the same version at once.
`PlanNodes`, which lists a plan's nodes for `facts.py`, is compiled along with them.
Beside them lies an empty `yarn-default.xml`, which Hadoop finds before its own: its settings are sent along with every
task, half of them are YARN's, and to unpack them is a fifth of what a small task does.
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

log = logger("penstock.local_disk")

_SECONDS_TO_END = 30
SHARED_DISK = {"spark.delta.logStore.file.impl": "penstock.LocalLog"}
"""The setting for a cluster: its driver commits, on a disk that it shares with its workers."""

LOCAL_DISK = SHARED_DISK | {
    "spark.hadoop.fs.file.impl": "penstock.LocalFiles",
    # Delta writes its version checksums with it; the one that is taken by itself starts `readlink` processes.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
"""The settings that put the first two classes to work where this process is all of Spark."""

# Not the empty `yarn-default.xml`, because a cluster may be YARN's, nor the files, which are the workers' as well.
_OF_A_CLUSTER = ("LocalLog.java",)


def local_disk_jar(spark_home: str, java: str, jars: list[str], folder: str, *, local: bool = True) -> str | None:
    """The jar with these, made in `folder` where the cache can't be written; None, with a warning, where it can't be made.

    For a cluster (not `local`) it holds the class of the log alone.
    """
    if os.name != "posix":
        return None
    ours = resources.files("penstock.spark").joinpath("java").iterdir()
    sources = {item.name: item.read_text() for item in ours if local or item.name in _OF_A_CLUSTER}
    name = f"local-disk-{digest(spark_home, jars, sources)}.jar"
    kept = _kept()
    if kept is not None and is_trusted_file(kept / name):
        return str(kept / name)
    place = (kept if kept is not None and os.access(kept, os.W_OK) else Path(folder)) / name
    with tempfile.TemporaryDirectory(dir=place.parent) as work:
        for source, text in sources.items():
            (Path(work) / source).write_text(text)
        try:
            _compile(work, spark_home, java, jars)
        except Exception as error:  # a Spark of another making, without that compiler
            log.warning(
                "Delta's own log store is used on the local disk, because penstock's can't be compiled: %s. "
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
        os.replace(made, place)
    return str(place)


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
    """The cache's folder; None where there is none, and none can be made."""
    try:
        return trusted_folder(COMPILED)
    except OSError:
        return None
