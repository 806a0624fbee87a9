"""Failures of a store say what happened, where, and what to do, by obstore and by delta-rs; and they end in time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from penstock.delta.table import Table
from penstock.errors import NotFound, PenstockError
from penstock.storage import Storage
from tests.s3_server import S3

SECRET = "Qm9vZ2llLXdvb2dpZQ"
ROOT = "s3://bucket/lake"

Ask = Callable[[str, dict[str, str]], object]
ASKS: dict[str, Ask] = {
    "list": lambda root, options: list(Storage(root, options).list("")),
    "folders": lambda root, options: Storage(root, options).folders(""),
    "head": lambda root, options: Storage(root, options).head("a"),
    "read": lambda root, options: Storage(root, options).read("a"),
    "read_start": lambda root, options: Storage(root, options).read_start("a"),
    "write": lambda root, options: Storage(root, options).write("b", b"1"),
    "write_new": lambda root, options: Storage(root, options).write_new("b", b"1"),
    "copy": lambda root, options: Storage(root, options).copy("a", "b"),
    "delete": lambda root, options: Storage(root, options).delete("a"),
    "batches": lambda root, options: list(Storage(root, options).batches(10)),
    "table": lambda root, options: Table.open(f"{root}/t", options),
}
REFUSALS = [
    (403, "InvalidAccessKeyId", "does not know the access key", "comes from `storage_options`"),
    (403, "SignatureDoesNotMatch", "rejects the signature", "come from `storage_options`"),
    (403, "AccessDenied", "no permission", "Allow them to list the bucket"),
    (403, "RequestTimeTooSkewed", "clock of this machine", "Set the clock"),
    (400, "ExpiredToken", "session token has expired", "get a new one"),
    (400, "InvalidToken", "does not accept the session token", "ASIA"),
    (404, "NoSuchBucket", "no bucket or container s3://bucket", "create it"),
    (301, "PermanentRedirect", "another region: eu-west-1", "region: eu-west-1"),
    (400, "AuthorizationHeaderMalformed", "another region: eu-west-1", "region: eu-west-1"),
]


def options_of(s3: S3, **given: str) -> dict[str, str]:
    return {**s3.options, "secret_access_key": SECRET, **given}


def failure(ask: Ask, root: str, options: dict[str, str]) -> str:
    with pytest.raises(PenstockError) as caught:
        ask(root, options)
    assert not isinstance(caught.value, NotFound)
    text = str(caught.value)
    assert root in text
    assert SECRET not in text
    assert "\n" not in text
    return text


@pytest.mark.parametrize("verb", ASKS)
@pytest.mark.parametrize(("status", "code", "what", "fix"), REFUSALS)
def test_a_refusal_is_explained(verb: str, status: int, code: str, what: str, fix: str, s3: S3) -> None:
    s3.fail("*", status=status, times=100, code=code, headers={"x-amz-bucket-region": "eu-west-1"})
    started = time.monotonic()
    text = failure(ASKS[verb], ROOT, options_of(s3))
    assert what in text
    assert fix in text
    assert time.monotonic() - started < 5


def test_a_region_is_taken_from_the_body(s3: S3) -> None:
    s3.fail("*", status=400, times=100, code="AuthorizationHeaderMalformed</Code><Region>sa-east-1</Region><Code>x")
    assert "another region: sa-east-1" in failure(ASKS["list"], ROOT, options_of(s3))


@pytest.mark.parametrize("verb", ASKS)
@pytest.mark.parametrize("status", [500, 503, 0])
def test_a_store_that_is_out_of_order_is_asked_again_and_then_an_error(verb: str, status: int, s3: S3) -> None:
    s3.put("lake/a")
    s3.fail("*", status=status, times=100, code="InternalError")
    options = options_of(s3, max_retries="2", **{"backoff_config.init_backoff": "10ms"})
    started = time.monotonic()
    text = failure(ASKS[verb], ROOT, options)
    assert ("overloaded" if status else "connection to the store broke") in text
    # `max_retries` reaches both clients; the connections of the library below are tried again without being counted.
    assert sum(s3.requests.values()) <= 30
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("verb", ["list", "head", "read", "write_new", "table"])
def test_a_store_that_recovers_is_not_an_error(verb: str, s3: S3) -> None:
    s3.put("lake/a")
    s3.fail("*", status=503, times=2)
    try:
        ASKS[verb](ROOT, options_of(s3))
    except NotFound:
        assert verb == "table"


@contextmanager
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(100)
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("verb", ["list", "head", "read", "write_new", "table"])
def test_a_store_that_does_not_answer(verb: str, s3: S3) -> None:
    with silent() as endpoint:
        options = options_of(s3, endpoint=endpoint, timeout="300ms", max_retries="1")
        started = time.monotonic()
        assert "does not answer" in failure(ASKS[verb], ROOT, options)
        assert time.monotonic() - started < 10


@pytest.mark.parametrize("verb", ["list", "table"])
@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"endpoint": "https://"}, "speaks HTTP, but its address begins with https://"),
        ({"allow_http": "false"}, "has no TLS"),
        ({"endpoint": "http://127.0.0.1:1"}, "Nothing listens"),
        ({"endpoint": "http://no-host.invalid"}, "host name of the store is not known"),
    ],
)
def test_an_address_that_is_wrong(verb: str, given: dict[str, str], what: str, s3: S3) -> None:
    if given.get("endpoint") == "https://":
        given = {"endpoint": s3.endpoint.replace("http", "https")}
    started = time.monotonic()
    assert what in failure(ASKS[verb], ROOT, options_of(s3, max_retries="1", **given))
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("verb", ["list", "head", "table"])
def test_a_bucket_that_is_not_there(verb: str, s3: S3) -> None:
    text = failure(ASKS[verb], "s3://other/lake", options_of(s3))
    assert "no bucket or container s3://other" in text


def test_an_object_that_is_not_there_costs_one_look_at_the_bucket(s3: S3) -> None:
    storage = Storage(ROOT, options_of(s3))
    assert [storage.head("a"), storage.head("b"), storage.head("c")] == [None] * 3
    assert s3.requests == {"HEAD": 3, "LIST": 1}


def test_a_url_that_delta_rs_does_not_know_is_not_a_missing_table() -> None:
    with pytest.raises(PenstockError) as caught:
        Table.open("foo://bucket/t")
    assert not isinstance(caught.value, NotFound)


def test_requests_of_many_threads_fail_alike(s3: S3) -> None:
    s3.fail("*", status=403, times=1000, code="AccessDenied")
    storage, found = Storage(ROOT, options_of(s3)), []

    def ask() -> None:
        try:
            storage.read("a")
        except PenstockError as error:
            found.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert len(set(found)) == 1
