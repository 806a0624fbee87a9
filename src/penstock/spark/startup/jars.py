"""Jars that Spark lacks, fetched once with Ivy, then taken from the cache: Delta's, Spark's own for Avro, and a store's."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen
from xml.sax.saxutils import quoteattr

from penstock.config.session_settings import Repository
from penstock.errors import PenstockError
from penstock.secrets import logger, redact
from penstock.spark.startup.cache import JARS, cache_folder, is_trusted_file, trusted_folder, write_private

log = logger("penstock.jars")

_REALM = re.compile(r'realm="([^"]*)"', re.IGNORECASE)
_SECONDS_TO_ASK = 30

_DELTA = version("delta-spark")
# For seven jars, 30 MB. Ivy itself waits without limit for a server that accepts and then sends nothing.
_SECONDS_TO_FETCH = 900
_OTHER_WAYS = (
    "Check the network, name a mirror in `session.repositories`, or fetch the jars by hand and list them in "
    "`session.jars`."
)
_UNITY = "0.6.0"
_SPARK = ".".join(version("pyspark").split(".")[:2])
# 4.2 has published none, and reads and writes with the jar of 4.1.
_AVRO = "4.1.1"
# The jars that pyspark does not have. With their dependencies, Ivy would fetch 33 jars, of which 26 are not needed.
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
# As Maven Central has them; all of those that these versions of Delta and Spark can ask for.
_SHA256 = {
    "delta-spark_4.1_2.13-4.4.0.jar": "75a9400986853c061f5109f012547de2545a5759e5e752e5ef633dabe16a4f10",
    "delta-spark_4.2_2.13-4.4.0.jar": "27d4fd8b1f879535c573ed1c718177d6a27f24d3e626ba02e216369725721ead",
    "delta-storage-4.4.0.jar": "c46735481fa8e326b0957be02b4420cbcab4b325bb08009b7f2045a95133f1cc",
    "delta-kernel-api-4.4.0.jar": "ee9b5a14ac3b7efdff4d61a58478fe8eb0e5a3fbca43889dca7290795fe79a11",
    "delta-kernel-defaults-4.4.0.jar": "225c975199e4718b38ee5b7e6da7f19e9585024262b2cec2656b32151a856b0b",
    "delta-kernel-unitycatalog-4.4.0.jar": "cea22dfb4ac562b3cd27bf652697750e8336009d73fb06631363aaaad5345ffa",
    "unitycatalog-client-0.6.0.jar": "48257499a86b801a3e2372cec55ac226ca1c1c7eabe5c118e7302f29a1fdbc19",
    "unitycatalog-hadoop-0.6.0.jar": "c47b63c961c87102b9e1d63809a0915ba4c86b7652f57c8d39ca3a05b441a150",
    "spark-avro_2.13-4.1.1.jar": "6a19d90bc3b6e88d8db0fa36a19273aa10fea2dbd7a62bb60e4cedd73051b32d",
}


Coordinates = tuple[str, str, str]
"""A jar in a Maven repository: organisation, name and revision."""


@dataclass(frozen=True)
class JarSet:
    """Jars that belong together, in one folder of the cache."""

    what: str
    """Their name in messages."""
    folder: str
    coordinates: Sequence[Coordinates]
    sums: Mapping[str, str] = field(repr=False)
    """The SHA-256 of each file, as Maven Central has it."""

    @property
    def names(self) -> list[str]:
        return [f"{name}-{revision}.jar" for _, name, revision in self.coordinates]


def _coordinates() -> list[Coordinates]:
    return [(organisation, name.format(spark=_SPARK), revision) for organisation, name, revision in _COORDINATES]


def given_jars(given: Sequence[str]) -> list[str]:
    """The jars that the profile names; an error if one is missing."""
    missing = [jar for jar in given if "://" not in jar and not os.path.exists(jar)]
    if missing:
        raise PenstockError(
            f"`session.jars` names what is not there: {', '.join(missing)}",
            fix="Name Delta's jars by their whole paths, or leave `session.jars` out to have them fetched.",
        )
    return list(given)


def delta_jars(spark_home: str, java: str, repositories: tuple[Repository, ...] = ()) -> list[str]:
    """The paths of Delta's jars and of Spark's jar for Avro, as `fetched` returns them."""
    return fetched(delta_jar_set(), spark_home, java, repositories)


def delta_jar_set() -> JarSet:
    """Delta's jars and Spark's jar for Avro."""
    return JarSet("Delta's jars", f"delta-{_DELTA}-avro-{_AVRO}-spark-{_SPARK}", _coordinates(), _SHA256)


def missing_jars(jars: JarSet) -> list[str]:
    """The jars that the cache does not have as they were published. Nothing is fetched or created."""
    folder = cache_folder() / JARS / jars.folder
    return [name for name in jars.names if name not in jars.sums or not _is_right(folder / name, jars)]


def fetched(jars: JarSet, spark_home: str, java: str, repositories: tuple[Repository, ...] = ()) -> list[str]:
    """The paths of the jars, which are fetched once a machine; an error if one can't be fetched or has another checksum."""
    if unknown := [name for name in jars.names if name not in jars.sums]:
        raise PenstockError(
            f"There is no checksum for {', '.join(unknown)}: these versions of Delta and Spark were not tested together",
            fix="Install the versions that dbt-penstock asks for, or fetch the jars by hand and list them in "
            "`session.jars`.",
        )
    try:
        folder = trusted_folder(JARS) / jars.folder
        if not all(_is_right(folder / name, jars) for name in jars.names):
            _fetch(folder, jars, spark_home, java, repositories)
    except OSError as error:
        raise PenstockError(
            f"{jars.what} have no place to go: {error}",
            where=str(cache_folder()),
            fix="Set PENSTOCK_CACHE to a folder that can be written, or `session.jars` to the jars themselves.",
        ) from error
    return sorted(str(folder / name) for name in jars.names)


def _is_right(jar: Path, jars: JarSet) -> bool:
    """Whether the jar is there as it was published. To read all jars takes 15 ms, so no result is cached."""
    if not is_trusted_file(jar):
        return False
    if hashlib.sha256(jar.read_bytes()).hexdigest() == jars.sums[jar.name]:
        return True
    log.warning("%s is not as it was published, and is fetched again", jar)
    return False


def _fetch(folder: Path, jars: JarSet, spark_home: str, java: str, repositories: tuple[Repository, ...]) -> None:
    staging = Path(tempfile.mkdtemp(prefix="fetch-", dir=folder.parent))
    try:
        write_private(staging / "settings.xml", _settings(staging, jars, repositories))
        (staging / "ivy.xml").write_text(_module(jars))
        done = _ivy(jars, staging, spark_home, java, repositories)
        arrived = staging / "jars"
        if done.returncode != 0 or not all((arrived / name).exists() for name in jars.names):
            told = folder.parent / "fetch.log"
            write_private(told, redact(done.stdout + done.stderr))
            raise PenstockError(
                f"{jars.what} could not be fetched from the Maven repositories",
                where=f"Ivy's output: {told}",
                fix=_OTHER_WAYS,
            )
        for name in jars.names:
            (arrived / name).chmod(0o644)
        if wrong := [name for name in jars.names if not _is_right(arrived / name, jars)]:
            raise PenstockError(
                f"The Maven repositories gave other files than were published: {', '.join(wrong)} "
                "(the SHA-256 sums differ)",
                fix="Nothing of them was kept. Check the mirrors in `session.repositories`, and any proxy in between.",
            )
        folder.mkdir(mode=0o700, exist_ok=True)
        folder.chmod(0o700)
        for name in jars.names:
            # One by one, because another process may fetch the same jars, or run with them.
            os.replace(arrived / name, folder / name)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _ivy(
    jars: JarSet, staging: Path, spark_home: str, java: str, repositories: tuple[Repository, ...]
) -> subprocess.CompletedProcess[str]:
    """Run Ivy, the resolver that Spark carries; an error if it does not end in time."""
    classpath = os.path.join(spark_home, "jars", "*")
    command = [java, "-cp", classpath, "org.apache.ivy.Main", "-warn"]
    command += ["-settings", str(staging / "settings.xml"), "-ivy", str(staging / "ivy.xml")]
    # A bundle is a jar for OSGi.
    command += ["-types", "jar", "bundle", "-retrieve", str(staging / "jars" / "[artifact]-[revision].[ext]")]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_SECONDS_TO_FETCH)
    except subprocess.TimeoutExpired as error:
        raise PenstockError(
            f"{jars.what} did not arrive within {_SECONDS_TO_FETCH // 60} minutes",
            where=redact(", ".join(repository.url for repository in repositories)) or "Maven Central",
            fix=_OTHER_WAYS,
        ) from error


def _settings(staging: Path, jars: JarSet, repositories: tuple[Repository, ...]) -> str:
    # With settings of our own, because Ivy's default chain looks into ~/.m2 first, and fails at a POM without a jar.
    extra = "".join(
        f'<ibiblio name="given-{number}" m2compatible="true" root={quoteattr(given.url)}/>'
        for number, given in enumerate(repositories)
    )
    cache = quoteattr(str(staging / "cache"))
    return (
        f'<ivysettings>{_credentials(jars, repositories)}<settings defaultResolver="all"/><caches defaultCacheDir={cache}/>'
        f'<resolvers><chain name="all" returnFirst="true">{extra}<ibiblio name="central" m2compatible="true"/></chain>'
        "</resolvers></ivysettings>"
    )


def _credentials(jars: JarSet, repositories: tuple[Repository, ...]) -> str:
    """Ivy's block of users and passwords. Its file is readable by this user alone, and is removed after the fetch."""
    return "".join(
        f"<credentials host={quoteattr(urlsplit(one.url).hostname or '')} realm={quoteattr(_realm(one.url, jars))} "
        f"username={quoteattr(one.user)} passwd={quoteattr(one.password)}/>"
        for one in repositories
        if one.user and one.password
    )


def _realm(url: str, jars: JarSet) -> str:
    """The realm that a server asks for a password by; Ivy gives the password to no other realm."""
    organisation, name, revision = jars.coordinates[-1]
    jar = f"{url.rstrip('/')}/{organisation.replace('.', '/')}/{name}/{revision}/{name}-{revision}.jar"
    try:
        with urlopen(Request(jar, method="HEAD"), timeout=_SECONDS_TO_ASK) as answer:
            asked = answer.headers.get("WWW-Authenticate")
    except HTTPError as error:
        asked = error.headers.get("WWW-Authenticate")
    except OSError as error:
        log.debug("the repository %s does not answer: %s", url, error)
        asked = None
    found = _REALM.search(asked or "")
    return found.group(1) if found else ""


def _module(jars: JarSet) -> str:
    wanted = "".join(
        f'<dependency org="{org}" name="{name}" rev="{rev}" transitive="false" conf="default->default"/>'
        for org, name, rev in jars.coordinates
    )
    return (
        '<ivy-module version="2.0"><info organisation="penstock" module="jars"/>'
        f'<configurations><conf name="default"/></configurations><dependencies>{wanted}</dependencies></ivy-module>'
    )
