"""A small hub on loopback that speaks what huggingface_hub and datasets ask, over real HTTP."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from builders.web_server import running


class Hub:
    """Repositories by name: commits, oldest first, each with its files; and what was asked."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, dict[str, bytes]]] = {}
        self.tags: dict[str, str] = {}
        self.gated: set[str] = set()
        self.forbidden: set[str] = set()
        self.asked: list[str] = []
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args: Any) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                hub.asked.append(f"{self.command} {self.path}")
                status, headers, payload = hub.reply(unquote(urlsplit(self.path).path), body)
                self.send_response(status)
                for key, value in headers.items():
                    self.send_header(key, value)
                self.send_header("content-length", str(len(payload)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(payload)

            do_GET = do_HEAD = do_POST = answer

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def reply(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        api = path.startswith("/api/datasets/")
        parts = path.removeprefix("/api").removeprefix("/datasets/").split("/")
        repo = "/".join(parts[:2])
        if repo in self.gated:
            return 403, {"x-error-code": "GatedRepo"}, b"{}"
        if repo not in self.repos:
            return 401, {"x-error-code": "RepoNotFound"}, b"{}"
        kind = parts[2] if len(parts) > 2 else "revision"
        asked = parts[3] if len(parts) > 3 else "main"
        commits = self.repos[repo]
        commit = list(commits)[-1] if asked == "main" else self.tags.get(asked, asked)
        if commit not in commits:
            return 404, {"x-error-code": "RevisionNotFound"}, b"{}"
        files = commits[commit]
        if not api and commit in self.forbidden:
            return 403, {}, b"{}"
        if not api:
            return self.file(files, "/".join(parts[4:]), commit)
        entries = [
            {"type": "file", "path": name, "size": len(data), "oid": etag(data)}
            for name, data in sorted(files.items())
        ]
        if kind == "revision":
            siblings = [{"rfilename": name, "size": len(data)} for name, data in files.items()]
            return ok({"id": repo, "sha": commit, "siblings": siblings, "private": False})
        if kind == "paths-info":
            wanted = json.loads(body)["paths"] if body[:1] == b"{" else []
            return ok([entry for entry in entries if entry["path"] in wanted])
        return ok(entries)

    def file(
        self, files: dict[str, bytes], name: str, commit: str
    ) -> tuple[int, dict[str, str], bytes]:
        if name not in files:
            return 404, {"x-error-code": "EntryNotFound", "x-repo-commit": commit}, b""
        return 200, {"x-repo-commit": commit, "etag": f'"{etag(files[name])}"'}, files[name]


def ok(value: Any) -> tuple[int, dict[str, str], bytes]:
    return 200, {"content-type": "application/json"}, json.dumps(value).encode()


def etag(data: bytes) -> str:
    return hashlib.sha1(data).hexdigest()


@contextmanager
def serving_hub() -> Iterator[Hub]:
    """A running hub without data sets."""
    hub = Hub()
    with running(hub.server):
        yield hub


def environment(folder: Path, endpoint: str) -> dict[str, str]:
    """The variables of a process that asks this hub, and has its cache in the folder."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    return {**kept, "HF_HOME": str(folder / "hf"), "HF_ENDPOINT": endpoint}


@contextmanager
def asking(folder: Path, endpoint: str, **settings: str) -> Iterator[None]:
    """Have the hub's libraries ask this hub in this process, and keep their cache in the folder.

    They read their variables once, when they are imported; here they read them again.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in [one for one in os.environ if one.startswith("HF_")]:
            patch.delenv(name)
        for name, value in {**environment(folder, endpoint), **settings}.items():
            patch.setenv(name, value)
        read_variables_again()
        yield
    read_variables_again()


def read_variables_again() -> None:
    import datasets.config
    import huggingface_hub.constants

    importlib.reload(huggingface_hub.constants)
    importlib.reload(datasets.config)
