"""Locations are kept in one form, and split without being parsed as URLs."""

from __future__ import annotations

import pytest

from penstock.errors import PenstockError
from penstock.storage import hadoop_uri, normalize, split_path, split_root


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("file:///data/my%20lake/", "/data/my lake"),
        ("/data/lake/", "/data/lake"),
        ("lake", "/project/lake"),
        ("./a/../lake", "/project/lake"),
        ("s3://bucket/lake/", "s3://bucket/lake"),
        ("abfss://c@account.dfs.core.windows.net/lake", "abfss://c@account.dfs.core.windows.net/lake"),
        ("S3A://bucket//lake///a/", "s3://bucket/lake/a"),
        ("s3n://Bucket/Lake", "s3://Bucket/Lake"),
        ("https://bucket.s3.eu-west-1.amazonaws.com/lake", "s3://bucket/lake"),
        ("https://s3.eu-west-1.amazonaws.com/bucket/lake", "s3://bucket/lake"),
        ("gcs://bucket/lake", "gs://bucket/lake"),
        ("abfs://c@Account.dfs.core.windows.net/Lake", "abfss://c@account.dfs.core.windows.net/Lake"),
        ("wasbs://c@account.blob.core.windows.net/lake", "abfss://c@account.dfs.core.windows.net/lake"),
        ("https://account.dfs.core.windows.net/c/lake", "abfss://c@account.dfs.core.windows.net/lake"),
        (
            "https://onelake.dfs.fabric.microsoft.com/shop/house.Lakehouse/Files/in",
            "abfss://shop@onelake.dfs.fabric.microsoft.com/house.Lakehouse/Files/in",
        ),
        ("azure://c/lake", "az://c/lake"),
        ("adl://c/lake", "az://c/lake"),
        ("hdfs://name:8020/lake/", "hdfs://name:8020/lake"),
    ],
)
def test_locations_are_kept_in_one_form(given: str, kept: str) -> None:
    assert normalize(given, "/project") == kept
    assert normalize(kept, "/project") == kept


@pytest.mark.parametrize("given", ["az://c/lake", "azure://c/lake", "abfss://c/lake", "adl://c/lake"])
@pytest.mark.parametrize("key", ["account_name", "azure_storage_account_name", "AZURE_ACCOUNT_NAME", None])
def test_the_account_of_azure_may_be_an_option(given: str, key: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if key is None:
        monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "shop")
    found = normalize(given, options={key: "shop"} if key else {})
    assert found == "abfss://c@shop.dfs.core.windows.net/lake"
    assert hadoop_uri(found) == found


def test_spark_needs_the_account_of_azure() -> None:
    with pytest.raises(PenstockError, match="account_name"):
        hadoop_uri("az://c/lake")


@pytest.mark.parametrize("given", ["https://example.com/lake", "s3:///lake", "hdfs:///lake", "s3://", "http://"])
def test_a_uri_without_a_store_is_an_error(given: str) -> None:
    with pytest.raises(PenstockError, match="s3://bucket/"):
        normalize(given)


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
        ("https://account.blob.core.windows.net/c/lake", "abfss://c@account.dfs.core.windows.net", "lake"),
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
