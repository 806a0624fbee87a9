"""The JVM's class archive: what Spark loads at its start, loaded once and kept (Java's CDS).

Reading and verifying some 15,000 classes is two thirds of a cold start's work. The first process on a machine
writes them down as its JVM ends; every later JVM maps them into memory.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress

from penstock.spark.startup.cache import BEFORE, COMPILED, cache_folder, is_trusted_file, trusted_folder

_UNUSED_SECONDS, _UNFINISHED_SECONDS = 30 * 24 * 3600, 24 * 3600
# Java 17 keeps, with a method, that its compilers have given it up: after a long life these are so many that the next
# JVM interprets what it should compile, and takes twice as long.
_LONG_LIFE_SECONDS = 300


class ClassArchive:
    """The archive for one Java and one class path; a JVM that does not fit it runs without."""

    def __init__(self, java: str, spark_home: str, jars: list[str]) -> None:
        binary, spark = os.path.realpath(java), os.path.join(spark_home, "jars")
        made = [str(os.stat(path).st_mtime_ns) for path in (binary, spark) if os.path.exists(path)]
        identity = [binary, spark, *made, *jars]
        self.made_of = hashlib.sha256("\n".join(identity).encode()).hexdigest()
        """The digest of all that it is made of."""
        self.path = cache_folder() / COMPILED / f"{self.made_of[:16]}.jsa"
        self._written = self.path.with_suffix(f".{os.getpid()}")
        self._began = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the JVM is to write it as it ends."""
        return not self.path.exists() and time.monotonic() - self._began < _LONG_LIFE_SECONDS

    def java_option(self) -> str | None:
        """Read the archive, or have it written as the JVM ends; None where it can't be kept."""
        try:
            trusted_folder(COMPILED)
            if is_trusted_file(self.path):
                with suppress(PermissionError):  # root's, brought along by an image
                    os.utime(self.path)
                return f"-XX:SharedArchiveFile={self.path}"
            if not os.access(self.path.parent, os.W_OK):
                return None
        except OSError:
            return None  # a home that can't be written costs seconds, not the run
        return f"-XX:ArchiveClassesAtExit={self._written}"

    def keep(self) -> None:
        """After the JVM has ended: let later ones find what it wrote."""
        if self._written.exists():
            os.replace(self._written, self.path)
            self._remove_unused()

    def _remove_unused(self) -> None:
        """Each is some 200 MB, and an upgrade of Java, Spark or Delta leaves one behind, a killed process half of one."""
        before = cache_folder() / BEFORE
        for kept in [*self.path.parent.iterdir(), *(before.iterdir() if before.is_dir() else ())]:
            if kept.suffix in (".jsa", ".json"):
                seconds = _UNUSED_SECONDS
            elif kept.suffix[1:].isdigit():
                seconds = _UNFINISHED_SECONDS
            else:
                continue
            with suppress(FileNotFoundError):  # another process has put its own in place
                if time.time() - kept.stat().st_mtime > seconds:
                    kept.unlink()
