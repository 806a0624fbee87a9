"""How much memory this process may use: the lowest limit of the machine and of all control groups above the process."""

from __future__ import annotations

import os
from pathlib import Path

MEBIBYTE = 1024 * 1024
_SMALLEST = 512 * MEBIBYTE
# The other half is for Python, for Spark's off-heap buffers and for the page cache that its shuffles live in.
_SHARE_OF_DRIVER = 0.5


def budget(proc: Path = Path("/proc"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that this process may use in total."""
    limits = [limit for limit in (_physical(), *_group_limits(proc, groups)) if limit > 0]
    return min(limits) if limits else 4096 * MEBIBYTE


def driver_memory(total: int | None = None) -> str:
    """The driver's heap out of a budget, as Spark writes it.

    >>> driver_memory(8 * 1024 * 1024 * 1024)
    '4096m'
    """
    total = budget() if total is None else total
    return f"{max(int(total * _SHARE_OF_DRIVER), _SMALLEST) // MEBIBYTE}m"


def _physical() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 0


def _group_limits(proc: Path, groups: Path) -> list[int]:
    """The limits of the process's own control group and of all that enclose it (v2 and v1)."""
    try:
        lines = (proc / "self" / "cgroup").read_text().splitlines()
    except OSError:
        return []
    limits = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            limits += _walk_up(groups, path, "memory.max")
        elif "memory" in controllers.split(","):
            limits += _walk_up(groups / "memory", path, "memory.limit_in_bytes")
    return limits


def _walk_up(base: Path, path: str, file: str) -> list[int]:
    limits = []
    folder = base / path.lstrip("/")
    # Inside a container the path may name a group that is visible only from outside; then the base is our own group.
    for group in (folder, *folder.parents):
        try:
            text = (group / file).read_text().strip()
        except OSError:
            text = ""
        if text.isdigit():
            limits.append(int(text))
        if group == base:
            break
    return limits
