"""`storage_options` as the settings of Hadoop's clients, which Spark reads and writes object stores with.

The names that users write are those of obstore and delta-rs. Spark gets the same credentials under Hadoop's names, by
its file of settings: they stand on no command line. The profile's own `spark.hadoop.…` settings win.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from penstock.config.store_options import AZURE, GOOGLE, S3, kinds, of_kind, profile_of

HADOOP = "spark.hadoop."
"""What the names of Hadoop's settings begin with among Spark's."""
_YES = ("1", "true", "on", "yes", "y")
_PROVIDERS = "org.apache.hadoop.fs.s3a"
_ANONYMOUS = f"{_PROVIDERS}.AnonymousAWSCredentialsProvider"
_TEMPORARY, _SIMPLE = f"{_PROVIDERS}.TemporaryAWSCredentialsProvider", f"{_PROVIDERS}.SimpleAWSCredentialsProvider"
_AWS = "software.amazon.awssdk.auth.credentials"
# Keys of the user's own `spark_config`; then the environment, web identities, profiles, containers and instances, which
# Amazon's client renews by itself.
_CHAIN = f"{_TEMPORARY},{_SIMPLE},{_AWS}.DefaultCredentialsProvider"
_PROFILE = f"{_AWS}.ProfileCredentialsProvider"
_ENCRYPTION = {"AES256": "AES256", "aws:kms": "SSE-KMS", "aws:kms:dsse": "DSSE-KMS", "sse-c": "SSE-C"}
_OAUTH = "org.apache.hadoop.fs.azurebfs.oauth2"
_LOGIN = "https://login.microsoftonline.com"


def hadoop_settings(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """Spark's settings for the stores that a lake's root and its options are about; none for a disk without options.

    >>> settings = hadoop_settings("s3://bucket/lake", {"access_key_id": "a", "secret_access_key": "b"})
    >>> settings["spark.hadoop.fs.s3a.access.key"]
    'a'
    """
    stores = kinds(root, options)
    found: dict[str, str] = {}
    if S3 in stores:
        found |= _s3(of_kind(S3, options))
    if AZURE in stores:
        found |= _azure(root, of_kind(AZURE, options))
    if GOOGLE in stores:
        found |= _google(of_kind(GOOGLE, options))
    return {f"{HADOOP}{key}": value for key, value in found.items()}


def _s3(options: Mapping[str, str]) -> dict[str, str]:
    key, secret = options.get("access_key_id"), options.get("secret_access_key")
    token = options.get("session_token") or options.get("token")
    # As obstore does, which takes both from the environment.
    endpoint = (
        options.get("endpoint")
        or options.get("endpoint_url")
        or os.environ.get("AWS_ENDPOINT_URL_S3")
        or os.environ.get("AWS_ENDPOINT_URL")
        or os.environ.get("AWS_ENDPOINT")
    )
    region = (
        options.get("region")
        or options.get("default_region")
        or os.environ.get("AWS_REGION")
        or os.environ.get("AWS_DEFAULT_REGION")
    )
    found = {
        "fs.s3.impl": f"{_PROVIDERS}.S3AFileSystem",
        # The default needs a library of Amazon's own, and reads ahead more than Parquet's reader can use.
        "fs.s3a.input.stream.type": "classic",
        "fs.s3a.path.style.access": str(_uses_path_style(options, endpoint)).lower(),
    }
    if _is_on(options, "skip_signature"):
        found["fs.s3a.aws.credentials.provider"] = _ANONYMOUS
    elif key and secret:
        found["fs.s3a.aws.credentials.provider"] = _TEMPORARY if token else _SIMPLE
        found |= {"fs.s3a.access.key": key, "fs.s3a.secret.key": secret}
        found |= {"fs.s3a.session.token": token} if token else {}
    else:
        found["fs.s3a.aws.credentials.provider"] = _PROFILE if profile_of(options) else _CHAIN
    if endpoint:
        found["fs.s3a.endpoint"] = endpoint
        found["fs.s3a.connection.ssl.enabled"] = str(not endpoint.startswith("http://")).lower()
        # Any region will do for a store that is not Amazon's, but the client wants one.
        found["fs.s3a.endpoint.region"] = region or "us-east-1"
    elif region:
        found["fs.s3a.endpoint.region"] = region
    return found | _s3_extras(options) | _s3_client(options)


def _uses_path_style(options: Mapping[str, str], endpoint: str | None) -> bool:
    """Whether the bucket is in the path. Only Amazon's own addresses have it in the host without being asked to."""
    if "virtual_hosted_style_request" in options:
        return not _is_on(options, "virtual_hosted_style_request")
    return endpoint is not None


def _s3_extras(options: Mapping[str, str]) -> dict[str, str]:
    found = {}
    algorithm = options.get("server_side_encryption")
    if algorithm:
        found["fs.s3a.encryption.algorithm"] = _ENCRYPTION.get(algorithm, algorithm)
    if secret := options.get("sse_kms_key_id") or options.get("sse_customer_key_base64"):
        found["fs.s3a.encryption.key"] = secret
        if not algorithm:
            found["fs.s3a.encryption.algorithm"] = "SSE-KMS" if "sse_kms_key_id" in options else "SSE-C"
    if _is_on(options, "request_payer"):
        found["fs.s3a.requester.pays.enabled"] = "true"
    if role := options.get("role_arn"):
        found["fs.s3a.assumed.role.arn"] = role
    return found


def _s3_client(options: Mapping[str, str]) -> dict[str, str]:
    """Settings of the HTTP client. `timeout` is obstore's alone: Spark's requests carry whole data files."""
    found = {}
    if "connect_timeout" in options:
        found["fs.s3a.connection.establish.timeout"] = options["connect_timeout"]
    if proxy := options.get("proxy_url"):
        address = urlsplit(proxy)
        found["fs.s3a.proxy.host"] = address.hostname or proxy
        found |= {"fs.s3a.proxy.port": str(address.port)} if address.port else {}
        found |= {"fs.s3a.proxy.username": address.username} if address.username else {}
        found |= {"fs.s3a.proxy.password": address.password} if address.password else {}
    return found


def _azure(root: str, options: Mapping[str, str]) -> dict[str, str]:
    """The settings of ABFS. They carry the account's address, so that other accounts keep their own."""
    host = _account(root, options)
    end = f".{host}" if host else ""
    key = _first(options, "account_key", "access_key", "master_key", "storage_account_key", "storage_access_key")
    sas = _first(options, "sas_token", "sas_key", "storage_sas_token", "storage_sas_key")
    client = _first(options, "client_id", "storage_client_id")
    secret = _first(options, "client_secret", "storage_client_secret")
    tenant = _first(options, "tenant_id", "authority_id", "storage_tenant_id", "storage_authority_id")
    token_file = options.get("federated_token_file")
    if key:
        return {f"fs.azure.account.auth.type{end}": "SharedKey", f"fs.azure.account.key{end}": key}
    if sas:
        return {f"fs.azure.account.auth.type{end}": "SAS", f"fs.azure.sas.fixed.token{end}": sas.lstrip("?")}
    if not (client or tenant or token_file or "msi_endpoint" in options or "identity_endpoint" in options):
        return {}
    found = {f"fs.azure.account.auth.type{end}": "OAuth"}
    oauth = f"fs.azure.account.oauth2.client.id{end}"
    login = (
        f"{(_first(options, 'authority_host', 'storage_authority_host') or _LOGIN).rstrip('/')}/{tenant}/oauth2/token"
    )
    if client and secret:
        return found | {
            f"fs.azure.account.oauth.provider.type{end}": f"{_OAUTH}.ClientCredsTokenProvider",
            f"fs.azure.account.oauth2.client.endpoint{end}": login,
            oauth: client,
            f"fs.azure.account.oauth2.client.secret{end}": secret,
        }
    kind = "WorkloadIdentityTokenProvider" if token_file else "MsiTokenProvider"
    found[f"fs.azure.account.oauth.provider.type{end}"] = f"{_OAUTH}.{kind}"
    found |= {oauth: client} if client else {}
    found |= {f"fs.azure.account.oauth2.msi.tenant{end}": tenant} if tenant else {}
    found |= {f"fs.azure.account.oauth2.token.file{end}": token_file} if token_file else {}
    return found


def _account(root: str, options: Mapping[str, str]) -> str | None:
    """The address of the storage account: from the root, else from the account's name."""
    address = urlsplit(root).netloc.partition("@")[2]
    if address:
        return address
    name = _first(options, "account_name", "storage_account_name")
    return f"{name}.dfs.core.windows.net" if name else None


def _google(options: Mapping[str, str]) -> dict[str, str]:
    found = {"fs.gs.impl": "org.apache.hadoop.fs.gs.GoogleHadoopFileSystem"}
    file = _first(options, "service_account", "service_account_path", "application_credentials")
    if _is_on(options, "skip_signature"):
        return found | {"fs.gs.auth.type": "UNAUTHENTICATED"}
    if file:
        return found | {
            "fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE",
            "fs.gs.auth.service.account.json.keyfile": file,
        }
    return found | {"fs.gs.auth.type": "APPLICATION_DEFAULT"}


def _first(options: Mapping[str, str], *names: str) -> str | None:
    return next((options[name] for name in names if options.get(name)), None)


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() in _YES
