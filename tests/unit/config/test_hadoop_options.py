"""`storage_options` under Hadoop's names."""

from __future__ import annotations

import pytest

from penstock.config.hadoop_options import hadoop_settings
from penstock.secrets import is_secret

KEYS = {"access_key_id": "a", "secret_access_key": "b"}
S3A = "org.apache.hadoop.fs.s3a"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)


def settings(root: str, **options: str) -> dict[str, str]:
    found = hadoop_settings(root, options)
    assert all(key.startswith("spark.hadoop.") for key in found)
    return {key.removeprefix("spark.hadoop."): value for key, value in found.items()}


def test_a_disk_needs_nothing() -> None:
    assert settings("/lake") == {}
    assert settings("/lake", timeout="5s", allow_http="true") == {}


@pytest.mark.parametrize("root", ["s3://bucket/lake", "s3a://bucket/lake", "/lake"])
def test_keys_of_s3(root: str) -> None:
    """Also where only a source is on S3, and the root on a disk."""
    found = settings(root, **KEYS)
    assert (found["fs.s3a.access.key"], found["fs.s3a.secret.key"]) == ("a", "b")
    assert found["fs.s3a.aws.credentials.provider"] == f"{S3A}.SimpleAWSCredentialsProvider"
    assert found["fs.s3a.path.style.access"] == "false"
    assert "fs.s3a.endpoint" not in found


@pytest.mark.parametrize("spelling", ["{}", "aws_{}", "AWS_{}"])
def test_each_spelling(spelling: str) -> None:
    options = {spelling.format(key): value for key, value in {**KEYS, "session_token": "c", "region": "eu"}.items()}
    found = settings("s3://bucket", **options)
    assert found["fs.s3a.session.token"] == "c"
    assert found["fs.s3a.endpoint.region"] == "eu"
    assert found["fs.s3a.aws.credentials.provider"] == f"{S3A}.TemporaryAWSCredentialsProvider"


def test_a_store_of_someone_else() -> None:
    found = settings("s3://bucket", **KEYS, endpoint="http://127.0.0.1:9000")
    assert found["fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert found["fs.s3a.connection.ssl.enabled"] == "false"
    assert found["fs.s3a.path.style.access"] == "true"
    assert found["fs.s3a.endpoint.region"] == "us-east-1"
    hosted = settings("s3://bucket", endpoint="https://x", virtual_hosted_style_request="true", region="auto")
    assert hosted["fs.s3a.path.style.access"] == "false"
    assert hosted["fs.s3a.endpoint.region"] == "auto"


def test_an_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """obstore takes it from there; Hadoop's client would ask Amazon."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9000")
    monkeypatch.setenv("AWS_REGION", "eu")
    found = settings("s3://bucket")
    assert found["fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    assert found["fs.s3a.endpoint.region"] == "eu"


def test_who_asks_without_keys() -> None:
    assert settings("s3://b", skip_signature="true")["fs.s3a.aws.credentials.provider"] == (
        f"{S3A}.AnonymousAWSCredentialsProvider"
    )
    chain = settings("s3://b")["fs.s3a.aws.credentials.provider"].split(",")
    # Keys of the user's own `spark_config` count before those of the machine.
    assert chain[:2] == [f"{S3A}.TemporaryAWSCredentialsProvider", f"{S3A}.SimpleAWSCredentialsProvider"]
    assert chain[2].endswith(".DefaultCredentialsProvider")
    named = settings("s3://b", profile="work")
    assert named["fs.s3a.aws.credentials.provider"].endswith(".ProfileCredentialsProvider")


def test_encryption_and_proxy() -> None:
    found = settings("s3://b", server_side_encryption="aws:kms", sse_kms_key_id="k", proxy_url="http://p:3128")
    assert found["fs.s3a.encryption.algorithm"] == "SSE-KMS"
    assert found["fs.s3a.encryption.key"] == "k"
    assert (found["fs.s3a.proxy.host"], found["fs.s3a.proxy.port"]) == ("p", "3128")


ACCOUNT = "shop.dfs.core.windows.net"
ROOT = f"abfss://raw@{ACCOUNT}/lake"


@pytest.mark.parametrize("root", [ROOT, "/lake"])
def test_azure(root: str) -> None:
    found = settings(root, azure_storage_account_name="shop", azure_storage_account_key="k")
    assert found == {f"fs.azure.account.auth.type.{ACCOUNT}": "SharedKey", f"fs.azure.account.key.{ACCOUNT}": "k"}


def test_other_credentials_of_azure() -> None:
    assert settings(ROOT, sas_token="?sv=1")[f"fs.azure.sas.fixed.token.{ACCOUNT}"] == "sv=1"
    secret = settings(ROOT, client_id="i", client_secret="s", tenant_id="t")
    assert secret[f"fs.azure.account.oauth2.client.endpoint.{ACCOUNT}"].endswith("/t/oauth2/token")
    assert secret[f"fs.azure.account.oauth2.client.secret.{ACCOUNT}"] == "s"
    identity = settings(ROOT, client_id="i", tenant_id="t", federated_token_file="/token")
    assert identity[f"fs.azure.account.oauth.provider.type.{ACCOUNT}"].endswith(".WorkloadIdentityTokenProvider")


def test_google() -> None:
    found = settings("gs://bucket", service_account="/key.json")
    assert found["fs.gs.auth.service.account.json.keyfile"] == "/key.json"
    assert settings("gs://bucket")["fs.gs.auth.type"] == "APPLICATION_DEFAULT"


def test_a_secret_has_the_name_of_one() -> None:
    """Spark hides a value by its name."""
    found = settings(
        ROOT, **KEYS, session_token="c", azure_storage_account_key="k", azure_storage_sas_token="t", sse_kms_key_id="k"
    )
    for key, value in found.items():
        if value in ("a", "b", "c", "k", "t"):
            assert is_secret(key), key
