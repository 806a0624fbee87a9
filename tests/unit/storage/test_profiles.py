"""Credentials of S3: options, environment, profiles, roles of machines and containers; and tokens that are renewed."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from penstock.api import Lake
from penstock.delta.table import Table
from penstock.errors import NotFound, PenstockError
from penstock.storage import Storage
from tests.s3_server import S3

ROOT = "s3://bucket/lake"


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_PROFILE",
        "AWS_REGION",
        "AWS_DEFAULT_REGION",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))


def bare(s3: S3, **given: str) -> dict[str, str]:
    """Options without keys."""
    return {"endpoint": s3.endpoint, "allow_http": "true", "max_retries": "1", **given}


def used(s3: S3, options: dict[str, str]) -> set[str]:
    """The keys that both clients sign with, each with its region and its session token."""
    s3.signed.clear()
    list(Storage(ROOT, options).list(""))
    with pytest.raises(NotFound):
        Table.open(f"{ROOT}/t", options)
    return set(s3.signed)


def process(folder: Path, keys: dict[str, Any]) -> str:
    """A `credential_process` that prints these keys and counts its calls."""
    (folder / "keys.json").write_text(json.dumps({"Version": 1, **keys}))
    script = folder / "process"
    script.write_text(f"#!/bin/sh\necho call >> {folder}/calls\ncat {folder}/keys.json\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script)


def calls(folder: Path) -> int:
    return (folder / "calls").read_text().count("call")


def test_keys_of_the_options(s3: S3) -> None:
    options = bare(s3, access_key_id="OPTION", secret_access_key="s", session_token="t", region="eu-1")
    assert used(s3, options) == {"OPTION eu-1 t"}


def test_keys_of_the_environment(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "VARIABLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t")
    monkeypatch.setenv("AWS_REGION", "eu-2")
    monkeypatch.setenv("AWS_PROFILE", "is-not-looked-at")
    assert used(s3, bare(s3)) == {"VARIABLE eu-2 t"}


def test_anonymous(s3: S3) -> None:
    assert used(s3, bare(s3, skip_signature="true")) == {"anonymous"}


@pytest.mark.parametrize("how", ["option", "variable", "default"])
def test_keys_of_a_profile(how: str, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "default" if how == "default" else "shop"
    section = name if name == "default" else f"profile {name}"
    (tmp_path / "config").write_text(f"[{section}]\nregion = eu-3\naws_access_key_id = OLD\n")
    (tmp_path / "credentials").write_text(f"[{name}]\naws_access_key_id = PROFILE\naws_secret_access_key = s\n")
    if how == "variable":
        monkeypatch.setenv("AWS_PROFILE", "shop")
    options = bare(s3, profile="shop") if how == "option" else bare(s3)
    assert used(s3, options) == {"PROFILE eu-3 None"}
    assert used(s3, options | {"region": "eu-4"}) == {"PROFILE eu-4 None"}


def test_a_profile_in_the_options_of_a_lake(s3: S3, tmp_path: Path) -> None:
    (tmp_path / "credentials").write_text("[shop]\naws_access_key_id = PROFILE\naws_secret_access_key = s\n")
    assert Lake(ROOT, storage_options=bare(s3, AWS_PROFILE="shop")).schemas() == []


def test_a_process_is_asked_again_when_its_keys_expire(s3: S3, tmp_path: Path) -> None:
    soon = (datetime.now(timezone.utc) - timedelta(seconds=5)).isoformat()
    command = process(tmp_path, {"AccessKeyId": "A1", "SecretAccessKey": "s", "SessionToken": "t", "Expiration": soon})
    (tmp_path / "config").write_text(f"[profile shop]\ncredential_process = {command}\n")
    storage = Storage(ROOT, bare(s3, profile="shop", region="r"))
    list(storage.list(""))
    later = (datetime.now(timezone.utc) + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    process(tmp_path, {"AccessKeyId": "A2", "SecretAccessKey": "s", "Expiration": later})
    for _ in range(3):
        list(storage.list(""))
    assert list(dict.fromkeys(s3.signed)) == ["A1 r t", "A2 r None"]
    assert calls(tmp_path) == 2


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "There is no AWS profile shop"),
        ("[profile shop]\nsso_session = x\n", "aws configure export-credentials --profile shop --format process"),
        ("[profile shop]\ncredential_process = /no/such/command\n", "gave no keys"),
        ("[profile shop]\ncredential_process = /bin/false\n", "it ended with 1"),
        ("[profile shop]\ncredential_process = echo secret-that-is-no-json\n", "it printed no JSON"),
        ("[profile shop]\ncredential_process = echo {}\n", "its answer lacks 'AccessKeyId'"),
        ("no section\n", "This AWS config file can't be read"),
    ],
)
def test_a_profile_without_keys_is_an_error(config: str, message: str, s3: S3, tmp_path: Path) -> None:
    (tmp_path / "config").write_text(config)
    options = bare(s3, profile="shop")
    for ask in (lambda: list(Storage(ROOT, options).list("")), lambda: Table.open(ROOT, options)):
        with pytest.raises(PenstockError, match=message) as caught:
            ask()
        assert "secret-that" not in str(caught.value)


def test_an_expired_token_names_where_it_came_from(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "credentials").write_text(
        "[shop]\naws_access_key_id = A\naws_secret_access_key = s\naws_session_token = t\n"
    )
    s3.fail("*", status=400, times=100, code="ExpiredToken")
    with pytest.raises(PenstockError, match=r"expired.*the AWS profile shop"):
        list(Storage(ROOT, bare(s3, profile="shop")).list(""))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    with pytest.raises(PenstockError, match=r"expired.*the environment \(AWS_ACCESS_KEY_ID\)"):
        list(Storage(ROOT, bare(s3)).list(""))


class _Roles(BaseHTTPRequestHandler):
    """The metadata of a machine and of a container: keys that have expired at first, and then new ones."""

    server: Any

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_PUT(self) -> None:
        self._answer("token-of-the-machine")

    def do_GET(self) -> None:
        if self.path.endswith("/security-credentials/"):
            return self._answer("role")
        self.server.given += 1
        expires = datetime.now(timezone.utc) + timedelta(seconds=-1 if self.server.given == 1 else 3600)
        self._answer(
            json.dumps(
                {
                    "Code": "Success",
                    "AccessKeyId": f"ROLE{self.server.given}",
                    "SecretAccessKey": "s",
                    "Token": "t",
                    "Expiration": expires.strftime("%Y-%m-%dT%H:%M:%SZ"),
                }
            )
        )

    def _answer(self, text: str) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())


@pytest.fixture
def roles() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Roles)
    server.given = 0  # type: ignore[attr-defined]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("kind", ["machine", "container"])
def test_keys_of_a_role_are_renewed(kind: str, s3: S3, roles: str, tmp_path: Path) -> None:
    (tmp_path / "authorization").write_text("token")
    given = {
        "machine": {"metadata_endpoint": roles},
        "container": {
            "container_credentials_full_uri": f"{roles}/keys",
            "container_authorization_token_file": str(tmp_path / "authorization"),
        },
    }[kind]
    storage = Storage(ROOT, bare(s3, region="r", **given))
    for _ in range(3):
        list(storage.list(""))
    assert list(dict.fromkeys(s3.signed)) == ["ROLE1 r t", "ROLE2 r t"]


def test_no_credentials_at_all(s3: S3) -> None:
    options = bare(s3, metadata_endpoint="http://169.254.169.254:1", connect_timeout="300ms")
    with pytest.raises(PenstockError, match=r"no credentials for the store.*`profile`"):
        list(Storage(ROOT, options).list(""))
