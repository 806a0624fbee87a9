"""Delta's jars, and Spark's own for Avro: resolved once with Ivy, then taken from a cache, offline too."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from xml.sax.saxutils import quoteattr

from penstock.errors import PenstockError

_DELTA = version("delta-spark")
_UNITY = "0.6.0"
_SPARK = ".".join(version("pyspark").split(".")[:2])
# 4.2 has published none, and reads and writes with that of 4.1.
_AVRO = {"4.0": "4.0.1"}.get(_SPARK, "4.1.1")
# Only what pyspark does not bring itself: Ivy would fetch 33 jars, 26 of them for nothing.
_COORDINATES = (
    ("io.delta", "delta-spark_{spark}_2.13", _DELTA),
    ("io.delta", "delta-storage", _DELTA),
    ("io.delta", "delta-kernel-api", _DELTA),
    ("io.delta", "delta-kernel-defaults", _DELTA),
    ("io.delta", "delta-kernel-unitycatalog", _DELTA),
    ("io.unitycatalog", "unitycatalog-client", _UNITY),
    ("io.unitycatalog", "unitycatalog-hadoop", _UNITY),
    ("org.apache.spark", "spark-avro_2.13", _AVRO),
)


def cache_folder() -> Path:
    base = os.environ.get("PENSTOCK_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "penstock"
    )
    return Path(base) / "jars" / f"delta-{_DELTA}-avro-{_AVRO}-spark-{_SPARK}"


def given_jars(given: Sequence[str]) -> list[str]:
    """The jars that the profile names."""
    missing = [jar for jar in given if "://" not in jar and not os.path.exists(jar)]
    if missing:
        raise PenstockError(
            f"`session.jars` names what is not there: {', '.join(missing)}",
            fix="Name Delta's jars by their whole paths, or leave `session.jars` out to have them fetched.",
        )
    return list(given)


def delta_jars(spark_home: str, java: str, repositories: tuple[str, ...] = ()) -> list[str]:
    """The paths of the jars, fetched on the first call on a machine."""
    folder = cache_folder()
    if not folder.is_dir():
        _fetch(folder, spark_home, java, repositories)
    return sorted(str(path) for path in folder.glob("*.jar"))


def _fetch(folder: Path, spark_home: str, java: str, repositories: tuple[str, ...]) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix="fetch-", dir=folder.parent))
    except OSError as error:
        raise PenstockError(
            f"Delta's jars have no place to go: {error}",
            where=str(folder.parent),
            fix="Set PENSTOCK_CACHE to a folder that can be written, or `session.jars` to the jars themselves.",
        ) from error
    try:
        (staging / "settings.xml").write_text(_settings(staging, repositories))
        (staging / "ivy.xml").write_text(_module())
        classpath = os.path.join(spark_home, "jars", "*")
        command = [java, "-cp", classpath, "org.apache.ivy.Main", "-warn"]
        command += ["-settings", str(staging / "settings.xml"), "-ivy", str(staging / "ivy.xml")]
        command += ["-types", "jar", "-retrieve", str(staging / "jars" / "[artifact]-[revision].[ext]")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        found = list((staging / "jars").glob("*.jar"))
        if done.returncode != 0 or len(found) < len(_COORDINATES):
            log = folder.parent / "fetch.log"
            log.write_text(done.stdout + done.stderr)
            raise PenstockError(
                "Delta's jars could not be fetched from the Maven repositories",
                where=f"what Ivy said is in {log}",
                fix="Check the network, name a mirror in `session.repositories`, "
                "or fetch the jars by hand and list them in `session.jars`.",
            )
        try:
            os.rename(staging / "jars", folder)
        except OSError:
            if not folder.is_dir():  # else another process was first, with the same jars
                raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _settings(staging: Path, repositories: tuple[str, ...]) -> str:
    # An own file, because Ivy's default chain looks into ~/.m2 first and fails on a POM without its jar.
    extra = "".join(
        f'<ibiblio name="given-{number}" m2compatible="true" root={quoteattr(root)}/>'
        for number, root in enumerate(repositories)
    )
    cache = quoteattr(str(staging / "cache"))
    return (
        f'<ivysettings><settings defaultResolver="all"/><caches defaultCacheDir={cache}/><resolvers>'
        f'<chain name="all" returnFirst="true">{extra}<ibiblio name="central" m2compatible="true"/></chain>'
        "</resolvers></ivysettings>"
    )


def _module() -> str:
    wanted = "".join(
        f'<dependency org="{org}" name="{name.format(spark=_SPARK)}" rev="{rev}" transitive="false"'
        ' conf="default->default"/>'
        for org, name, rev in _COORDINATES
    )
    return (
        '<ivy-module version="2.0"><info organisation="penstock" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )
