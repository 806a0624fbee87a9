"""Locations as text: local paths and URIs, normalized, joined and split."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote

from penstock.config.store_options import azure_account
from penstock.errors import PenstockError
from penstock.secrets import credentials_problem

# Each kind of store has one scheme. Spark's clients and others have more names for it.
_SAME_STORE = {
    "s3a": "s3", "s3n": "s3", "gcs": "gs", "abfs": "abfss", "wasb": "abfss", "wasbs": "abfss", "azure": "az", "adl": "az",
}  # fmt: skip
# Spark reads S3 through Hadoop's client, which uses another scheme.
_HADOOP_SCHEMES = {"s3": "s3a"}
_SLASHES = re.compile(r"/{2,}")
_WEB = ("http", "https")
_AZURE_HOST = re.compile(r"(?P<account>[^.@/]+)\.(?:dfs|blob)\.(?P<end>core\.windows\.net|fabric\.microsoft\.com)")
_S3_HOST = re.compile(r"(?:(?P<bucket>.+)\.)?s3(?:[.-][a-z0-9-]+)*\.amazonaws\.com(?:\.cn)?")
_STORES = "s3://bucket/…, gs://bucket/…, abfss://container@account.dfs.core.windows.net/… or hdfs://host:port/…"


def is_uri(text: str) -> bool:
    return "://" in text


def hadoop_uri(location: str) -> str:
    """A location in the spelling of Hadoop's file systems.

    >>> hadoop_uri("s3://bucket/lake"), hadoop_uri("/data/lake")
    ('s3a://bucket/lake', '/data/lake')
    """
    if not is_uri(location):
        return location
    scheme, rest = one_spelling(location).split("://", 1)
    if scheme == "az":
        raise PenstockError(
            "Spark needs the name of the storage account",
            where=location,
            fix="Set `account_name` in `storage_options`, or write abfss://container@account.dfs.core.windows.net/….",
        )
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}://{rest}"


def one_spelling(uri: str, options: Mapping[str, str] | None = None) -> str:
    """The one spelling of all URIs that name the same place. `options` may name the account of an `az://` URI.

    >>> one_spelling("s3a://bucket//lake/")
    's3://bucket/lake'
    >>> one_spelling("https://shop.dfs.core.windows.net/raw/in")
    'abfss://raw@shop.dfs.core.windows.net/in'
    >>> one_spelling("az://raw/in", {"account_name": "shop"})
    'abfss://raw@shop.dfs.core.windows.net/in'
    """
    scheme, _, rest = uri.partition("://")
    if not rest.partition("/")[0]:
        raise PenstockError("The URI has no bucket, container or host", where=uri, fix=f"Write {_STORES}.")
    scheme, rest = scheme.lower(), _SLASHES.sub("/", rest).strip("/")
    if scheme in _WEB:
        return _web_address(uri, rest)
    scheme = _SAME_STORE.get(scheme, scheme)
    bucket, slash, key = rest.partition("/")
    container, at, host = bucket.rpartition("@")
    if scheme in ("az", "abfss") and not at and (account := azure_account(options or {})):
        return f"abfss://{bucket}@{account}.dfs.core.windows.net{slash}{key}"
    if scheme == "abfss" and (found := _AZURE_HOST.fullmatch(host.lower())):
        return f"abfss://{container}@{found['account']}.dfs.{found['end']}{slash}{key}"
    return f"{'az' if scheme == 'abfss' and not at else scheme}://{rest}"


def _web_address(uri: str, rest: str) -> str:
    """The URI of the bucket or container behind a web address; delta-rs and Spark do not take web addresses."""
    host, _, path = rest.partition("/")
    bucket, slash, key = path.partition("/")
    if (found := _AZURE_HOST.fullmatch(host.lower())) and bucket:
        return f"abfss://{bucket}@{found['account']}.dfs.{found['end']}{slash}{key}"
    if found := _S3_HOST.fullmatch(host.lower()):
        return f"s3://{found['bucket']}/{path}".rstrip("/") if found["bucket"] else f"s3://{path}"
    raise PenstockError(
        f"This web address is not the address of a known object store: {host}",
        where=uri,
        fix=f"Write {_STORES}. The address of your own S3 server belongs in `storage_options.endpoint`.",
    )


def normalize(location: str, base: str | Path | None = None, options: Mapping[str, str] | None = None) -> str:
    """A location as an absolute local path, or as a URI in its one spelling, without a trailing slash.

    A relative path starts at `base`, or at the working directory.

    >>> normalize("file:///data/lake/")
    '/data/lake'
    >>> normalize("s3a://bucket/lake/")
    's3://bucket/lake'
    """
    if location[:5].lower() == "file:":
        location = unquote(_path_of_file_uri(location))
    if "\0" in location:
        raise PenstockError(f"The path {location!r} contains a null character", fix="Correct the path.")
    if is_uri(location):
        return one_spelling(location, options)
    try:
        path = Path(location).expanduser()
    except RuntimeError as error:
        raise PenstockError(f"The home folder in {location} can't be found", fix="Write the whole path.") from error
    if not path.is_absolute():
        path = Path(base or os.getcwd()) / path
    return os.path.normpath(path)


def given_location(
    location: str,
    base: str | Path | None = None,
    *,
    key: str = "location",
    options: Mapping[str, str] | None = None,
) -> str:
    """A user's location, normalized. If it holds credentials, this raises an error that does not show them."""
    if problem := credentials_problem(location):
        raise PenstockError(f"`{key}` {problem}", where=location)
    return normalize(location, base, options)


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


def prefix(root: str) -> str:
    """The text that all paths below a root begin with.

    >>> prefix("/landing"), prefix("/")
    ('/landing/', '/')
    """
    return root.rstrip("/") + "/"


def is_below(path: str, root: str) -> bool:
    """Whether a path is below a root. A root is not below itself.

    >>> is_below("/landing/eu/1.csv", "/landing"), is_below("/landing_old/1.csv", "/landing")
    (True, False)
    """
    return path.startswith(prefix(root)) and path != prefix(root)


def split_root(root: str) -> tuple[str, str]:
    """The address of the store to open, and the key of the root in that store. A key is never parsed as a URL.

    >>> split_root("s3://bucket/a%3Ab/c#d")
    ('s3://bucket', 'a%3Ab/c#d')
    """
    if not is_uri(root):
        return root, ""
    scheme, rest = one_spelling(root).split("://", 1)
    bucket, _, prefix = rest.partition("/")
    return f"{scheme}://{bucket}", prefix


def split_path(path: str, roots: Iterable[str]) -> tuple[str, str]:
    """The nearest root above a file, and the file's key below that root.

    Without such a root: the file's bucket or folder, and its key there.

    >>> split_path("s3://b/landing/eu/1.csv", ["s3://b/landing", "s3://b/landing/eu"])
    ('s3://b/landing/eu', '1.csv')
    """
    above = [root for root in roots if is_below(path, root)]
    if above:
        root = max(above, key=len)
        return root, path[len(prefix(root)) :]
    if is_uri(path):
        store, key = split_root(path)
        if key:
            return store, key
    folder, _, name = path.rpartition("/")
    return folder or "/", name
