"""Locations are kept in one form, and split without being parsed as URLs."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.storage import normalize, split_path, split_root


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("file:///data/my%20lake/", "/data/my lake"),
        ("/data/lake/", "/data/lake"),
        ("lake", "/project/lake"),
        ("./a/../lake", "/project/lake"),
        ("s3://bucket/lake/", "s3://bucket/lake"),
        ("abfss://c@account.dfs.core.windows.net/lake", "abfss://c@account.dfs.core.windows.net/lake"),
    ],
)
def test_locations_are_kept_in_one_form(given: str, kept: str) -> None:
    assert normalize(given, "/project") == kept


@pytest.mark.parametrize("given", ["file://./lake", "file://lake", "file://host/data/lake"])
def test_a_file_uri_with_a_host_is_refused(given: str) -> None:
    with pytest.raises(PenstockError, match="file:///"):
        normalize(given, "/project")


@pytest.mark.parametrize(
    ("root", "store", "key"),
    [
        ("/data/a%3Ab", "/data/a%3Ab", ""),
        ("s3://bucket", "s3://bucket", ""),
        ("s3://bucket/a%3Ab/c#d?e", "s3://bucket", "a%3Ab/c#d?e"),
        ("abfss://c@account.dfs.core.windows.net/lake", "abfss://c@account.dfs.core.windows.net", "lake"),
        ("https://account.blob.core.windows.net/c/lake", "https://account.blob.core.windows.net/c/lake", ""),
    ],
)
def test_a_root_is_split_into_store_and_key(root: str, store: str, key: str) -> None:
    assert split_root(root) == (store, key)


@pytest.mark.parametrize(
    ("path", "root", "key"),
    [
        ("/landing/eu/1.csv", "/landing/eu", "1.csv"),
        ("/landing/us/1.csv", "/landing", "us/1.csv"),
        ("/landings/1.csv", "/landings", "1.csv"),
        ("s3://b/in/x#y/1.csv", "s3://b/in", "x#y/1.csv"),
        ("s3://b/other/x#y/1.csv", "s3://b", "other/x#y/1.csv"),
        ("/1.csv", "/", "1.csv"),
    ],
)
def test_a_file_belongs_to_the_nearest_root(path: str, root: str, key: str) -> None:
    assert split_path(path, ["/landing", "/landing/eu", "s3://b/in"]) == (root, key)
