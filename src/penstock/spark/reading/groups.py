"""Files that Spark reads together. Nothing here imports pyspark."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from penstock.spark.reading.file_names import escaped, has_colon, is_like_a_pattern
from penstock.storage import is_below

_FOLDER_COLUMN = re.compile(r"([^/=]+)=[^/]*")


@dataclass(frozen=True)
class FileGroup:
    """Files below one root whose folders name the same columns."""

    root: str
    folders: tuple[str, ...]
    """The columns that the folders name."""
    files: tuple[str, ...]
    """Their paths as Hadoop spells them."""

    @property
    def folder_names(self) -> frozenset[str]:
        """The columns of the folders in lower case."""
        return frozenset(name.lower() for name in self.folders)

    @property
    def has_patterns(self) -> bool:
        """Whether a path looks like a pattern to Spark."""
        return any(map(is_like_a_pattern, self.files))

    @property
    def is_escaped(self) -> bool:
        """Whether Spark gets the paths as escaped patterns. It gets a single path as a name."""
        return len(self.files) > 1 and self.has_patterns

    @property
    def paths(self) -> list[str]:
        """The paths to give to Spark."""
        return [escaped(path) for path in self.files] if self.is_escaped else list(self.files)


def grouped(paths: Iterable[str], roots: Sequence[str], hadoop: Callable[[str], str]) -> list[FileGroup]:
    """Files in groups that Spark can read by one call each; `hadoop` spells a path for Spark."""
    # The longest root first: a file below two roots belongs to the nearer one.
    nearest_first = sorted(roots, key=len, reverse=True)
    groups: dict[tuple[str, tuple[str, ...], str], list[str]] = {}
    for path in paths:
        root = next((root for root in nearest_first if is_below(path, root)), os.path.dirname(path))
        # Hadoop's patterns can't have a colon, escaped or not. Such a file is read alone, by its name.
        alone = path if is_like_a_pattern(path) and has_colon(path) else ""
        groups.setdefault((root, _folder_columns(path[len(root) :]), alone), []).append(hadoop(path))
    return [FileGroup(root, folders, tuple(files)) for (root, folders, _), files in groups.items()]


def _folder_columns(below: str) -> tuple[str, ...]:
    """
    >>> _folder_columns("/day=2026-04-08/eu/hour=12/a.json")
    ('day', 'hour')
    """
    folders = below.rsplit("/", 1)[0].split("/")
    return tuple(found.group(1) for folder in folders if (found := _FOLDER_COLUMN.fullmatch(folder)))
