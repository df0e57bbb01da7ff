"""A real harness process against a real, faulty server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from harness.testing.server import FaultyServer

CANDIDATE, JUDGE = "candidate-model", "judge-model"


def answer(body: dict[str, Any]) -> str:
    """What good models would say: an interest that cites liked numbers, and the judge's yes."""
    prompt = body["messages"][-1]["content"]
    if body["model"] == JUDGE:
        return "1, 2" if re.search(r"^2\. ", prompt, re.MULTILINE) else "1"
    liked = [int(number) for number in re.findall(r"^(\d+)\. \[liked\]", prompt, re.MULTILINE)]
    interests = [{"interest": f"interest {liked[0]}", "items": liked[:3]}]
    interests += [{"interest": f"interest {liked[-1]}", "items": liked[3:6]}]
    return json.dumps(interests)


@dataclass
class Ended:
    """A harness process that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.out)

    def summary(self, task: str = "interests") -> dict[str, Any]:
        return next(one for one in self.json["summaries"] if one["task"] == task)


@dataclass
class Harness:
    """Runs the command in a folder of its own, with a store of its own."""

    folder: Path
    url: str = ""

    def arguments(self, *more: str, tasks: str = "interests", data: str = "sample") -> list[str]:
        return [
            sys.executable, "-m", "harness",
            "--model", "openai", "--model_args", f"base_url={self.url},model={CANDIDATE}",
            "--judge", f"openai:base_url={self.url},model={JUDGE}",
            "--tasks", tasks, "--data", data, "--json", *more,
        ]  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HARNESS_", "OPENAI_"))}
        return {**kept, "HARNESS_CACHE": str(self.folder / "cache")}

    def run(self, *more: str, timeout: float = 120, **options: str) -> Ended:
        return self.command(self.arguments(*more, **options), timeout=timeout)

    def command(self, arguments: list[str], *, timeout: float = 120, **environment: str) -> Ended:
        done = subprocess.run(
            arguments, cwd=self.folder, env={**self.environment, **environment},
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, *more: str, **options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.arguments(*more, **options), cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    @staticmethod
    def answer(body: dict[str, Any]) -> str:
        return answer(body)

    @staticmethod
    def wait_until(condition: Callable[[], bool], *, timeout: float = 60) -> None:
        """Return once the condition holds; a test that waits in vain fails here."""
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end, "waited in vain"
            time.sleep(0.005)

    @staticmethod
    def kill(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGKILL)
        process.communicate()

    @property
    def folders(self) -> list[Path]:
        return sorted(path for path in (self.folder / "runs").iterdir() if path.is_dir())

    def manifest(self) -> dict[str, Any]:
        (folder,) = self.folders
        return json.loads((folder / "manifest.json").read_text())

    def records(self, stage: str, task: str = "interests") -> list[dict[str, Any]]:
        (folder,) = self.folders
        (journal,) = (folder / task).glob(f"?-{stage}.jsonl")
        return [json.loads(line) for line in journal.read_text().splitlines()]


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture
def serve():
    """Start a server with faults; it stops with the test."""
    servers: list[FaultyServer] = []

    def start(**options: Any) -> FaultyServer:
        server = FaultyServer(options.pop("answer", answer), **options)
        servers.append(server.start())
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a distribution with one plugin where child processes find it; gives its package.

    The package is `acme`, its plugin the module `acme.plugin`; `files` lie beside that.
    """

    def install(plugin: str, **files: str) -> Path:
        site = tmp_path / "site"
        info, package = site / "acme_things-1.0.dist-info", site / "acme"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-things\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text("[harness.plugins]\nthings = acme.plugin\n")
        for name, text in {"__init__.py": "", "plugin.py": plugin, **files}.items():
            file = package / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text), encoding="utf-8")
        path = [str(site), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(part for part in path if part))
        return package

    return install
