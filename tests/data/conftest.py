"""A hub on loopback with a data set, and processes that read it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders.hub_server import Hub, environment, serving_hub
from builders.web_server import Web, serving

FIRST = "1" * 40
SECOND = "2" * 40


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A running hub with one data set of two commits; the second changed a value."""
    with serving_hub() as hub:
        hub.repos["people/notes"] = {
            FIRST: {"train.jsonl": rows("old"), "extra/labels.csv": b"user,label\nu1,tea\n"},
            SECOND: {"train.jsonl": rows("new"), "extra/labels.csv": b"user,label\nu1,rum\n"},
        }
        hub.tags["v1"] = FIRST
        yield hub


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
