"""A real harness process against a real, faulty server, and a small world for GISTBench."""

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
from typing import Any

import pytest
from builders.commands import Ended, run_cli

from harness.testing.server import FaultyServer

CANDIDATE, JUDGE = "candidate-model", "judge-model"
NAMES = (
    "m", CANDIDATE, JUDGE, "candidate", "model", "alpha", "omega", "judge", "taxonomist",
    "overlap_judge", "retrieval_judge", "another", "second", "p", "profiler",
)  # fmt: skip
"""The models that the servers of these tests list, so that a run need not ask whether they are
there."""


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
class Harness:
    """Runs the command in a folder of its own, with a store of its own."""

    folder: Path
    url: str = ""
    answer = staticmethod(answer)

    def arguments(self, *more: str, tasks: str = "interests", data: str = "sample") -> list[str]:
        return [
            sys.executable, "-m", "harness",
            "--model", "openai", "--model_args", f"base_url={self.url},model={CANDIDATE}",
            "--judge", f"openai:base_url={self.url},model={JUDGE}",
            "--tasks", tasks, "--data", data, "--json", *more,
        ]  # fmt: skip

    @property
    def pinned(self) -> tuple[str, ...]:
        """Options under which answers of one run may serve another."""
        return (
            "--model_args", f"base_url={self.url},model={CANDIDATE},revision=1",
            "--judge", f"openai:base_url={self.url},model={JUDGE},revision=1",
        )  # fmt: skip

    @property
    def environment(self) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("HARNESS_", "OPENAI_"))}
        own = {"HARNESS_CACHE": "cache", "HARNESS_DOWNLOADS": "downloads"}
        return {**kept, **{name: str(self.folder / place) for name, place in own.items()}}

    def run(self, *more: str, **options: str) -> Ended:
        """What the command says, which runs in this process."""
        return self.here(*self.arguments(*more, **options)[3:])

    def here(self, *words: str, **environment: str) -> Ended:
        """What the command says to these words."""
        return run_cli(*words, folder=self.folder, environment={**self.environment, **environment})

    def process(self, arguments: list[str], **environment: str) -> Ended:
        """What a process of its own says."""
        done = subprocess.run(
            arguments, cwd=self.folder, env={**self.environment, **environment},
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, *more: str, **options: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.arguments(*more, **options), cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

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

    @staticmethod
    def files(folder: Path) -> dict[str, bytes]:
        """Every file below a folder with its content."""
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

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


TOPICS = {
    "astronomy": "Astronomy & Space Exploration", "basketball": "Basketball", "camping": "Camping",
    "gardening": "Gardening & Planting", "hiking": "Hiking", "knitting": "Knitting & Sewing",
    "photography": "Photography", "trains": "Trains",
}  # fmt: skip
"""What clips are about, and the category of an interest in it."""

ENGAGEMENTS = ("eeei", "ee", "ei", "iiinnnn", "iii", "n", "n", "n")
"""What a person did with clips of one topic after the other, from the person's own topic on.

e and i are explicit and implicit positive, n is implicit negative. As the thresholds usually stand,
what was liked proves an interest in each of the first five topics but the third; the fourth is
disproved by what was passed over, where that is cited as well.
"""

SIGNAL = {"e": "explicit_positive", "i": "implicit_positive", "n": "implicit_negative"}
CLIP = re.compile(r"^\[(\d+)\] \((\w+) (\w+)\) Clip \d+ about (\w+)$", re.MULTILINE)
LABEL = re.compile(r"^(\d+|item_\d+)[.:] (.+)$", re.MULTILINE)
PROMPTS = {
    "predict": "Name the interests of this user",
    "verify": "are cited as evidence of it",
    "taxonomy": "Put each of these interests",
    "overlap": "overlaps in meaning with an interest of this user",
    "specificity": "most likely led to this interest",
}
"""What the prompt of each stage holds and no other does."""


def gist_answer(body: dict[str, Any]) -> str:
    """What a model says to a prompt of GISTBench: judges know the topics, candidates some of them.

    A candidate cites the clips of a topic that were liked. The judge of the retrieval sees every
    other clip that fits, and guesses the rest.
    """
    prompt = body["messages"][1]["content"]
    (stage,) = (name for name, words in PROMPTS.items() if words in prompt)
    if stage == "predict":
        names = list(TOPICS)  # of which each candidate has an eye for some
        seen = {"alpha": names[:4], "beta": names[1:6], "gamma": names[5:]}
        return json.dumps(gist_interests(prompt, seen.get(body["model"], names)))
    labels = LABEL.findall(prompt)
    if stage == "taxonomy":
        return json.dumps({number: TOPICS[name.split()[0]] for number, name in labels})
    said = prompt[: prompt.index("\n1. ")] if stage != "specificity" else prompt.split("\n")[0]
    about = [topic for topic in TOPICS if topic in said.casefold()]
    fitting = [label for label, text in labels if any(topic in text.casefold() for topic in about)]
    if stage == "specificity":
        wanted = int(re.search(r"exactly (\d+) of the following", prompt)[1])
        guessed = dict.fromkeys([*fitting[::2], *(label for label, _ in labels)])
        fitting = list(guessed)[:wanted]
    return ", ".join(fitting) or "NONE"


def gist_interests(prompt: str, topics: list[str]) -> list[dict[str, Any]]:
    """An interest for each of the topics that something in the prompt was liked of."""
    found: dict[str, list[int]] = {}
    for number, _, sign, topic in CLIP.findall(prompt):
        if topic in topics and sign == "positive":
            found.setdefault(topic, []).append(int(number))
    return [
        {"interest": f"{topic.title()} clips", "evidence": found[topic]} for topic in sorted(found)
    ]


@dataclass
class Gist(Harness):
    """Runs GISTBench on eight people with 21 engagements each, in windows of twelve."""

    PEOPLE = 8
    answer = staticmethod(gist_answer)

    @property
    def data(self) -> Path:
        """The log, written when it is first wanted."""
        file = self.folder / "log.csv"
        if not file.exists():
            names = list(TOPICS)
            rows = ["user_id,object_id,object_text,interaction_type,interaction_time"]
            for person in range(self.PEOPLE):
                did = [
                    (names[(person + place) % len(names)], clip, SIGNAL[signal])
                    for place, signals in enumerate(ENGAGEMENTS)
                    for clip, signal in enumerate(signals, start=2 * person + place)
                ]
                for row, (topic, clip, signal) in enumerate(did):
                    about = f"{topic}-{clip % 12},Clip {clip % 12} about {topic}"
                    rows.append(f"user{person},{about},{signal},{row * 8 % len(did)}")
            file.write_text("\n".join(rows) + "\n")
        return file

    def arguments(self, *more: str, model: str = "alpha", judge: str = "judge") -> list[str]:
        return [
            sys.executable, "-m", "harness", "--tasks", "gist_synthetic", "--data", str(self.data),
            "--model", "openai", "--model_args", f"base_url={self.url},model={model},revision=1",
            "--judge", f"openai:base_url={self.url},model={judge},revision=1",
            "--set", "window=12", "--set", "min_engagements=1", "--set", "test_set=12",
            "--json", *more,
        ]  # fmt: skip


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)


@pytest.fixture(scope="session")
def harnesses() -> type[Harness]:
    """Makes a harness in a folder, for fixtures that outlive a test."""
    return Harness


@pytest.fixture
def gist(tmp_path: Path) -> Gist:
    return Gist(tmp_path)


@pytest.fixture
def serve():
    """Start a server with faults that a harness asks, if one is given; it stops with the test."""
    servers: list[FaultyServer] = []

    def start(asks: Any = None, **options: Any) -> FaultyServer:
        options.setdefault("models", NAMES)
        server = FaultyServer(options.pop("answer", getattr(asks, "answer", answer)), **options)
        servers.append(server.start())
        if asks is not None:
            asks.url = server.url
        return server

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def install(site: Any, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a distribution with one plugin where this process and others find it; gives its package.

    The package is `acme`, its plugin the module `acme.plugin`; `files` lie beside that.
    """

    def install(plugin: str, **files: str) -> Path:
        texts = {"__init__.py": "", "plugin.py": plugin, **files}
        modules = {f"acme/{name}": text for name, text in texts.items()}
        site.install("acme-things", {"things": "acme.plugin"}, modules)
        path = [str(site.folder), os.environ.get("PYTHONPATH", "")]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(part for part in path if part))
        return site.folder / "acme"

    return install
