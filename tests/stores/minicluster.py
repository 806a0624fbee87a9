"""A small HDFS on loopback: Hadoop's own mini-cluster, in a JVM that a py4j gateway starts."""

from __future__ import annotations

import glob
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from penstock.spark.startup.java import find_java

JARS = Path(pyspark.__file__).parent / "jars"
_VERSION = "3.5.0"
_KEPT = Path(__file__).parents[2] / ".tools" / "hdfs"
_NEEDED = (
    "hadoop-client-api",
    "hadoop-client-runtime",
    "slf4j-api",
    "jcl-over-slf4j",
    "commons-logging",
    "log4j",
    "py4j",
)


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """The URI of a file system with one name node and one data node."""
    jars = [jar for name in _NEEDED for jar in glob.glob(f"{JARS}/{name}*.jar")]
    # py4j writes to it from threads of its own, until the JVM ends.
    log = (folder / "log").open("w")
    port, token, process = launch_gateway(
        classpath=":".join([str(_jar()), *jars]),
        jarpath=next(JARS.glob("py4j*.jar")).as_posix(),
        javaopts=["-Xmx512m"],
        enable_auth=True,
        die_on_exit=True,
        return_proc=True,
        redirect_stdout=log,
        redirect_stderr=log,
    )
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auth_token=token))
    try:
        conf = gateway.jvm.org.apache.hadoop.conf.Configuration()
        conf.set("hdfs.minidfs.basedir", str(folder / "data"))
        cluster = gateway.jvm.org.apache.hadoop.hdfs.MiniDFSCluster.Builder(conf).numDataNodes(1).build()
        cluster.waitActive()
        yield str(cluster.getURI().toString())
    finally:
        gateway.shutdown()
        process.kill()
        process.wait()


def _jar() -> Path:
    """The mini-cluster's jar, fetched once with the Ivy that Spark carries."""
    jar = _KEPT / "jars" / f"hadoop-client-minicluster-{_VERSION}.jar"
    if not jar.exists():
        _KEPT.mkdir(parents=True, exist_ok=True)
        settings, module = _KEPT / "settings.xml", _KEPT / "ivy.xml"
        settings.write_text(
            f'<ivysettings><settings defaultResolver="central"/><caches defaultCacheDir="{_KEPT}/cache"/><resolvers>'
            '<ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>'
        )
        module.write_text(
            '<ivy-module version="2.0"><info organisation="penstock" module="hdfs"/><configurations>'
            '<conf name="default"/></configurations><dependencies><dependency org="org.apache.hadoop" '
            f'name="hadoop-client-minicluster" rev="{_VERSION}" transitive="false" conf="default->default"/>'
            "</dependencies></ivy-module>"
        )
        command = [find_java(), "-cp", f"{JARS}/*", "org.apache.ivy.Main", "-warn", "-settings", str(settings)]
        command += ["-ivy", str(module), "-types", "jar", "-retrieve", f"{_KEPT}/jars/[artifact]-[revision].[ext]"]
        subprocess.run(command, check=True, capture_output=True, timeout=900)
    return jar
