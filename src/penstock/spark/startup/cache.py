"""This user's cache on this machine: jars, compiled classes and class archives.

Its content becomes running code, so whoever can write there can run code as this user. It is used only if nobody but
this user, or root, can have written there.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from penstock.errors import PenstockError

COMPILED = "compiled"
"""The folder of class archives, launch files and our classes. Earlier versions used `classes`, and checked no owner."""
JARS = "jars"
BEFORE = "classes"
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def cache_folder() -> Path:
    """The cache's folder, which may not exist yet."""
    given = os.environ.get("PENSTOCK_CACHE")
    if given:
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "penstock")


def trusted_folder(name: str) -> Path:
    """A folder of the cache, created if needed. PenstockError if others own it or may write there.

    OSError if it can't be created.
    """
    base = cache_folder()
    _make(base, mends=_is_of_before(base))
    # Jars can be trusted again, because their checksums are compared before each use.
    _make(base / name, mends=name == JARS)
    return base / name


def _is_of_before(base: Path) -> bool:
    """Whether an earlier version created it, with the umask: on many machines that lets the group write."""
    return not (base / COMPILED).exists() and any((base / name).exists() for name in (JARS, BEFORE))


def is_trusted_file(path: Path) -> bool:
    """Whether a file exists, and only this user or root may write it."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return stat.S_ISREG(found.st_mode) and _is_ours(found) and not found.st_mode & _OTHERS_WRITE


def write_private(path: Path, text: str) -> None:
    """Write a new file that nobody else can read, in place of an older one."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)


def _make(folder: Path, *, mends: bool) -> None:
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    check_folder(folder, mends=mends)


def check_folder(folder: Path, *, mends: bool = False) -> None:
    """PenstockError if others own a folder of the cache or may write there; `mends` takes that right away."""
    if os.name != "posix":
        return
    found = folder.stat()
    if not _is_ours(found):
        raise PenstockError(
            f"The cache folder belongs to {_name(found.st_uid)}, and this process runs as {_name(os.geteuid())}. It is "
            f"not used, because its owner could run code as {_name(os.geteuid())}",
            where=str(folder),
            fix=f"Set PENSTOCK_CACHE to a folder of this user's own, or give it to this user: `chown -R "
            f"{os.geteuid()} {cache_folder()}`.",
        )
    if found.st_mode & _OTHERS_WRITE:
        # Never repair a folder that is meant for all, such as /tmp.
        if mends and found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX:
            folder.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS_WRITE)
            return
        raise PenstockError(
            f"The cache may be written by others (mode {stat.S_IMODE(found.st_mode):o}): it is not used, because they "
            "could run code as this user",
            where=str(folder),
            fix=f"Set PENSTOCK_CACHE to a folder of your own, such as {cache_folder() / 'penstock'}; or remove `{COMPILED}` and "
            f"`{JARS}` in {cache_folder()}, which are made again, and take the right away: `chmod go-w {folder}`.",
        )


def _is_ours(found: os.stat_result) -> bool:
    """Whether this user or root owns it: an image may bring a cache along, and root can do anything anyway."""
    return os.name != "posix" or found.st_uid in (os.geteuid(), 0)


def _name(uid: int) -> str:
    import pwd

    try:
        return f"{pwd.getpwuid(uid).pw_name}, {uid}"
    except KeyError:
        return str(uid)
