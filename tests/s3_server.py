"""An S3 of the tests' own on loopback: enough of it for obstore and delta-rs, and faults that a test can set."""

from __future__ import annotations

import hashlib
import html
import os
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote
from xml.sax.saxutils import escape

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Stored:
    """An object. `modified` has milliseconds: a listing shows them, HEAD and GET show whole seconds, as S3 does."""

    data: bytes
    modified: float

    @property
    def etag(self) -> str:
        return f'"{hashlib.md5(self.data).hexdigest()}"'


class Folder(MutableMapping[str, Stored]):
    """The files below a folder as objects, so that a test can write and look at them. A key that ends in `/` is a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._markers: set[str] = set()

    def __getitem__(self, key: str) -> Stored:
        path = self._path(key)
        if key.endswith("/"):
            if key in self._markers and os.path.isdir(path):
                return Stored(b"", os.stat(path).st_mtime)
            raise KeyError(key)
        try:
            with open(path, "rb") as file:
                return Stored(file.read(), os.fstat(file.fileno()).st_mtime)
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            raise KeyError(key) from None

    def __setitem__(self, key: str, stored: Stored) -> None:
        path = self._path(key)
        if key.endswith("/"):
            os.makedirs(path, exist_ok=True)
            self._markers.add(key)
            return
        os.makedirs(os.path.dirname(path), exist_ok=True)
        beside = f"{path}.{threading.get_ident()}.part"
        with open(beside, "wb") as file:
            file.write(stored.data)
        os.utime(beside, (stored.modified, stored.modified))
        os.replace(beside, path)

    def __delitem__(self, key: str) -> None:
        if key.endswith("/"):
            if key not in self._markers:
                raise KeyError(key)
            self._markers.discard(key)
        else:
            try:
                os.unlink(self._path(key))
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                raise KeyError(key) from None
        self._remove_empty(os.path.dirname(self._path(key.rstrip("/"))))

    def __iter__(self) -> Iterator[str]:
        return iter(self.below(""))

    def __len__(self) -> int:
        return len(self.below(""))

    def below(self, prefix: str) -> list[str]:
        """The keys with a prefix, sorted."""
        found = [marker for marker in self._markers if marker.startswith(prefix) and os.path.isdir(self._path(marker))]
        start = self._path(prefix.rpartition("/")[0])
        for folder, _, files in os.walk(start, followlinks=True):
            at = os.path.relpath(folder, self._folder)
            keys = (name if at == "." else f"{at}/{name}" for name in files if not name.endswith(".part"))
            found += [key for key in keys if key.startswith(prefix)]
        return sorted(found)

    def _path(self, key: str) -> str:
        return os.path.join(self._folder, key)

    def _remove_empty(self, path: str) -> None:
        """A store has no folders: one without objects is gone, unless a test's own folder was empty before."""
        while path.startswith(self._folder + os.sep) and f"{os.path.relpath(path, self._folder)}/" not in self._markers:
            try:
                os.rmdir(path)
            except OSError:
                return
            path = os.path.dirname(path)


@dataclass
class Fault:
    """The next `times` requests of a method (`*`: any) are answered by `status`, `before` or `after` they are carried out.

    Status 0 cuts the connection.
    """

    method: str
    when: str = BEFORE
    status: int = 503
    times: int = 1
    code: str = "SlowDown"
    after: int = 0
    """How many requests pass before the first one that fails."""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class S3:
    """One bucket. Keys are kept as the client means them, decoded once."""

    bucket: str = "bucket"
    objects: MutableMapping[str, Stored] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    requests: Counter[str] = field(default_factory=Counter)
    signed: list[str] = field(default_factory=list)
    """The access key, the region and the session token of each request."""
    page: int = 1000
    endpoint: str = ""
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def options(self) -> dict[str, str]:
        """`storage_options` that reach this server, client options among them."""
        return {
            "endpoint": self.endpoint,
            "region": "us-east-1",
            "access_key_id": "loopback-key",
            "secret_access_key": "loopback-secret",
            "allow_http": "true",
        }

    def keys(self, prefix: str) -> list[str]:
        """The keys with a prefix, sorted."""
        with self.lock:
            if isinstance(self.objects, Folder):
                return self.objects.below(prefix)
            return sorted(key for key in self.objects if key.startswith(prefix))

    def put(self, key: str, data: bytes = b"x", modified: float | None = None) -> None:
        with self.lock:
            self.objects[key] = Stored(data, time.time() if modified is None else modified)

    def fail(
        self,
        method: str,
        when: str = BEFORE,
        status: int = 503,
        times: int = 1,
        code: str = "SlowDown",
        after: int = 0,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.faults.append(Fault(method, when, status, times, code, after, headers or {}))

    def fault(self, method: str, when: str) -> Fault | None:
        with self.lock:
            for fault in self.faults:
                if fault.method in (method, "*") and fault.when == when and fault.times > 0:
                    if fault.after > 0:
                        fault.after -= 1
                        continue
                    fault.times -= 1
                    return fault
        return None


@contextmanager
def serve(bucket: str = "bucket", folder: Path | None = None) -> Iterator[S3]:
    """A server on a free port of 127.0.0.1, until the block ends; its objects are the files of `folder`, or in memory."""
    store = S3(bucket, Folder(folder) if folder else {})
    handler = type("Handler", (_Handler,), {"store": store})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    store.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield store
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    store: S3
    protocol_version = "HTTP/1.1"
    # Head and body in one packet: two would wait for each other, 40 ms a request.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._carry_out("GET")

    def do_HEAD(self) -> None:
        self._carry_out("HEAD")

    def do_PUT(self) -> None:
        self._carry_out("PUT")

    def do_POST(self) -> None:
        self._carry_out("POST")

    def do_DELETE(self) -> None:
        self._carry_out("DELETE")

    def _carry_out(self, method: str) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        _, _, rest = path.partition("/")
        bucket, _, key = rest.partition("/")
        key, asked = unquote(key), {name: values[0] for name, values in parse_qs(query, True).items()}
        listing = method == "GET" and not key
        self._note_signature()
        self.store.requests["LIST" if listing else method] += 1
        name = "LIST" if listing else method
        fault = self.store.fault(name, BEFORE)
        if fault is not None:
            return self._answer(fault.status, _error(fault.code), fault.headers)
        if unquote(bucket) != self.store.bucket:
            return self._answer(404, _error("NoSuchBucket"))
        with self.store.lock:
            answer = self._list(asked) if listing else getattr(self, f"_{method.lower()}")(key, asked, body)
        fault = self.store.fault(name, AFTER)
        if fault is not None:
            return self._answer(fault.status, _error(fault.code), fault.headers)
        return self._answer(*answer)

    def _note_signature(self) -> None:
        found = re.search(r"Credential=([^/]+)/[^/]+/([^/]+)/", self.headers.get("Authorization") or "")
        token = self.headers.get("x-amz-security-token")
        self.store.signed.append(f"{found[1]} {found[2]} {token}" if found else "anonymous")

    def _answer(self, status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> None:
        if status == 0:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(status)
        headers = {"Content-Length": str(len(body)), **(headers or {})}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _list(self, asked: dict[str, str]) -> tuple[int, bytes]:
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = max(asked.get("continuation-token", ""), asked.get("start-after", ""))
        keys = [key for key in self.store.keys(prefix) if key > after]
        page, rest = keys[: self.store.page], keys[self.store.page :]
        parts, folders = [], set()
        for key in page:
            if delimiter and delimiter in key[len(prefix) :]:
                folders.add(prefix + key[len(prefix) :].split(delimiter)[0] + delimiter)
                continue
            found = self.store.objects[key]
            moment = datetime.fromtimestamp(found.modified, timezone.utc).isoformat(timespec="milliseconds")
            parts.append(
                f"<Contents><Key>{escape(key)}</Key><LastModified>{moment.replace('+00:00', 'Z')}</LastModified>"
                f"<ETag>{escape(found.etag)}</ETag><Size>{len(found.data)}</Size></Contents>"
            )
        parts += [f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in sorted(folders)]
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest else ""
        return 200, _xml(
            f"<ListBucketResult><IsTruncated>{'true' if rest else 'false'}</IsTruncated>{more}{''.join(parts)}"
            "</ListBucketResult>"
        )

    def _get(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        found = self.store.objects.get(key)
        if found is None:
            return 404, _error("NoSuchKey"), {}
        headers = {"Last-Modified": formatdate(int(found.modified), usegmt=True), "ETag": found.etag}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted is None:
            return 200, found.data, headers
        first, last = int(wanted[1]), min(int(wanted[2] or len(found.data)), len(found.data) - 1)
        return (
            206,
            found.data[first : last + 1],
            {**headers, "Content-Range": f"bytes {first}-{last}/{len(found.data)}"},
        )

    def _head(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        return self._get(key, asked, body)

    def _put(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if self.headers.get("If-None-Match") == "*" and key in self.store.objects:
            return 412, _error("PreconditionFailed"), {}
        copied = self.headers.get("x-amz-copy-source")
        if copied is not None:
            found = self.store.objects.get(unquote(copied).lstrip("/").partition("/")[2])
            if found is None:
                return 404, _error("NoSuchKey"), {}
            body = found.data
        self.store.put(key, body)
        etag = self.store.objects[key].etag
        result = _xml(f"<CopyObjectResult><ETag>{escape(etag)}</ETag></CopyObjectResult>") if copied else b""
        return 200, result, {"ETag": etag}

    def _post(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes]:
        """DeleteObjects, the only POST that is known here."""
        gone = [html.unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", body.decode(), re.DOTALL)]
        for name in gone:
            self.store.objects.pop(name, None)
        deleted = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in gone)
        return 200, _xml(f"<DeleteResult>{deleted}</DeleteResult>")

    def _delete(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes]:
        self.store.objects.pop(key, None)
        return 204, b""


def _xml(text: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()


def _error(code: str) -> bytes:
    return _xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>")
