"""Checks of this machine and of the lake's store: Java, memory, versions, cache, jars, root, store. No JVM starts."""

from __future__ import annotations

import os
import platform
import re
import shutil
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

from penstock.config.session_settings import SessionSettings
from penstock.errors import PenstockError
from penstock.lake.lookup import Lookup
from penstock.spark.startup import cache
from penstock.spark.startup.jars import JarSet, delta_jar_set, given_jars, missing_jars
from penstock.spark.startup.java import find_java, find_spark_home
from penstock.spark.startup.memory import MEBIBYTE, budget, driver_memory
from penstock.spark.startup.store_jars import jar_set
from penstock.spark.startup.store_settings import StoreSettings
from penstock.wording import count

Verdict = Literal["ok", "warning", "error"]

PROBE = ".penstock-doctor-"
"""The prefix of the hidden object that is written and deleted below the root."""
_JAVAS = (17, 21)
_PACKAGES = ("dbt-core", "dbt-adapters", "dbt-spark", "pyspark", "delta-spark", "deltalake", "obstore", "pyarrow")
_LITTLE = 3 * 1024 * MEBIBYTE
_RELEASE = re.compile(r'^JAVA_VERSION="(?:1\.)?(\d+)([^"]*)"', re.MULTILINE)
_SIZE = re.compile(r"(\d+)\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}


@dataclass(frozen=True)
class Check:
    """One check, what it found, and what to do."""

    name: str
    verdict: Verdict
    found: str
    fix: str | None = None


def doctor(lake: Lookup, settings: SessionSettings) -> list[Check]:
    """All checks of a lake and of the machine that its Spark would start on. A hidden object is written and deleted."""
    checks: list[tuple[str, Callable[[], Check]]] = [
        ("python", _python),
        ("packages", _packages),
        ("java", _java),
        ("spark", lambda: _spark(settings)),
        ("memory", lambda: _memory(settings)),
        ("cache", _cache),
        *((f"jars of {name}", check) for name, check in _jars(lake, settings)),
        ("root", lambda: _root(lake)),
        ("store", lambda: _store(lake)),
    ]
    return [_checked(name, check) for name, check in checks]


def _checked(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except PenstockError as error:
        where = "" if error.where is None else f" ({error.where})"
        return Check(name, "error", f"{error.what}{where}", error.fix)


def _python() -> Check:
    return Check("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def _packages() -> Check:
    found, missing = [f"dbt-penstock {_version('dbt-penstock') or 'from its sources'}"], []
    for package in _PACKAGES:
        installed = _version(package)
        if installed is None:
            missing.append(package)
        else:
            found.append(f"{package} {installed}")
    if missing:
        return Check(
            "packages", "error", f"missing: {', '.join(missing)}", "Install dbt-penstock again, with its dependencies."
        )
    return Check("packages", "ok", ", ".join(found))


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _java() -> Check:
    java = find_java()
    home = Path(os.path.realpath(java)).parents[1]
    try:
        found = _RELEASE.search((home / "release").read_text())
    except OSError:
        found = None
    if found is None:
        return Check(
            "java", "warning", f"{java}, whose version can't be told without starting it", "Look at `java -version`."
        )
    text = f"{java}, version {found.group(1)}{found.group(2)}"
    if int(found.group(1)) not in _JAVAS:
        return Check("java", "error", text, "Spark needs Java 17 or 21: install one, and set JAVA_HOME to its folder.")
    return Check("java", "ok", text)


def _spark(settings: SessionSettings) -> Check:
    home = find_spark_home(settings.spark_home)
    where = settings.master or settings.spark_config.get("spark.master") or "in this process"
    return Check("spark", "ok", f"{home}, {where}")


def _memory(settings: SessionSettings) -> Check:
    total = budget()
    heap = settings.memory or settings.spark_config.get("spark.driver.memory") or driver_memory(total)
    text = f"{_gigabytes(total)} for this process, of which Spark's heap gets {heap}"
    if _bytes(heap) > total:
        return Check("memory", "error", text, "Set `session.memory` to at most half of the memory.")
    if _bytes(heap) > 0.8 * total:
        return Check("memory", "warning", text, "Python and Spark's buffers need memory too: lower `session.memory`.")
    if total < _LITTLE:
        return Check("memory", "warning", text, "Give the container or the machine 4 GB.")
    return Check("memory", "ok", text)


def _gigabytes(number: int) -> str:
    return f"{number / 1024**3:.1f} GB"


def _bytes(text: str) -> int:
    found = _SIZE.fullmatch(text.strip())
    return int(found.group(1)) * _UNITS[found.group(2).lower()] if found else 0


def _cache() -> Check:
    folder = cache.cache_folder()
    if not folder.exists():
        above = next(path for path in folder.parents if path.exists())
        if not os.access(above, os.W_OK | os.X_OK):
            return Check(
                "cache", "error", f"{folder} can't be created", "Set PENSTOCK_CACHE to a folder that can be written."
            )
        return Check("cache", "ok", f"{folder}, which the first start creates")
    for path in (folder, folder / cache.JARS, folder / cache.COMPILED):
        if path.exists():
            cache.check_folder(path)
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check(
            "cache",
            "warning",
            f"{folder} can't be written, so each start does its work again",
            "Set PENSTOCK_CACHE to a folder of your own.",
        )
    used = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    owner, mode = folder.stat().st_uid, folder.stat().st_mode & 0o777
    free = shutil.disk_usage(folder).free
    text = f"{folder}, {used / 1e6:,.0f} MB, owner {owner}, mode {mode:o}, {_gigabytes(free)} free"
    if free < 500 * MEBIBYTE:
        return Check("cache", "warning", text, "Free some space: jars and class archives take about 300 MB.")
    return Check("cache", "ok", text)


def _jars(lake: Lookup, settings: SessionSettings) -> Iterator[tuple[str, Callable[[], Check]]]:
    if settings.jars:
        yield "Delta", lambda: Check("jars", "ok", f"{len(given_jars(settings.jars))} jars of `session.jars`")
        return
    yield "Delta", lambda: _jar_check("Delta", delta_jar_set(), settings)
    stores = StoreSettings.of_lake(lake.root, lake.storage_options, settings).kinds
    for store in sorted(stores):
        try:
            jars = jar_set(store)
        except KeyError:
            continue  # Spark itself has a client for this kind of store
        yield store, _check_of(store, jars, settings)


def _check_of(name: str, jars: JarSet, settings: SessionSettings) -> Callable[[], Check]:
    return lambda: _jar_check(name, jars, settings)


def _jar_check(name: str, jars: JarSet, settings: SessionSettings) -> Check:
    title = f"jars of {name}"
    missing = missing_jars(jars)
    if not missing:
        return Check(title, "ok", f"all {len(jars.names)} are in the cache")
    source = settings.repositories[0].url if settings.repositories else "Maven Central"
    return Check(
        title,
        "warning",
        f"{len(missing)} of {len(jars.names)} are not in the cache: the next start of Spark fetches them from {source}",
        "Without a network: fetch them by hand and list them in `session.jars`, or name a mirror in "
        "`session.repositories`.",
    )


def _root(lake: Lookup) -> Check:
    lake.storage.check_root(writable=not lake.read_only)
    schemas = lake.schemas()
    return Check(
        "root", "ok", f"{lake.root}, {count(len(schemas), 'schema')}" if schemas else f"{lake.root}, without schemas"
    )


def _store(lake: Lookup) -> Check:
    """Write, read and delete a hidden object; the second write-if-absent of the same name must be refused."""
    storage = lake.storage
    if lake.read_only:
        return Check("store", "ok", "open for reading only: nothing was written")
    if storage.local and not os.path.isdir(lake.root):
        return Check("store", "ok", "the first run creates the folder")
    path, data = f"{PROBE}{uuid.uuid4().hex}", b"penstock doctor"
    try:
        first = storage.write_new(path, data)
        read = storage.read(path)
        second = storage.write_new(path, b"another writer")
        again = storage.read(path)
    finally:
        storage.delete(path)
    if not first or read != data or storage.exists(path):
        return Check("store", "error", "an object that was written is not read back, or not deleted", _BROKEN)
    if second or again != data:
        return Check(
            "store",
            "error",
            "the store lets two writers write the same new object, so two runs at once could lose a commit",
            "Use a store with conditional writes, or set `session.single_writer: true` if one process at a time writes.",
        )
    return Check("store", "ok", "written, read, refused a second time, and deleted")


_BROKEN = "Check the store, and any cache or proxy in front of it."
