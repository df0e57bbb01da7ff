"""A server on loopback that gives files in the ways in which servers on the web do and fail."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from requests.adapters import HTTPAdapter

ROWS = 5_000
CSV = b"user,x\nu1,1\nu2,2\n"
LONG = b"user,x\n" + b"".join(b"u%d,%d\n" % (n, n) for n in range(ROWS))


@dataclass
class Page:
    """What the server answers at a path, once it is no longer `held`.

    `cuts` are the bytes after which it breaks, in turn.
    """

    body: bytes = b""
    status: int = 200
    etag: str | None = '"one"'
    moved: str | None = None
    kind: str = "application/octet-stream"
    encoding: str | None = None
    length: bool = True
    ranges: bool = True
    headers: dict[str, str] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)
    held: threading.Event | None = None


class Web:
    """Pages by path, and what was asked: path, Range and If-Range."""

    def __init__(self) -> None:
        self.pages: dict[str, Page] = {}
        self.asked: list[tuple[str, str | None, str | None]] = []
        web = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_GET(self) -> None:
                page = web.pages[self.path]
                asked, same = self.headers.get("range"), self.headers.get("if-range")
                web.asked.append((self.path, asked, same))
                if page.held:
                    page.held.wait()
                start = int(asked.removeprefix("bytes=").rstrip("-")) if asked else 0
                whole = bool(page.moved) or not (asked and page.ranges and same == page.etag)
                body = page.body if whole else page.body[start:]
                gone = not whole and start >= len(page.body)
                status = 416 if gone else page.status if whole else 206
                self.send_response(status)
                if page.moved:
                    self.send_header("location", page.moved)
                if page.etag:
                    self.send_header("etag", page.etag)
                if status == 206:
                    size = len(page.body)
                    self.send_header("content-range", f"bytes {start}-{size - 1}/{size}")
                if page.encoding:
                    self.send_header("content-encoding", page.encoding)
                self.send_header("content-type", page.kind)
                for key, value in page.headers.items():
                    self.send_header(key, value)
                if page.length:
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                cut = page.cuts.pop(0) if page.cuts else len(body)
                self.wfile.write(body[:cut])

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"


@contextmanager
def serving() -> Iterator[Web]:
    """A running server without pages."""
    web = Web()
    with running(web.server):
        yield web


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[None]:
    """A server that answers from a thread, until the end."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def sha256(body: bytes) -> str:
    return f"sha256:{hashlib.sha256(body).hexdigest()}"


def zipped(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in files.items():
            archive.writestr(name, body)
    return packed.getvalue()


def unfinished(cache: Path) -> list[Path]:
    """What is left of downloads that broke."""
    return [path for path in (cache / "unfinished").rglob("*") if path.is_file()]


def point_google_drive_at(address: str) -> None:
    """Have a server answer all requests of this process to Google Drive."""
    send = HTTPAdapter.send

    def sent(self: Any, request: Any, **given: Any) -> Any:
        parts = urlsplit(request.url)
        if str(parts.hostname).endswith(".google.com"):
            request.url = f"{address}{parts.path}?{parts.query}"
        return send(self, request, **given)

    HTTPAdapter.send = sent  # type: ignore[method-assign]
