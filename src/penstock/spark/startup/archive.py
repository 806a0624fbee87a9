"""The JVM's class archive: the classes that Spark loads at its start, kept in the cache (Java's CDS).

To read and verify some 15,000 classes is two thirds of the work of a cold start. The JVM of the first process on a
machine writes the archive as it ends, and every later JVM maps it into memory.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress

from penstock.spark.startup.cache import BEFORE, COMPILED, cache_folder, is_trusted_file, trusted_folder

_UNUSED_SECONDS, _UNFINISHED_SECONDS = 30 * 24 * 3600, 24 * 3600
# Java 17 stores with each method that its compilers have given it up. After a long life these are many: the next JVM
# interprets methods that it should compile, and takes twice as long.
_LONG_LIFE_SECONDS = 300


class ClassArchive:
    """The archive for one Java and one class path; Java ignores an archive that does not fit."""

    def __init__(self, java: str, spark_home: str, jars: list[str]) -> None:
        binary, spark = os.path.realpath(java), os.path.join(spark_home, "jars")
        made = [str(os.stat(path).st_mtime_ns) for path in (binary, spark) if os.path.exists(path)]
        identity = [binary, spark, *made, *jars]
        self.made_of = hashlib.sha256("\n".join(identity).encode()).hexdigest()
        """The digest of the Java and the jars that it is for."""
        self.path = cache_folder() / COMPILED / f"{self.made_of[:16]}.jsa"
        self._written = self.path.with_suffix(f".{os.getpid()}")
        self._began = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether the JVM writes the archive as it ends."""
        return not self.path.exists() and time.monotonic() - self._began < _LONG_LIFE_SECONDS

    def java_option(self) -> str | None:
        """The option to use the archive, or to write it as the JVM ends; None if the cache can't be written."""
        try:
            trusted_folder(COMPILED)
            if is_trusted_file(self.path):
                with suppress(PermissionError):  # root's, brought along by an image
                    os.utime(self.path)
                return f"-XX:SharedArchiveFile={self.path}"
            if not os.access(self.path.parent, os.W_OK):
                return None
        except OSError:
            return None  # a home that can't be written costs seconds, and no run
        return f"-XX:ArchiveClassesAtExit={self._written}"

    def keep(self) -> None:
        """After the JVM has ended: put the archive that it wrote where later JVMs find it."""
        if self._written.exists():
            os.replace(self._written, self.path)
            self._remove_unused()

    def _remove_unused(self) -> None:
        """Remove archives that nothing uses: an upgrade of Java, Spark or Delta leaves 200 MB, a killed process half of that."""
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
