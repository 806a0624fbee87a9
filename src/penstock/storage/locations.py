"""Locations as text: local paths and URIs, normalized, joined and split."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from penstock.errors import PenstockError
from penstock.secrets import credentials_problem

# Spark reads S3 and ADLS through Hadoop's clients, which use other schemes.
_HADOOP_SCHEMES = {"s3": "s3a", "az": "abfss", "adl": "abfss"}


def is_uri(text: str) -> bool:
    return "://" in text


def hadoop_uri(location: str) -> str:
    """A location in the spelling of Hadoop's file systems.

    >>> hadoop_uri("s3://bucket/lake"), hadoop_uri("/data/lake")
    ('s3a://bucket/lake', '/data/lake')
    """
    if not is_uri(location):
        return location
    scheme, rest = location.split("://", 1)
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"


def normalize(location: str, base: str | Path | None = None) -> str:
    """A location as an absolute local path, or as a URI without a trailing slash.

    A relative path starts at `base`, or at the working directory.

    >>> normalize("file:///data/lake/")
    '/data/lake'
    >>> normalize("s3://bucket/lake/")
    's3://bucket/lake'
    """
    if location[:5].lower() == "file:":
        location = unquote(_path_of_file_uri(location))
    if "\0" in location:
        raise PenstockError(f"The path {location!r} contains a null character", fix="Correct the path.")
    if is_uri(location):
        return location.rstrip("/")
    try:
        path = Path(location).expanduser()
    except RuntimeError as error:
        raise PenstockError(f"The home folder in {location} can't be found", fix="Write the whole path.") from error
    if not path.is_absolute():
        path = Path(base or os.getcwd()) / path
    return os.path.normpath(path)


def given_location(location: str, base: str | Path | None = None, *, key: str = "location") -> str:
    """A user's location, normalized. If it holds credentials, this raises an error that does not show them."""
    if problem := credentials_problem(location):
        raise PenstockError(f"`{key}` {problem}", where=location)
    return normalize(location, base)


def _path_of_file_uri(uri: str) -> str:
    """The path in a `file:` URI. As in Spark, `#` and `?` are ordinary characters of the path."""
    rest = uri[5:]
    if not rest.startswith("//"):
        return rest
    host, slash, path = rest[2:].partition("/")
    if host not in ("", "localhost"):
        raise PenstockError(
            f"{uri} has a host, {host}, in the place where the path should begin",
            fix="Write file:///… with three slashes and the whole path, or only the path.",
        )
    return slash + path


def join(location: str, *parts: str) -> str:
    return "/".join([location.rstrip("/"), *parts])


def split_root(root: str) -> tuple[str, str]:
    """The address of the store to open, and the key of the root in that store. A key is never parsed as a URL.

    >>> split_root("s3://bucket/a%3Ab/c#d")
    ('s3://bucket', 'a%3Ab/c#d')
    """
    scheme, separator, rest = root.partition("://")
    if not separator or scheme.lower() in ("http", "https"):
        # The bucket may be anywhere in a web address, so obstore parses it.
        return root, ""
    bucket, _, prefix = rest.partition("/")
    return f"{scheme}://{bucket}", prefix.rstrip("/")


def split_path(path: str, roots: Iterable[str]) -> tuple[str, str]:
    """The nearest root above a file, and the file's key below that root.

    Without such a root: the file's bucket or folder, and its key there.

    >>> split_path("s3://b/landing/eu/1.csv", ["s3://b/landing", "s3://b/landing/eu"])
    ('s3://b/landing/eu', '1.csv')
    """
    above = [root for root in roots if path.startswith(root.rstrip("/") + "/")]
    if above:
        root = max(above, key=len)
        return root, path[len(root.rstrip("/")) + 1 :]
    if is_uri(path):
        store, key = split_root(path)
        if key:
            return store, key
    folder, _, name = path.rpartition("/")
    return folder or "/", name
