"""Failures of object stores in plain words, from the texts of obstore's and delta-rs's errors.

A text holds the store's answer: an HTTP status and, except for HEAD, an error code in XML.
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.storage import profiles
from penstock.storage.locations import split_root

_COLOUR = re.compile(r"\x1b\[\d*m|↳")
_CODE = re.compile(r"<Code>(\w+)</Code>|\"(?:code|error)\": ?\"(\w+)\"|x-ms-error-code: ?(\w+)")
_REGION = re.compile(r"<Region>([\w-]+)</Region>|expecting '([\w-]+)'")
_STATUS = re.compile(r"non-2xx status code:? (\d{3})")
_TIMES = re.compile(r"<RequestTime>([^<]*)</RequestTime>.*?<ServerTime>([^<]*)</ServerTime>", re.DOTALL)
_METADATA_HOSTS = ("169.254.169.254", "169.254.170.2", "metadata.google.internal")
_ADDRESS = re.compile(r"(?:GET|HEAD|PUT|POST|DELETE) (https?://[^/\s?]+)")
_RPC = re.compile(r"RPCError\(\"([\w.$]+)\", \"(.*)", re.DOTALL)
_ASK_SECONDS = 5

_KEY = ("InvalidAccessKeyId", "InvalidSecurity", "NotSignedUp")
_SECRET = ("SignatureDoesNotMatch", "AuthenticationFailed", "InvalidAuthenticationInfo", "InvalidDigest")
_TOKEN = ("InvalidToken", "InvalidClientTokenId", "UnrecognizedClientException")
_EXPIRED = ("ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "RequestExpired")
_DENIED = (
    "AccessDenied", "AllAccessDisabled", "AccountProblem", "Forbidden", "AuthorizationFailure", "AuthorizationFailed",
    "AuthorizationPermissionMismatch", "InsufficientAccountPermissions", "PublicAccessNotPermitted", "Unauthorized",
)  # fmt: skip
_SKEWED = ("RequestTimeTooSkewed", "RequestInTheFuture")
_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound", "FilesystemNotFound", "ContainerBeingDeleted", "ResourceNotFound")
_OTHER_REGION = (
    "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException",
)  # fmt: skip
_BUSY = (
    "SlowDown",
    "ServiceUnavailable",
    "ServerBusy",
    "InternalError",
    "RequestTimeout",
    "Throttling",
    "OperationTimedOut",
)
_REDIRECTED = "redirect without LOCATION"


@dataclass(frozen=True)
class Failure:
    """What a store's error means, and what to do now."""

    what: str
    fix: str


def plain(text: str) -> str:
    """An error's text in one line, without colours."""
    return " ".join(_COLOUR.sub("", text).split())


def code_of(text: str) -> str | None:
    """The error code in a store's answer, such as NoSuchBucket."""
    found = _CODE.search(text)
    return None if found is None else next(group for group in found.groups() if group)


def says_no_bucket(text: str) -> bool:
    """Whether a store's answer about an object says that its bucket does not exist."""
    return code_of(text) in _NO_BUCKET


def is_uncertain(text: str) -> bool:
    """Whether a failed write may have been carried out: the store did not refuse it."""
    found = _STATUS.search(text)
    return found is None or int(found[1]) >= 500


def is_of_store(text: str) -> bool:
    """Whether delta-rs's error is about a store that could not be asked, and not about the table."""
    return any(part in text for part in ("Error performing", "Unknown scheme", "builder error", "HdfsObjectStore"))


def explain(text: str, location: str, options: Mapping[str, str]) -> Failure | None:
    """What a store's error means; None if the text says nothing that is known."""
    text = _COLOUR.sub("", text)
    if location.startswith("hdfs://"):
        return _of_hdfs(text, location)
    if any(host in text for host in _METADATA_HOSTS):
        return _no_credentials(location)
    code = code_of(text)
    if code is None and _REDIRECTED not in text:
        return _transport(text, location) or _by_status(text, options)
    return _by_code(code or "", text, location, options)


def _of_hdfs(text: str, location: str) -> Failure | None:
    found = _RPC.search(text)
    if found is None:
        return _transport(text, location)
    kind, message = found[1].rpartition(".")[2], found[2].partition("\\n")[0]
    if kind in ("AccessControlException", "AuthorizationException"):
        return Failure(f"HDFS refuses this: {message}", "Set HADOOP_USER_NAME or run kinit, or change the permissions.")
    if kind == "StandbyException":
        return Failure(
            f"This name node is on standby ({split_root(location)[0]})",
            "Write the name service in the URI, and set HADOOP_CONF_DIR to the folder of hdfs-site.xml.",
        )
    if kind == "SafeModeException":
        return Failure("HDFS is in safe mode", "Wait until it has started, or ask its administrator.")
    return Failure(f"HDFS says: {message} ({kind})", "Check the path and the name node.")


def _by_code(code: str, text: str, location: str, options: Mapping[str, str]) -> Failure | None:
    origin = profiles.origin(options) if location.startswith("s3") else "`storage_options`"
    said = f" ({code})" if code else ""
    if code in _KEY:
        return Failure(
            f"The store does not know the access key{said}", f"The key comes from {origin}: correct it there."
        )
    if code in _SECRET:
        return Failure(
            f"The store rejects the signature, so the secret key does not belong to the access key{said}",
            f"The keys come from {origin}: correct them there.",
        )
    if code in _EXPIRED:
        return Failure(f"The session token has expired{said}", _renew(origin))
    if code in _TOKEN:
        return Failure(
            f"The store does not accept the session token{said}",
            f"The token comes from {origin}: it must belong to the access key, and keys that begin with ASIA need one.",
        )
    if code in _DENIED:
        return _denied(said, origin)
    if code in _SKEWED:
        times = _TIMES.search(text)
        clocks = f": {times[1]} here, {times[2]} there" if times else ""
        return Failure(
            f"The clock of this machine differs too much from the store's{clocks}{said}",
            "Set the clock, for example with `timedatectl set-ntp true`.",
        )
    if code in _NO_BUCKET:
        bucket = split_root(location)[0]
        return Failure(
            f"There is no bucket or container {bucket}{said}",
            "Correct the name, or create it. With a server of your own, also check `endpoint`.",
        )
    if code in _OTHER_REGION or _REDIRECTED in text:
        return _other_region(text, location, options)
    if code in _BUSY:
        return _busy(said)
    return _by_status(text, options)


def _renew(origin: str) -> str:
    if "storage_options" in origin or "environment" in origin:
        return (
            f"The token comes from {origin}: get a new one. A `profile` with a `credential_process`, or the role of the "
            "machine, is renewed without you."
        )
    return f"The token comes from {origin}, and is asked for again at the next run: log in again."


def _denied(said: str, origin: str) -> Failure:
    return Failure(
        f"The credentials have no permission for this{said}",
        f"They come from {origin}. Allow them to list the bucket, and to read, write and delete objects below the root; or "
        "use other credentials.",
    )


def _busy(said: str) -> Failure:
    return Failure(
        f"The store is overloaded or out of order: it answered each retry with an error{said}",
        "Run again later. `max_retries` and `retry_timeout` in `storage_options` make penstock wait longer.",
    )


def _by_status(text: str, options: Mapping[str, str]) -> Failure | None:
    found = _STATUS.search(text)
    status = int(found[1]) if found else 0
    if status in (401, 403):
        return Failure(
            f"The store refuses this: wrong credentials, or no permission ({status})",
            f"Check the credentials ({profiles.origin(options)}) and what they may do.",
        )
    return _busy(f" ({status})") if status in (429, 500, 502, 503, 504) else None


def _no_credentials(location: str) -> Failure:
    if location.startswith("s3"):
        return Failure(
            "There are no credentials for the store: none in `storage_options`, in the environment or in an AWS profile, "
            "and this machine has no instance role",
            "Set `access_key_id` and `secret_access_key`, or `profile`, in `storage_options`; for a public bucket set "
            "`skip_signature: true`.",
        )
    return Failure(
        "There are no credentials for the store: none in `storage_options`, and this machine has no identity of its own",
        "Set the keys in `storage_options`: docs/deploy.md lists them for each store.",
    )


def _transport(text: str, location: str) -> Failure | None:
    """Failures before any answer."""
    where = _ADDRESS.search(text)
    address = where[1] if where else split_root(location)[0]
    if "builder error" in text or "URL scheme is not allowed" in text:
        return Failure(
            f"The address of the store has no TLS ({address})",
            "Set `allow_http: true` in `storage_options`, or write https:// in `endpoint`.",
        )
    if "InvalidContentType" in text or "corrupt message" in text:
        return Failure(
            f"The store speaks HTTP, but its address begins with https:// ({address})",
            "Write http:// in `endpoint`, and set `allow_http: true` in `storage_options`.",
        )
    if "certificate" in text.lower() or "UnknownIssuer" in text:
        return Failure(
            f"The TLS certificate of the store is not trusted ({address})",
            "Set `root_certificate` in `storage_options` to the certificate of your authority.",
        )
    if "refused" in text.lower() or "ConnectionRefused" in text:
        return Failure(
            f"Nothing listens at the address of the store ({address})", "Check `endpoint`, and that it runs."
        )
    if "dns error" in text or "failed to lookup address" in text:
        return Failure(
            f"The host name of the store is not known ({address})",
            "Check `endpoint` and the network. If the bucket was put before the host name, set "
            "`virtual_hosted_style_request: false`.",
        )
    if "TimedOut" in text or "timed out" in text:
        return Failure(
            f"The store does not answer ({address})",
            "Check the network, `endpoint` and proxies. `timeout`, `connect_timeout` and `retry_timeout` in "
            "`storage_options` say how long to wait.",
        )
    if "HTTP error" in text:
        return Failure(
            f"The connection to the store broke ({address})", "Check the network, and run again: nothing is lost."
        )
    return None


def _other_region(text: str, location: str, options: Mapping[str, str]) -> Failure:
    found = _REGION.search(text)
    region = next((group for group in found.groups() if group), None) if found else None
    region = region or _region_of_bucket(text, location)
    if region:
        return Failure(f"The bucket is in another region: {region}", f"Set `region: {region}` in `storage_options`.")
    return Failure(
        "The bucket is in another region, or at another address, than the config says",
        "Set `region` in `storage_options` to the bucket's region, and check `endpoint`.",
    )


def _region_of_bucket(text: str, location: str) -> str | None:
    """The region of a bucket, which S3 tells in a header of any answer; obstore and delta-rs do not pass it on."""
    address = _ADDRESS.search(text)
    if address is None:
        return None
    bucket = split_root(location)[0].partition("://")[2]
    whole = address[1] if address[1].partition("://")[2].startswith(f"{bucket}.") else f"{address[1]}/{bucket}"
    try:
        with urllib.request.urlopen(urllib.request.Request(whole, method="HEAD"), timeout=_ASK_SECONDS) as answer:
            headers = answer.headers
    except urllib.error.HTTPError as error:
        headers = error.headers
    except (OSError, ValueError):
        return None
    region = headers.get("x-amz-bucket-region")
    return str(region) if region else None
