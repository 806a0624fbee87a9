"""Paths of files as Spark and Hadoop read them: patterns, colons, and URIs. Nothing here imports pyspark."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

from penstock.storage import is_uri

# Spark takes a path with one of these for a pattern. With `__globPaths__=false` it reads the path as a name, but then
# reads every path of the list once for each such path. So these characters are escaped instead.
_PATTERN = re.compile(r"[\[\]{}*?\\]")
_COLON = "its name has a colon, which Hadoop's file system on disk can't open"


def unreadable_names(paths: Iterable[str]) -> dict[str, str]:
    """The files whose names no Spark can open, each with the reason."""
    return {path: _COLON for path in paths if not is_uri(path) and ":" in path.rsplit("/", 1)[-1]}


def is_like_a_pattern(path: str) -> bool:
    return _PATTERN.search(path) is not None


def has_colon(path: str) -> bool:
    """Whether a path has a colon beside the one of its scheme."""
    return ":" in path.partition("://")[2 if is_uri(path) else 0]


def escaped(path: str) -> str:
    """A path as a pattern that matches this path only.

    >>> escaped("/landing/a[1].json")
    '/landing/a\\\\[1\\\\].json'
    """
    return _PATTERN.sub(r"\\\g<0>", path)


def path_of_uri(uri: str) -> str:
    """The path of a URI of Spark's, spelled as the path was given to Spark.

    >>> path_of_uri("file:///landing/a%20%5Bb%5D%2541.json"), path_of_uri("s3a://bucket/a%23b")
    ('/landing/a [b]%41.json', 's3a://bucket/a#b')
    """
    return "/" + unquote(uri[len("file:") :]).lstrip("/") if uri.startswith("file:") else unquote(uri)
