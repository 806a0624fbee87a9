"""An HTTP proxy in front of a store, with the faults of networks and stores, each at the request that a test names.

It works before every server: it passes requests on as they are, with their signatures.
"""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

_HOP_BY_HOP = ("connection", "transfer-encoding", "keep-alive")
_SECONDS = 60


@dataclass(frozen=True)
class Request:
    """A request on its way to the store."""

    method: str
    path: str
    """With the bucket, and decoded; without the query."""
    query: str
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def is_conditional(self) -> bool:
        return any(name.lower() == "if-none-match" for name in self.headers)


Fault = Callable[["Proxy", Request], "Answer | None"]
"""What happens to a request: an answer; None cuts the connection."""


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = field(default=b"", repr=False)


class Proxy:
    """The proxy: where it is, what has gone through it, and the faults that wait for their request."""

    def __init__(self, backend: str) -> None:
        address = urlsplit(backend)
        self._host, self._port = address.hostname or "", address.port or 80
        self.endpoint = ""
        self.seen: list[Request] = []
        self.failed: list[str] = []
        """The requests that met a fault."""
        self._waiting: list[tuple[Callable[[Request], bool], Fault, int]] = []
        self._lock = threading.Lock()
        self.late: list[threading.Thread] = []

    def fail(self, when: Callable[[Request], bool], fault: Fault, times: int = 1) -> None:
        """The next `times` requests that `when` is true of meet the fault."""
        with self._lock:
            self._waiting.append((when, fault, times))

    def calm(self) -> None:
        """Forget the faults that have not happened."""
        with self._lock:
            self._waiting.clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside, no request meets a fault, and none is counted."""
        with self._lock:
            kept, self._waiting = self._waiting, []
            seen = len(self.seen)
        try:
            yield
        finally:
            with self._lock:
                self._waiting = kept
                del self.seen[seen:]

    def carry(self, request: Request) -> Answer | None:
        with self._lock:
            self.seen.append(request)
            fault = self._fault(request)
            if fault is not None:
                self.failed.append(f"{request.method} {request.path}")
        return self.send(request) if fault is None else fault(self, request)

    def _fault(self, request: Request) -> Fault | None:
        for index, (when, fault, times) in enumerate(self._waiting):
            if when(request):
                if times > 1:
                    self._waiting[index] = (when, fault, times - 1)
                else:
                    del self._waiting[index]
                return fault
        return None

    def send(self, request: Request) -> Answer:
        """The store's own answer."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=_SECONDS)
        try:
            target = request.headers["X-Target"]
            connection.putrequest(request.method, target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                if name != "X-Target" and name.lower() not in (*_HOP_BY_HOP, "content-length", "expect"):
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(request.body)))
            connection.endheaders(request.body)
            answer = connection.getresponse()
            body = answer.read()
            headers = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP_BY_HOP}
            return Answer(answer.status, headers, body)
        finally:
            connection.close()


def answers(status: int, code: str) -> Fault:
    """The store refuses; nothing is done."""
    return lambda proxy, request: _error(status, code)


def answers_after(status: int, code: str) -> Fault:
    """The store does it, and what comes back is an error."""

    def fault(proxy: Proxy, request: Request) -> Answer:
        proxy.send(request)
        return _error(status, code)

    return fault


def cut(proxy: Proxy, request: Request) -> None:
    """The connection is cut before the store hears of it."""


def cut_after(proxy: Proxy, request: Request) -> None:
    """The store does it, and the connection is cut before its answer."""
    proxy.send(request)


def lands_late(seconds: float) -> Fault:
    """The connection is cut, and the store gets the request later: after whatever the client does meanwhile."""

    def fault(proxy: Proxy, request: Request) -> None:
        def land() -> None:
            time.sleep(seconds)
            with suppress(OSError):
                proxy.send(request)

        thread = threading.Thread(target=land, daemon=True)
        proxy.late.append(thread)
        thread.start()

    return fault


def _error(status: int, code: str) -> Answer:
    body = f'<?xml version="1.0" encoding="UTF-8"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'.encode()
    return Answer(status, {"Content-Type": "application/xml", "Content-Length": str(len(body))}, body)


class _Handler(BaseHTTPRequestHandler):
    proxy: Proxy
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle_expect_100(self) -> bool:
        """Answer at once: a client waits a second for it before it sends the body."""
        answered = super().handle_expect_100()
        self.wfile.flush()
        return answered

    def _carry(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        headers = {**dict(self.headers.items()), "X-Target": self.path}
        answer = self.proxy.carry(Request(self.command, unquote(path), query, headers, body))
        if answer is None:
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _carry


@contextmanager
def proxy_of(backend: str) -> Iterator[Proxy]:
    """A proxy in front of a store, until the block ends."""
    proxy = Proxy(backend)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    proxy.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        for late in proxy.late:
            late.join(_SECONDS)
        server.shutdown()
        server.server_close()
        thread.join()
