"""A small hub on loopback that speaks what huggingface_hub and datasets ask, over real HTTP."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from builders.web_server import Web, serving

FIRST = "1" * 40
SECOND = "2" * 40


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


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A running hub with one data set of two commits; the second changed a value."""
    hub = Hub()
    hub.repos["people/notes"] = {
        FIRST: {"train.jsonl": rows("old"), "extra/labels.csv": b"user,label\nu1,tea\n"},
        SECOND: {"train.jsonl": rows("new"), "extra/labels.csv": b"user,label\nu1,rum\n"},
    }
    hub.tags["v1"] = FIRST
    thread = threading.Thread(target=hub.server.serve_forever)
    thread.start()
    yield hub
    hub.server.shutdown()
    thread.join()
    hub.server.server_close()


def rows(text: str) -> bytes:
    return b'{"user": "u1", "text": "%s", "n": 1}\n{"user": "u2", "text": "b", "n": 2}\n' % (
        text.encode()
    )


@pytest.fixture
def web() -> Iterator[Web]:
    with serving() as web:
        yield web


SCRIPT = """
import json, sys, msgspec
from pathlib import Path
from harness.data import open_dataset
from harness.base.errors import HarnessError
from harness.contracts.task import DataSpec
asked = json.load(sys.stdin)
spec = msgspec.convert(asked["spec"], DataSpec)
try:
    data = open_dataset(spec, data=None, limit=None, seed=0, package=None, task="notes")
    tables = {n: [r for _, r in data.table(n).rows()] for n in data.tables}
    again = {n: [r for _, r in data.table(n).rows()] for n in data.tables}
    out = {"tables": tables, "same": tables == again, "about": data.describe()}
except HarnessError as error:
    out = {"error": str(error), "kind": type(error).__name__, "parts": vars(error)}
print("RESULT" + json.dumps(out))
"""


FETCH = """
import sys
from huggingface_hub import snapshot_download
snapshot_download(sys.argv[1], repo_type="dataset", allow_patterns=sys.argv[2:] or None)
"""


@pytest.fixture
def fetch(tmp_path: Path) -> Any:
    """Fetch a repository, or some of its files, into the hub cache of this test."""

    def run(repo: str, *patterns: str, endpoint: str) -> None:
        subprocess.run(
            [sys.executable, "-c", FETCH, repo, *patterns],
            env=environment(tmp_path, endpoint),
            check=True,
            capture_output=True,
        )

    return run


@pytest.fixture
def in_hub(hub: Hub, tmp_path: Path) -> Any:
    """Run a script in a process of its own with the hub caches of this test: the JSON it prints."""

    def run(script: str, *words: str, **settings: str) -> Any:
        done = subprocess.run(
            [sys.executable, "-c", script, *words],
            env={**environment(tmp_path, hub.url), **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run


def environment(folder: Path, endpoint: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
    return {**kept, "HF_HOME": str(folder / "hf"), "HF_ENDPOINT": endpoint}


@pytest.fixture
def load(tmp_path: Path) -> Any:
    """Open a task's data in a process of its own with the caches of this test: what it read.

    The libraries read their environment when they are imported.
    """

    def run(spec: dict[str, Any], *, endpoint: str, **settings: str) -> dict[str, Any]:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            input=json.dumps({"spec": spec}),
            env={**environment(tmp_path, endpoint), **settings},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        found = [line for line in done.stdout.splitlines() if line.startswith("RESULT")]
        assert found, done.stderr
        result: dict[str, Any] = json.loads(found[0].removeprefix("RESULT"))
        result["stderr"] = done.stderr
        return result

    return run
