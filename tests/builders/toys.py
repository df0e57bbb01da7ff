"""A benchmark whose items do what their words say, and runs of it by either executor."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness import registry
from harness.pipeline.run import RunResult, arun
from harness.pipeline.settings import make_settings
from harness.reporting.display import QuietDisplay

PLUGIN = '''
import asyncio
import os
import signal
from pathlib import Path

import msgspec

from harness import (
    FAILURES, Benchmark, Identity, Item, Metric, Model, Parsed, Reply, Score, Stage, TextReader,
    hookimpl,
)

HERE = Path(__file__).parent
class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    undeclared: int = 1


class Word(Item, frozen=True, kw_only=True):
    word: str


def load(dataset, options):
    rows = [row for _, row in dataset.table().rows()]
    chosen = set(dataset.choose({row["user"] for row in rows}))
    return [row for row in rows if row["user"] in chosen]


def words(upstreams, data, options):
    for row in data:
        yield Word(id=row["id"], user=row["user"], word=row["word"])


async def say(item, desk):
    kind = item.word.partition(" ")[0]
    if kind == "peek":
        return str(desk.options.undeclared)
    if kind == "die" and (HERE / "die").exists():
        if (HERE / "die").is_file():
            (HERE / "die").unlink()
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "twice":
        await desk.ask("candidate", "say", {"word": f"first {item.word}"}, read=TextReader())
    answer = await desk.ask("candidate", "say", {"word": item.word}, read=TextReader())
    return answer.value if isinstance(answer, Parsed) else answer


def spoken(upstreams, data, options):
    for item, value in upstreams["say"].values():
        yield Word(id=item.id, user=item.user, word=value)


async def judge(item, desk):
    """Items with the same first word ask the same question, and share a row of the memo."""
    kind = item.word.partition(" ")[0]
    answer = await desk.ask("referee", "judge", {"word": kind}, read=TextReader())
    if not isinstance(answer, Parsed):
        return answer
    return desk.memo("kinds").keep({kind: f"{answer.value} of {item.id}"})[kind]


def score(records, options):
    for record in records["say"]:
        if isinstance(record.outcome, FAILURES):
            missing = {"length": f"say/{record.outcome.cause}"}
            yield Score(id=record.id, user=record.user, missing=missing)
        else:
            values = {"length": float(len(record.outcome.value))}
            yield Score(id=record.id, user=record.user, values=values)


class Engine(Model):
    """An engine in the process that asks it: two of them do not fit beside each other."""

    occupies = "toy machine"
    concurrency = 4

    def __init__(self, settings):
        self.name = settings.args.get("name", "engine")
        self.gpus = int(settings.args.get("gpus", "0"))
        self.seconds = float(settings.args.get("seconds", "0.005"))
        self.identity = Identity(kind="toy", name=self.name)

    def note(self, what):
        with (HERE / "engines").open("a") as file:
            print(os.getpid(), what, self.name, file=file)

    async def open(self):
        self.note("opens")

    async def close(self):
        self.note("closes")

    async def ask(self, request):
        await asyncio.sleep(self.seconds)
        return Reply(text=request.messages[-1].content.partition(" ")[2])


@hookimpl
def register_models(register):
    register("toy", Engine)


@hookimpl
def register_benchmarks(register):
    register("toys", lambda: Benchmark(
        name="toys",
        version=1,
        options=Options,
        load=load,
        score=score,
        metrics={"length": Metric(description="the length of what was said")},
        stages=(
            Stage("say", item=Word, value=str, items=words, work=say, roles=("candidate",)),
            Stage(
                "judge", item=Word, value=str, items=spoken, work=judge, roles=("referee",),
                after=("say",),
            ),
        ),
    ))
'''
"""Stage `judge` has an item for each value of stage `say`."""

TASK = """
task: toys
version: 1
benchmark: toys
description: Words that do what they say.
data:
  tables:
    words:
      files: [words.jsonl]
      columns:
        id: {type: string}
        user: {type: string}
        word: {type: string}
roles:
  candidate:
    sampling: {temperature: 0.0, max_tokens: 64}
  referee:
    sampling: {temperature: 0.0, max_tokens: 64}
metrics: [length]
"""

FILES = {
    "acme_toys/__init__.py": "",
    "acme_toys/plugin.py": PLUGIN,
    "acme_toys/task_configs/toys.yaml": TASK,
    "acme_toys/prompts/toys/say.candidate.j2": "say {{ word }}",
    "acme_toys/prompts/toys/judge.referee.j2": "judge {{ word }}",
    "acme_toys-1.0.dist-info/METADATA": ("Metadata-Version: 2.1\nName: acme-toys\nVersion: 1.0\n"),
    "acme_toys-1.0.dist-info/entry_points.txt": "[harness.plugins]\ntoys = acme_toys.plugin\n",
}


@contextmanager
def toys_installed(site: Path) -> Iterator[Path]:
    """The package with the benchmark, which this process and its children find until the end."""
    for name, text in FILES.items():
        file = site / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    path = [str(site), os.environ.get("PYTHONPATH", "")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(part for part in path if part))
        patch.syspath_prepend(str(site))
        registry.reset()
        yield site / "acme_toys"
    registry.reset()


class KeepingDisplay(QuietDisplay):
    """A display that keeps the lines and problems, and what happened to stages."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lines: list[str] = []
        self.problems: list[str] = []
        self.stages: list[str] = []

    def show_line(self, text: str, *, problem: bool = False) -> None:
        (self.problems if problem else self.lines).append(text)

    def stage_started(self, stage: Any) -> None:
        self.stages.append(f"{stage.stage} begins")

    def stage_ended(self, stage: Any) -> None:
        self.stages.append(f"{stage.stage} ends")


@dataclass
class Runs:
    """Runs a command in a folder, by this process or by workers on a cluster.

    `lines` and `problems` are what the last run showed without and even with `--quiet`, and
    `stages` says when its stages began and ended.
    """

    folder: Path
    package: Path
    address: str
    url: str = ""
    lines: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    stages: list[str] = field(default_factory=list)

    @property
    def place(self) -> Path:
        """The folder of the runs."""
        return self.folder / "runs"

    @property
    def only(self) -> Path:
        """The folder of the only run."""
        [found] = [one for one in self.place.iterdir() if one.is_dir()]
        return found

    def words(self, *words: str) -> Path:
        """The data: one item for each word, which belongs to one of five users."""
        rows = (
            {"id": f"{number:03}", "user": f"u{number % 5}", "word": word}
            for number, word in enumerate(words)
        )
        file = self.folder / "data" / "words.jsonl"
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return file.parent

    def settings(self, executor: str, **options: Any) -> Any:
        """The settings of a run of the words by this executor."""
        on_ray = {"executor": "ray", "ray_address": self.address, "workers": 2}
        given = {
            "tasks": "toys",
            "model": "openai",
            "model_args": f"base_url={self.url},model=candidate,revision=1",
            "roles": {"referee": f"openai:base_url={self.url},model=referee,revision=1"},
            "data": str(self.folder / "data"),
            "output_path": self.place,
            "store": self.folder / "calls.sqlite",
            **(on_ray if executor == "ray" else {}),
            **options,
        }
        return make_settings({name: value for name, value in given.items() if value is not None})

    def run(self, executor: str, **options: Any) -> RunResult:
        """What came of a run; of a run that failed, its errors."""
        display = KeepingDisplay()
        try:
            return asyncio.run(arun(self.settings(executor, **options), display=display))
        finally:
            self.lines, self.problems = display.lines, display.problems
            self.stages = display.stages

    def arguments(self, executor: str, *more: str) -> list[str]:
        """The command line of the same run."""
        on_ray = ["--executor", "ray", "--ray_address", self.address, "--workers", "2"]
        return [
            sys.executable, "-m", "harness", "run", "--tasks", "toys",
            "--model", "openai", "--model_args", f"base_url={self.url},model=candidate,revision=1",
            "--role", f"referee=openai:base_url={self.url},model=referee,revision=1",
            "--data", str(self.folder / "data"), "--output_path", str(self.place),
            "--store", str(self.folder / "calls.sqlite"), "--quiet",
            *(on_ray if executor == "ray" else []), *more,
        ]  # fmt: skip

    def start(self, executor: str, *more: str, **environment: str) -> subprocess.Popen[str]:
        """The process of the same run."""
        return self.started(self.arguments(executor, *more), **environment)

    def started(self, arguments: list[str], **environment: str) -> subprocess.Popen[str]:
        """The process of a command."""
        return subprocess.Popen(
            arguments, cwd=self.folder, env={**os.environ, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def records(self, run: Path, stage: str, task: str = "toys") -> dict[str, Any]:
        """The current record of each item of a stage by the item's id."""
        return {line["id"]: line for line in current_lines(run, stage, task)}

    def kept(self) -> int:
        """The number of answers that attempts at shards of the only run have on disk."""
        logs = self.only.glob("toys/*.shards/*.*.log")
        return sum(b'"answer":' in line for log in logs for line in log.read_bytes().splitlines())


def current_lines(run: Path, stage: str, task: str = "toys") -> list[dict[str, Any]]:
    """The last line of each key in a stage's journal, and those of shards that are at work."""
    lines: dict[str, dict[str, Any]] = {}
    for path in [
        *(run / task).glob(f"?-{stage}.shards/*.*.jsonl"),
        *(run / task).glob(f"?-{stage}.jsonl"),
    ]:
        with suppress(FileNotFoundError):  # it was collected just now
            for text in path.read_text().splitlines():
                line = json.loads(text)
                lines.pop(line["key"], None)
                if "outcome" in line:
                    lines[line["key"]] = line
    return list(lines.values())


def asked(server: Any) -> list[str]:
    """What a server was asked, in order."""
    return [body["messages"][-1]["content"] for body in server.requests]


def outcomes(lines: Iterable[dict[str, Any]]) -> dict[str, str]:
    """The value or the cause of each record, by item."""
    return {
        line["id"]: line["outcome"].get("value", line["outcome"].get("cause")) for line in lines
    }
