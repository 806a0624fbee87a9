"""The block `storage_options`: settings of object stores and their HTTP clients. Its values are never shown.

obstore and delta-rs both use this block. obstore takes the store's keys, its HTTP client's keys and its settings for
retries separately.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from penstock.config.near import nearest
from penstock.secrets import HIDDEN

S3, AZURE, GOOGLE = "s3", "azure", "google"
"""The kinds of object store."""

_S3 = [
    "access_key_id",
    "secret_access_key",
    "session_token",
    "token",
    "default_region",
    "region",
    "bucket",
    "bucket_name",
    "endpoint",
    "endpoint_url",
    "virtual_hosted_style_request",
    "imdsv1_fallback",
    "metadata_endpoint",
    "unsigned_payload",
    "checksum_algorithm",
    "container_credentials_relative_uri",
    "container_credentials_full_uri",
    "container_authorization_token_file",
    "web_identity_token_file",
    "role_arn",
    "role_session_name",
    "endpoint_url_sts",
    "skip_signature",
    "copy_if_not_exists",
    "conditional_put",
    "disable_tagging",
    "disable_bulk_delete",
    "s3_express",
    "request_payer",
    "server_side_encryption",
    "sse_kms_key_id",
    "sse_bucket_key_enabled",
    "sse_customer_key_base64",
]
_AZURE = [
    "account_name",
    "account_key",
    "access_key",
    "master_key",
    "client_id",
    "client_secret",
    "tenant_id",
    "authority_id",
    "authority_host",
    "sas_key",
    "sas_token",
    "token",
    "bearer_token",
    "use_emulator",
    "endpoint",
    "identity_endpoint",
    "msi_endpoint",
    "object_id",
    "msi_resource_id",
    "federated_token_file",
    "use_fabric_endpoint",
    "use_azure_cli",
    "skip_signature",
    "container_name",
    "disable_tagging",
    "fabric_token_service_url",
    "fabric_workload_host",
    "fabric_session_token",
    "fabric_cluster_identifier",
    "credential_type",
    "encryption_key",
]
# The store knows these names only with the prefix `azure_`.
_AZURE_WITH_PREFIX = [
    "storage_account_name",
    "storage_account_key",
    "storage_access_key",
    "storage_master_key",
    "storage_client_id",
    "client_id",
    "storage_client_secret",
    "client_secret",
    "storage_tenant_id",
    "storage_authority_id",
    "tenant_id",
    "authority_id",
    "storage_authority_host",
    "authority_host",
    "storage_sas_key",
    "storage_sas_token",
    "storage_token",
    "storage_use_emulator",
    "storage_endpoint",
    "endpoint",
    "msi_endpoint",
    "identity_endpoint",
    "object_id",
    "msi_resource_id",
    "federated_token_file",
    "use_fabric_endpoint",
    "use_azure_cli",
    "skip_signature",
    "container_name",
    "disable_tagging",
    "fabric_token_service_url",
    "fabric_workload_host",
    "fabric_session_token",
    "fabric_cluster_identifier",
    "credential_type",
]
_GOOGLE = [
    "service_account",
    "service_account_path",
    "service_account_key",
    "bucket",
    "bucket_name",
    "application_credentials",
    "skip_signature",
    "base_url",
    "bearer_token",
]
_STORES = {
    S3: frozenset([*_S3, *(f"aws_{name}" for name in _S3)]),
    AZURE: frozenset([*_AZURE, *(f"azure_{name}" for name in _AZURE_WITH_PREFIX)]),
    GOOGLE: frozenset([*_GOOGLE, *(f"google_{name}" for name in _GOOGLE)]),
}
_SCHEMES = {
    "s3": S3, "s3a": S3, "az": AZURE, "azure": AZURE, "abfs": AZURE, "abfss": AZURE, "adl": AZURE,
    "wasb": AZURE, "wasbs": AZURE, "gs": GOOGLE,
}  # fmt: skip
_HOSTS = (
    (".amazonaws.com", S3),
    (".r2.cloudflarestorage.com", S3),
    (".windows.net", AZURE),
    (".fabric.microsoft.com", AZURE),
)
_DURATIONS = frozenset(
    (
        "connect_timeout",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "pool_idle_timeout",
        "read_timeout",
        "timeout",
    )
)
_SWITCHES = frozenset(
    (
        "allow_http", "allow_invalid_certificates", "http1_only", "http2_keep_alive_while_idle", "http2_only",
        "randomize_addresses", "virtual_hosted_style_request", "imdsv1_fallback", "unsigned_payload", "skip_signature",
        "disable_tagging", "disable_bulk_delete", "s3_express", "sse_bucket_key_enabled", "use_emulator",
        "storage_use_emulator", "use_fabric_endpoint", "use_azure_cli",
    )
)  # fmt: skip
_NUMBERS = frozenset(("pool_max_idle_per_host",))
_RETRY_DURATIONS = frozenset(("backoff_config.init_backoff", "backoff_config.max_backoff", "retry_timeout"))
# obstore takes these separately from the store's keys. Among the store's keys they cause a panic in Rust.
_CLIENT = _DURATIONS | _NUMBERS | frozenset(
    (
        "allow_http", "allow_invalid_certificates", "default_content_type", "http1_only", "http2_keep_alive_while_idle",
        "http2_only", "proxy_ca_certificate", "proxy_excludes", "proxy_url", "randomize_addresses", "root_certificate",
        "user_agent",
    )
)  # fmt: skip
# Only delta-rs knows these.
_DELTA = frozenset(
    (
        "aws_s3_locking_provider", "aws_s3_allow_unsafe_rename", "s3_allow_unsafe_rename", "s3_locking_provider",
        "delta_dynamo_table_name", "dynamo_lock_table_name", "aws_endpoint_url_dynamodb", "aws_endpoint_url_s3",
        "aws_region_dynamodb", "aws_access_key_id_dynamodb", "aws_secret_access_key_dynamodb",
        "aws_session_token_dynamodb", "aws_force_credential_load", "aws_s3_addressing_style", "object_store_use_emulator",
        "object_store_concurrency_limit", "max_retries", "retry_timeout", "backoff_config.init_backoff",
        "backoff_config.max_backoff", "backoff_config.base", "mount_allow_unsafe_rename",
    )
)  # fmt: skip
PROFILE = "profile"
"""The profile in the AWS config files that the keys are taken from. Penstock reads it for all clients."""
# delta-rs's names for settings that obstore takes as an object.
_RETRIES = {
    "max_retries": "max_retries",
    "retry_timeout": "retry_timeout",
    "backoff_config.init_backoff": "init_backoff",
    "backoff_config.max_backoff": "max_backoff",
    "backoff_config.base": "base",
}
# What other tools call an option, with the name here. The keys of Hadoop may begin with `spark.hadoop.`.
_ELSEWHERE = {
    "fs.s3a.access.key": "access_key_id",
    "fs.s3a.secret.key": "secret_access_key",
    "fs.s3a.session.token": "session_token",
    "fs.s3a.endpoint": "endpoint",
    "fs.s3a.endpoint.region": "region",
    "fs.s3a.path.style.access": "virtual_hosted_style_request (false is path style)",
    "fs.s3a.connection.ssl.enabled": "endpoint (http:// or https://) and allow_http",
    "fs.s3a.aws.credentials.provider": "profile, skip_signature, or no key at all: instance roles are found",
    "fs.s3a.assumed.role.arn": "role_arn and web_identity_token_file",
    "fs.azure.account.key": "account_name and account_key",
    "fs.azure.sas": "sas_token",
    "fs.azure.account.oauth2.client.id": "client_id",
    "fs.azure.account.oauth2.client.secret": "client_secret",
    "fs.azure.account.oauth2.client.endpoint": "tenant_id",
    "fs.gs.auth.service.account.json.keyfile": "service_account_path",
    "google.cloud.auth.service.account.json.keyfile": "service_account_path",
    "connection_string": "account_name and account_key",
    "path_style": "virtual_hosted_style_request (false is path style)",
    "path_style_access": "virtual_hosted_style_request (false is path style)",
    "force_path_style": "virtual_hosted_style_request (false is path style)",
    "url_style": "virtual_hosted_style_request (false is path style)",
    "addressing_style": "virtual_hosted_style_request (false is path style)",
    "anon": "skip_signature",
    "anonymous": "skip_signature",
    "use_ssl": "endpoint (http:// or https://) and allow_http",
    "key": "access_key_id",
    "key_id": "access_key_id",
    "secret": "secret_access_key",
    "region_name": "region",
    "profile_name": "profile",
    "credential": "client_id, client_secret and tenant_id",
}
_VENDOR = re.compile(r"^(?:aws|azure|google)_")
_DURATION = re.compile(r"(?:\s*\d+\s*(?:[a-zµ]+|M))+\s*")
_TIMES = _DURATIONS | _RETRY_DURATIONS
_WHOLE = _NUMBERS | {"max_retries"}
_PART = re.compile(r"(\d+)\s*([a-zµ]+|M)")
_UNITS = {
    "nsec": 1e-9, "ns": 1e-9, "usec": 1e-6, "us": 1e-6, "µs": 1e-6, "millis": 1e-3, "msec": 1e-3, "ms": 1e-3,
    "seconds": 1, "second": 1, "secs": 1, "sec": 1, "s": 1, "minutes": 60, "minute": 60, "mins": 60, "min": 60, "m": 60,
    "hours": 3600, "hour": 3600, "hrs": 3600, "hr": 3600, "h": 3600, "days": 86400, "day": 86400, "d": 86400,
}  # fmt: skip
_YES, _NO = ("1", "true", "on", "yes", "y"), ("0", "false", "off", "no", "n")


def problems(given: Any) -> list[str]:
    """A sentence for everything that is wrong with a block of `storage_options`. Values are never shown."""
    if given is None:
        return []
    if not isinstance(given, Mapping):
        return ["`storage_options` must be a block of settings"]
    found = []
    names: dict[str, str] = {}
    for written, value in given.items():
        name = _name(str(written))
        if not _is_known(name):
            found.append(f"`storage_options.{written}` is not known: {_hint(name)}")
            continue
        if value is None:
            continue
        if (other := names.setdefault(_VENDOR.sub("", name), str(written))) != str(written):
            found.append(f"`storage_options` has one key under two names, `{other}` and `{written}`")
        if (wrong := _wrong(name, value)) is not None:
            found.append(f"`storage_options.{written}` must be {wrong}")
    return found


def normalized(given: Mapping[str, Any] | None) -> dict[str, str]:
    """The options as strings with lower-case names, without options that are null.

    >>> normalized({"ALLOW_HTTP": True, "timeout": 30, "region": None})
    {'allow_http': 'true', 'timeout': '30s'}
    """
    return {
        name: _text(name, value)
        for name, value in ((_name(str(key)), value) for key, value in (given or {}).items())
        if value is not None
    }


def profile_of(options: Mapping[str, str]) -> str | None:
    """The AWS profile in these options."""
    return next((value for key, value in options.items() if _VENDOR.sub("", key.lower()) == PROFILE), None)


def azure_account(options: Mapping[str, Any]) -> str | None:
    """The name of the Azure storage account, from these options or from the environment."""
    named = {_VENDOR.sub("", str(key).lower()): str(value) for key, value in options.items() if value is not None}
    given = named.get("account_name") or named.get("storage_account_name")
    return given or os.environ.get("AZURE_STORAGE_ACCOUNT_NAME") or os.environ.get("AZURE_ACCOUNT_NAME")


def for_delta(options: Mapping[str, str]) -> dict[str, str]:
    """The options for delta-rs: all except those that only penstock uses."""
    return {
        key.lower() if key.lower() in _RETRIES else key: value
        for key, value in options.items()
        if _VENDOR.sub("", key.lower()) != PROFILE
    }


def retries(options: Mapping[str, str]) -> dict[str, Any]:
    """obstore's settings for retries, from delta-rs's keys."""
    found: dict[str, Any] = {}
    backoff: dict[str, Any] = {}
    for key, value in normalized(options).items():
        name = _RETRIES.get(key.lower())
        if name == "max_retries":
            found[name] = int(value)
        elif name == "retry_timeout":
            found[name] = _seconds(value)
        elif name == "base":
            backoff[name] = float(value)
        elif name is not None:
            backoff[name] = _seconds(value)
    if backoff:
        found["backoff"] = {
            "init_backoff": timedelta(milliseconds=100),
            "max_backoff": timedelta(seconds=15),
            "base": 2,
        }
        found["backoff"] |= backoff
    return found


def for_store(uri: str, options: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """obstore's options for the store at a URI, and its options for the HTTP client."""
    kind = _kind(uri)
    own: dict[str, str] = {}
    client: dict[str, str] = {}
    for key, value in normalized(options).items():
        name = _VENDOR.sub("", key)
        if name in _CLIENT:
            client[name] = value
        elif name == PROFILE:
            continue
        elif (kind is None and key.lower() not in _DELTA) or key in _STORES.get(kind or "", ()) or not _is_known(key):
            # obstore reports an unknown key itself.
            own[key] = value
    return own, client


def _seconds(duration: str) -> timedelta:
    """A duration such as `1m 30s`."""
    return timedelta(seconds=sum(int(count) * _UNITS.get(unit, 1) for count, unit in _PART.findall(duration)))


def kinds(uri: str, options: Mapping[str, str]) -> set[str]:
    """The kinds of store that a location and a block of options are about.

    An option of one vendor alone tells the kind. An option of several, such as `endpoint`, is the location's.

    >>> kinds("/data/lake", {"access_key_id": "a", "endpoint": "http://b"})
    {'s3'}
    """
    found = {kind for kind in (_kind(uri),) if kind is not None}
    for key in normalized(options):
        of = [kind for kind, keys in _STORES.items() if key in keys]
        if _VENDOR.sub("", key) == PROFILE:
            of = [S3]
        if len(of) == 1:
            found.update(of)
    return found


def of_kind(kind: str, options: Mapping[str, str]) -> dict[str, str]:
    """The options of one kind of store, by their names without the vendor. Client options are among them.

    >>> of_kind("s3", {"AWS_REGION": "eu", "account_name": "a", "timeout": 5})
    {'region': 'eu', 'timeout': '5s'}
    """
    found = {}
    for key, value in normalized(options).items():
        plain = _VENDOR.sub("", key)
        if key in _STORES[kind] or plain in _CLIENT or (kind == S3 and plain == PROFILE):
            found[plain] = value
    return found


def hidden(text: str, options: Mapping[str, str]) -> str:
    """A store's message without the values of its options."""
    for value in options.values():
        text = text.replace(f'"{value}"', f'"{HIDDEN}"').replace(f"'{value}'", f"'{HIDDEN}'")
    return text


def _name(key: str) -> str:
    """A key in lower case. A key of delta-rs keeps its spelling."""
    lower = key.strip().lower()
    return key.strip() if lower in _DELTA else lower


def _is_known(name: str) -> bool:
    return name.lower() in _KNOWN or _VENDOR.sub("", name) in _CLIENT or _VENDOR.sub("", name) == PROFILE


def _hint(name: str) -> str:
    """The key that was probably meant by an unknown one."""
    plain = name.lower().removeprefix("spark.").removeprefix("hadoop.")
    elsewhere = next((key for key in _ELSEWHERE if plain == key or plain.startswith(f"{key}.")), None)
    if elsewhere is not None:
        return f"the key here is {_ELSEWHERE[elsewhere]}"
    if plain.startswith(("fs.", "google.cloud.")):
        return "it is a key of Hadoop, which belongs in `session.spark_config` as `spark.hadoop." + plain + "`"
    guess = nearest(name, _KNOWN)
    return f"did you mean `{guess}`?" if guess else "object stores, HTTP clients and delta-rs have no such key"


def _kind(uri: str) -> str | None:
    """The vendor of the store at a URI; None if this is not clear from the URI."""
    scheme, _, rest = uri.partition("://")
    if scheme.lower() in _SCHEMES:
        return _SCHEMES[scheme.lower()]
    host = rest.partition("/")[0].partition(":")[0].lower()
    return next((kind for end, kind in _HOSTS if host.endswith(end)), None)


def _wrong(name: str, value: Any) -> str | None:
    """The kind of value that an option needs, if its value is wrong; else None. The value itself may be secret."""
    plain = _VENDOR.sub("", name)
    if not isinstance(value, (str, int, float)):
        return "a string, a number, or true or false"
    text = _text(name, value)
    if plain in _SWITCHES and text.lower() not in (*_YES, *_NO):
        return "true or false"
    if plain in _TIMES and not _DURATION.fullmatch(text):
        return "a time such as 30s, 5m or 30 (seconds)"
    if plain in _WHOLE and not text.isdigit():
        return "a whole number"
    return None


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value).strip() if _VENDOR.sub("", name) in _TIMES | _SWITCHES | _WHOLE else str(value)
    if _VENDOR.sub("", name) in _TIMES and re.fullmatch(r"\d+(\.0)?", text):
        return f"{int(float(text))}s"
    return text


_KNOWN = frozenset().union(*_STORES.values()) | _CLIENT | _DELTA
