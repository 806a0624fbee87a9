"""An S3 for benchmarks on loopback: millions of keys that it makes up page by page, and the objects of one folder.

It does not limit a listing: a page of 1,000 keys takes it about a millisecond.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote

PAGE = 1000
PER_FOLDER = 1000
MODIFIED = 1_700_000_000
_MODIFIED = "2023-11-14T22:13:20.000Z"
_LINE = f"<Contents><Key>in/%s</Key><LastModified>{_MODIFIED}</LastModified><ETag>&quot;0&quot;</ETag><Size>1</Size></Contents>"
_NUMBER = re.compile(r"events-(\d+)")


def path_of(number: int) -> str:
    """The path of a made-up object below `in/`."""
    return f"day={number // PER_FOLDER:05}/events-{number:08}.json"


class Server:
    """Made-up keys below `in/`, and the files of a folder below `lake/`."""

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder = number, folder

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                method, target, _ = head.split(" ", 2)
                length = re.search(r"^content-length: *(\d+)", head, re.IGNORECASE | re.MULTILINE)
                body = await reader.readexactly(int(length[1])) if length else b""
                path, _, query = target.partition("?")
                key = unquote(path).removeprefix("/bucket").lstrip("/")
                wanted = re.search(r"^range: *bytes=(\d+)-(\d*)", head, re.IGNORECASE | re.MULTILINE)
                writer.write(self._answer(method, key, query, body, wanted))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def _answer(self, method: str, key: str, query: str, body: bytes, wanted: re.Match[str] | None) -> bytes:
        if method == "GET" and not key:
            return _response(200, self._list({name: values[0] for name, values in parse_qs(query).items()}))
        file = self.folder / key
        if method == "PUT":
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(body)
            return _response(200, b"", 'ETag: "0"\r\n')
        if not file.is_file():
            return _response(404, b"<Error><Code>NoSuchKey</Code></Error>", empty=method == "HEAD")
        size = file.stat().st_size
        headers = 'Last-Modified: Tue, 14 Nov 2023 22:13:20 GMT\r\nETag: "0"\r\n'
        if wanted is None:
            return _response(200, file.read_bytes(), headers, empty=method == "HEAD")
        first, last = int(wanted[1]), min(int(wanted[2] or size), size - 1)
        with file.open("rb") as opened:
            opened.seek(first)
            part = opened.read(last + 1 - first)
        return _response(206, part, f"{headers}Content-Range: bytes {first}-{last}/{size}\r\n")

    def _list(self, asked: dict[str, str]) -> bytes:
        prefix = asked.get("prefix", "")
        if not prefix.startswith("in/"):
            return self._list_folder(prefix, asked)
        after = _NUMBER.search(max(asked.get("continuation-token", ""), asked.get("start-after", "")))
        first = int(after[1]) + 1 if after else 0
        last = min(first + PAGE, self.number)
        lines = "".join([_LINE % path_of(number) for number in range(first, last)])
        more = f"<NextContinuationToken>in/{path_of(last - 1)}</NextContinuationToken>" if last < self.number else ""
        return _page(lines, more)

    def _list_folder(self, prefix: str, asked: dict[str, str]) -> bytes:
        start = self.folder / prefix.rpartition("/")[0]
        found = (os.path.join(at, name) for at, _, names in os.walk(start) for name in names)
        keys = sorted(os.path.relpath(path, self.folder) for path in found)
        after = max(asked.get("continuation-token", ""), asked.get("start-after", ""))
        keys = [key for key in keys if key.startswith(prefix) and key > after]
        lines = "".join(
            f"<Contents><Key>{key}</Key><LastModified>{_MODIFIED}</LastModified><ETag>&quot;0&quot;</ETag>"
            f"<Size>{(self.folder / key).stat().st_size}</Size></Contents>"
            for key in keys[:PAGE]
        )
        more = f"<NextContinuationToken>{keys[PAGE - 1]}</NextContinuationToken>" if len(keys) > PAGE else ""
        return _page(lines, more)


def _page(lines: str, more: str) -> bytes:
    truncated = "true" if more else "false"
    return f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{more}{lines}</ListBucketResult>".encode()


def _response(status: int, body: bytes, headers: str = "", *, empty: bool = False) -> bytes:
    head = f"HTTP/1.1 {status} .\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
    return head if empty else head + body


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("number", type=int)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    server = await asyncio.start_server(Server(given.number, given.folder).serve, "127.0.0.1", 0, limit=1 << 26)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
