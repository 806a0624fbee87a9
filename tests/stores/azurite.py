"""Azure's own emulator of its blob store, on loopback: `make test-adls` installs it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

ACCOUNT = "devstoreaccount1"
# The key of every Azurite, from its documentation.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
CONTAINER = "container"
ROOT = f"abfss://{CONTAINER}@{ACCOUNT}.dfs.core.windows.net"
COMMAND = Path(__file__).parents[2] / ".tools" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
_LISTENS = re.compile(r"listens on (http://[\d.]+:\d+)")


@contextmanager
def serve() -> Iterator[dict[str, str]]:
    """An emulator with one container; gives the `storage_options` that reach it."""
    arguments = ["--silent", "--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence"]
    command = [str(COMMAND), *arguments, "--blobHost", "127.0.0.1", "--blobPort", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        found = next(found for line in process.stdout if (found := _LISTENS.search(line)))
        endpoint = f"{found[1]}/{ACCOUNT}"
        _make_container(endpoint)
        yield {"account_name": ACCOUNT, "account_key": KEY, "endpoint": endpoint, "allow_http": "true"}
    finally:
        process.kill()
        process.wait()


def _make_container(endpoint: str) -> None:
    """Create the container: neither obstore nor delta-rs can do this."""
    headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    signed = "".join(f"{name}:{value}\n" for name, value in headers.items())
    text = "PUT" + "\n" * 12 + f"{signed}/{ACCOUNT}/{ACCOUNT}/{CONTAINER}\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}", "Content-Length": "0"}
    request = urllib.request.Request(f"{endpoint}/{CONTAINER}?restype=container", method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=30).close()
