"""An S3 of the tests' own on loopback: enough of it for obstore, delta-rs and Hadoop, and faults that a test can set."""

from __future__ import annotations

import hashlib
import html
import io
import os
import re
import socket
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timezone
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, quote, unquote
from xml.sax.saxutils import escape

BEFORE, AFTER = "before", "after"


@dataclass(frozen=True)
class Stored:
    """An object. `modified` has milliseconds: a listing shows them, HEAD and GET show whole seconds, as S3 does."""

    data: bytes
    modified: float
    tag: str = ""

    @property
    def etag(self) -> str:
        return f'"{self.tag or hashlib.md5(self.data).hexdigest()}"'


@dataclass(frozen=True)
class Listed:
    """An object as a listing shows it."""

    key: str
    size: int
    modified: float
    etag: str


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
                status = os.fstat(file.fileno())
                return Stored(file.read(), status.st_mtime, _tag(status))
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

    def listed(self, key: str) -> Listed:
        """An object as a listing shows it, without reading it."""
        status = os.stat(self._path(key))
        size = 0 if key.endswith("/") else status.st_size
        return Listed(key, size, status.st_mtime, f'"{_tag(status)}"')

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


def _tag(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_size:x}"


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
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """The parts of each upload that is under way, by its id."""
    heeds: bool = True
    """Whether a put heeds `If-None-Match`."""
    heeds_in_parts: bool = True
    """Whether the completion of an upload in parts does."""

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

    def listed(self, key: str) -> Listed:
        with self.lock:
            if isinstance(self.objects, Folder):
                return self.objects.listed(key)
            found = self.objects[key]
            return Listed(key, len(found.data), found.modified, found.etag)

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

    def handle_expect_100(self) -> bool:
        """Answer at once: a client waits a second for it before it sends the body."""
        answered = super().handle_expect_100()
        self.wfile.flush()
        return answered

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
        body = self._body()
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

    def _body(self) -> bytes:
        """The request's body, without the chunks that Amazon's client signs."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = _without_chunks(self.rfile.readline, self.rfile.read)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if "x-amz-decoded-content-length" not in self.headers:
            return body
        wrapped = io.BytesIO(body)
        return _without_chunks(wrapped.readline, wrapped.read)

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
        if "location" in asked:
            return 200, _xml("<LocationConstraint></LocationConstraint>")
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = max(asked.get("continuation-token", ""), asked.get("start-after", ""))
        encode = quote if asked.get("encoding-type") == "url" else str
        keys = [key for key in self.store.keys(prefix) if key > after]
        most = min(self.store.page, int(asked.get("max-keys") or self.store.page))
        page, rest = keys[:most], keys[most:]
        parts, folders = [], set()
        for key in page:
            if delimiter and delimiter in key[len(prefix) :]:
                folders.add(prefix + key[len(prefix) :].split(delimiter)[0] + delimiter)
                continue
            try:
                found = self.store.listed(key)
            except FileNotFoundError:
                continue  # a test has removed the file
            moment = datetime.fromtimestamp(found.modified, timezone.utc).isoformat(timespec="milliseconds")
            parts.append(
                f"<Contents><Key>{escape(encode(key))}</Key><LastModified>{moment.replace('+00:00', 'Z')}</LastModified>"
                f"<ETag>{escape(found.etag)}</ETag><Size>{found.size}</Size></Contents>"
            )
        parts += [
            f"<CommonPrefixes><Prefix>{escape(encode(name))}</Prefix></CommonPrefixes>" for name in sorted(folders)
        ]
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" if rest and page else ""
        encoding = "<EncodingType>url</EncodingType>" if encode is quote else ""
        return 200, _xml(
            f"<ListBucketResult><Prefix>{escape(encode(prefix))}</Prefix><KeyCount>{len(page)}</KeyCount>{encoding}"
            f"<IsTruncated>{'true' if rest else 'false'}</IsTruncated>{more}{''.join(parts)}</ListBucketResult>"
        )

    def _get(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        if not key:
            return 200, b"", {}  # HEAD of the bucket
        found = self.store.objects.get(key)
        if found is None:
            return 404, _error("NoSuchKey"), {}
        headers = {
            "Last-Modified": formatdate(int(found.modified), usegmt=True),
            "ETag": found.etag,
            "Accept-Ranges": "bytes",
        }
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if wanted is None:
            # As HEAD, an answer without its body has the length of the body.
            return 200, found.data, headers
        first, last = int(wanted[1]), min(int(wanted[2] or len(found.data)), len(found.data) - 1)
        if first >= len(found.data):
            return 416, _error("InvalidRange"), {}
        return (
            206,
            found.data[first : last + 1],
            {**headers, "Content-Range": f"bytes {first}-{last}/{len(found.data)}"},
        )

    def _head(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        return self._get(key, asked, body)

    def _put(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes, dict[str, str]]:
        copied = self.headers.get("x-amz-copy-source")
        if copied is not None:
            found = self.store.objects.get(unquote(copied).lstrip("/").partition("/")[2])
            if found is None:
                return 404, _error("NoSuchKey"), {}
            body = found.data
            part = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("x-amz-copy-source-range") or "")
            if part is not None:
                body = body[int(part[1]) : int(part[2]) + 1]
        if "uploadId" in asked:
            if asked["uploadId"] not in self.store.uploads:
                return 404, _error("NoSuchUpload"), {}
            self.store.uploads[asked["uploadId"]][int(asked["partNumber"])] = body
            etag, result = Stored(body, 0).etag, "CopyPartResult"
        else:
            if self.store.heeds and self._is_taken(key):
                return 412, _error("PreconditionFailed"), {}
            self.store.put(key, body)
            etag, result = self.store.listed(key).etag, "CopyObjectResult"
        moment = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        told = _xml(f"<{result}><LastModified>{moment}</LastModified><ETag>{escape(etag)}</ETag></{result}>")
        return 200, told if copied else b"", {"ETag": etag}

    def _is_taken(self, key: str) -> bool:
        return self.headers.get("If-None-Match") == "*" and key in self.store.objects

    def _post(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if "uploads" in asked:
            upload = uuid.uuid4().hex
            self.store.uploads[upload] = {}
            return 200, _xml(
                f"<InitiateMultipartUploadResult><Bucket>{self.store.bucket}</Bucket><Key>{escape(key)}</Key>"
                f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
        if "uploadId" in asked:
            return self._complete(key, asked["uploadId"])
        gone = [html.unescape(key) for key in re.findall(r"<Key>(.*?)</Key>", body.decode(), re.DOTALL)]
        for name in gone:
            self.store.objects.pop(name, None)
        deleted = "".join(f"<Deleted><Key>{escape(name)}</Key></Deleted>" for name in gone)
        return 200, _xml(f"<DeleteResult>{deleted}</DeleteResult>")

    def _complete(self, key: str, upload: str) -> tuple[int, bytes]:
        if upload not in self.store.uploads:
            return 404, _error("NoSuchUpload")
        if self.store.heeds_in_parts and self._is_taken(key):
            return 412, _error("PreconditionFailed")
        parts = self.store.uploads.pop(upload)
        self.store.put(key, b"".join(parts[number] for number in sorted(parts)))
        etag = self.store.listed(key).etag
        return 200, _xml(
            f"<CompleteMultipartUploadResult><Bucket>{self.store.bucket}</Bucket><Key>{escape(key)}</Key>"
            f"<ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>"
        )

    def _delete(self, key: str, asked: dict[str, str], body: bytes) -> tuple[int, bytes]:
        if "uploadId" in asked:
            self.store.uploads.pop(asked["uploadId"], None)
        else:
            self.store.objects.pop(key, None)
        return 204, b""


def _without_chunks(line: Callable[[], bytes], read: Callable[[int], bytes]) -> bytes:
    """The content of a body in chunks, each of which begins with its size; what follows the last one is skipped."""
    found = b""
    while size := int(line().partition(b";")[0], 16):
        found += read(size)
        line()
    while line().strip():
        pass
    return found


def _xml(text: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?>{text}'.encode()


def _error(code: str) -> bytes:
    return _xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>")


if __name__ == "__main__":
    with serve(sys.argv[1], Path(sys.argv[2])) as served:
        print(served.endpoint, flush=True)
        # Ends with the process that has started it.
        sys.stdin.read()
