"""`storage_options` of every type and spelling reach the store; a wrong one is an error that shows no value."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from dbt_common.dataclass_schema import ValidationError

from dbt.adapters.penstock.credentials import PenstockCredentials
from penstock.api import Lake
from penstock.config import store_options
from penstock.delta.table import Table
from penstock.errors import PenstockError
from penstock.storage import Storage
from tests.s3_server import S3, serve

MARK = "MaRk7-of-the-options"


@pytest.fixture(scope="module")
def s3() -> Iterator[S3]:
    with serve() as store:
        yield store


@pytest.mark.parametrize(
    "typed",
    [
        {"allow_http": True, "timeout": 30, "connect_timeout": "5s", "pool_max_idle_per_host": 4},
        {"ALLOW_HTTP": "true", "TIMEOUT": "30", "aws_connect_timeout": "1m 30s", "http1_only": False},
        {
            "aws_allow_http": "yes",
            "read_timeout": 30.0,
            "skip_signature": False,
            "virtual_hosted_style_request": "false",
        },
        {"allow_http": "1", "timeout": None, "azure_storage_account_key": "YQ==", "google_service_account": "/no/file"},
        {"allow_http": True, "AWS_S3_ALLOW_UNSAFE_RENAME": True, "max_retries": 3},
    ],
)
@pytest.mark.parametrize("spelling", ["{}", "aws_{}", "AWS_{}"])
def test_values_as_yaml_gives_them(s3: S3, typed: dict[str, Any], spelling: str) -> None:
    own = {"endpoint": s3.endpoint, "region": "us-east-1", "access_key_id": "a", "secret_access_key": "b"}
    written = {(spelling.format(key) if "{" in spelling else key): value for key, value in own.items()}
    if spelling.isupper() or spelling.startswith("AWS"):
        written = {key.upper(): value for key, value in written.items()}
    lake = Lake("s3://bucket/lake", storage_options=written | typed)
    assert lake.schemas() == []
    assert lake.storage.write_new("a/b", b"x")
    lake.storage.delete("a/b")
    with pytest.raises(PenstockError, match="There is no Delta table"):
        Table.open("s3://bucket/lake/no/table", lake.storage_options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"acces_key_id": MARK}, "`storage_options.acces_key_id` is not known: did you mean `access_key_id`?"),
        ({"alow_http": MARK}, "did you mean `allow_http`?"),
        ({"zzz": MARK}, "`storage_options.zzz` is not known"),
        ({"allow_http": MARK}, "`storage_options.allow_http` must be true or false"),
        ({"timeout": MARK}, "`storage_options.timeout` must be a time such as 30s"),
        ({"TIMEOUT": "30S" + MARK}, "`storage_options.TIMEOUT` must be a time such as 30s"),
        ({"pool_max_idle_per_host": MARK}, "`storage_options.pool_max_idle_per_host` must be a whole number"),
        ({"secret_access_key": [MARK]}, "`storage_options.secret_access_key` must be a string"),
        ({"region": {MARK: MARK}}, "`storage_options.region` must be a string"),
        (
            {"aws_access_key_id": MARK, "ACCESS_KEY_ID": MARK},
            "one key under two names, `aws_access_key_id` and `ACCESS_",
        ),
        ([MARK], "`storage_options` must be a block of settings"),
        (
            {"fs.s3a.access.key": MARK},
            "`storage_options.fs.s3a.access.key` is not known: the key here is access_key_id",
        ),
        ({"spark.hadoop.fs.s3a.secret.key": MARK}, "the key here is secret_access_key"),
        ({"fs.s3a.path.style.access": MARK}, "the key here is virtual_hosted_style_request (false is path style)"),
        ({"fs.azure.account.key.shop.dfs.core.windows.net": MARK}, "the key here is account_name and account_key"),
        ({"fs.s3a.threads.max": MARK}, "`session.spark_config` as `spark.hadoop.fs.s3a.threads.max`"),
        ({"connection_string": MARK}, "the key here is account_name and account_key"),
        ({"anon": MARK}, "the key here is skip_signature"),
        ({"max_retries": MARK}, "`storage_options.max_retries` must be a whole number"),
        ({"retry_timeout": MARK}, "`storage_options.retry_timeout` must be a time such as 30s"),
    ],
)
def test_a_wrong_one_is_one_error_without_its_value(options: Any, message: str) -> None:
    (problem,) = store_options.problems(options)
    assert message in problem
    assert MARK not in problem
    with pytest.raises(PenstockError) as caught:
        Lake("s3://bucket/lake", storage_options=options)
    assert problem in str(caught.value)
    with pytest.raises(ValidationError) as refused:
        PenstockCredentials.validate({"root": "s3://bucket/lake", "schema": "s", "storage_options": options})
    assert problem in str(refused.value)
    assert MARK not in "".join(traceback.format_exception(caught.value)) + str(refused.value)


def test_each_store_gets_its_own() -> None:
    options = {
        "AWS_SECRET_ACCESS_KEY": "a",
        "azure_storage_account_key": "b",
        "service_account": "c",
        "timeout": "5",
        "skip_signature": True,
        "dynamo_lock_table_name": "d",
    }
    given = store_options.normalized(options)
    assert store_options.for_store("s3a://b", given) == (
        {"aws_secret_access_key": "a", "skip_signature": "true"},
        {"timeout": "5s"},
    )
    assert store_options.for_store("abfss://c@a.dfs.core.windows.net", given)[0] == {
        "azure_storage_account_key": "b",
        "skip_signature": "true",
    }
    assert store_options.for_store("gs://b", given)[0] == {"service_account": "c", "skip_signature": "true"}
    assert store_options.for_store("https://a.blob.core.windows.net/c", given)[0].keys() == {
        "azure_storage_account_key",
        "skip_signature",
    }


@pytest.mark.parametrize(
    ("uri", "options"),
    [
        ("s3://bucket/lake", {"conditional_put": MARK}),
        ("s3://bucket/lake", {"sse_customer_key_base64": MARK, "checksum_algorithm": MARK}),
        ("az://container/lake", {"account_name": "a", "account_key": MARK}),
        ("gs://bucket/lake", {"service_account_key": MARK}),
    ],
)
def test_a_value_that_the_store_refuses_is_not_shown(uri: str, options: dict[str, str]) -> None:
    with pytest.raises(PenstockError, match="can't be opened") as caught:
        Storage(uri, store_options.normalized(options)).exists("a")
    assert MARK not in str(caught.value)


def test_retries_are_for_both_clients() -> None:
    options = {"max_retries": 3, "RETRY_TIMEOUT": "1m 30s", "backoff_config.init_backoff": "500ms"}
    assert store_options.retries(store_options.normalized(options)) == {
        "max_retries": 3,
        "retry_timeout": timedelta(seconds=90),
        "backoff": {"init_backoff": timedelta(milliseconds=500), "max_backoff": timedelta(seconds=15), "base": 2},
    }
    assert store_options.retries({}) == {}


@pytest.mark.parametrize("key", ["profile", "AWS_PROFILE", "aws_profile"])
def test_a_profile_is_for_penstock_alone(key: str) -> None:
    options = store_options.normalized({key: "shop", "region": "r"})
    assert store_options.problems(options) == []
    assert store_options.profile_of(options) == "shop"
    assert store_options.for_delta(options) == store_options.for_store("s3://b", options)[0] == {"region": "r"}


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_store_that_says_no(s3: S3, status: int) -> None:
    options = {
        **s3.options,
        "access_key_id": f"{MARK}-id",
        "secret_access_key": f"{MARK}-key",
        "session_token": f"{MARK}-t",
    }
    lake = Lake("s3://bucket/lake", storage_options=options)
    root = "s3://bucket/lake" if status != 404 else "s3://no-bucket/lake"
    for method in ("LIST", "GET", "HEAD", "PUT"):
        s3.fail(method, status=status, times=2 if status != 404 else 0)
    storage, tracebacks = Storage(root, lake.storage_options), []
    for call in (
        lambda: list(storage.list("")),
        lambda: storage.write("a", b"x"),
        lambda: Table.open(root, lake.storage_options),
    ):
        with pytest.raises(PenstockError) as caught:
            call()
        tracebacks.append("".join(traceback.format_exception(caught.value)))
    s3.faults.clear()
    assert MARK not in "".join(tracebacks) + repr(lake) + repr(storage)
