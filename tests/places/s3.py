"""An S3 on loopback: the tests' own server, or versitygw where PENSTOCK_S3_SERVER names its binary."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.places.place import Store

_SECONDS_TO_START = 20
_KEY = "loopback-key"


class S3(Store):
    """One bucket, which is pytest's temporary folder."""

    on_disk = False

    def __init__(self, folder: Path, endpoint: str) -> None:
        self._folder, self._endpoint = folder, endpoint

    @classmethod
    @contextmanager
    def open(cls, folder: Path) -> Iterator[S3]:
        binary = os.environ.get("PENSTOCK_S3_SERVER")
        server = _versitygw(binary, folder) if binary else own_server(folder)
        with server as endpoint:
            yield cls(folder, endpoint)

    @property
    def storage_options(self) -> dict[str, str]:
        return {
            "endpoint": self._endpoint,
            "region": "us-east-1",
            "access_key_id": _KEY,
            "secret_access_key": _KEY,
            "allow_http": "true",
        }

    def location(self, path: Path) -> str:
        return f"s3://{self._folder.name}/{path.relative_to(self._folder)}"

    def path(self, location: str) -> Path:
        return self._folder / location.removeprefix(f"s3://{self._folder.name}/")


@contextmanager
def own_server(folder: Path) -> Iterator[str]:
    """The tests' own server, in a process of its own: delta-rs's reader holds Python's lock while it waits for it."""
    command = [sys.executable, "-m", "tests.s3_server", folder.name, str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.stdin.close()
        process.wait(_SECONDS_TO_START)


@contextmanager
def _versitygw(binary: str, folder: Path) -> Iterator[str]:
    """versitygw serves the folder above as a store, in which each folder is a bucket."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [binary, "--access", _KEY, "--secret", _KEY, "--port", f"127.0.0.1:{port}", "posix", str(folder.parent)]
    said = folder / "versitygw.log"
    with said.open("wb") as sink:
        process = subprocess.Popen(command, stdout=sink, stderr=sink)
    try:
        _wait(process, f"http://127.0.0.1:{port}", said)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(_SECONDS_TO_START)


def _wait(process: subprocess.Popen[bytes], endpoint: str, said: Path) -> None:
    until = time.monotonic() + _SECONDS_TO_START
    while time.monotonic() < until and process.poll() is None:
        try:
            urlopen(endpoint, timeout=1).close()
        except HTTPError:
            return  # it wants a signature
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise pytest.UsageError(f"versitygw did not start: {said.read_text(errors='replace')[-500:]}")
