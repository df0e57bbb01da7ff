"""Each write of a suite, and of a run asked in batches, fails once, or is the last one.

The same commands are repeated until they end: then the scores are those of an undisturbed folder,
and no saved answer was asked for again.
"""

from __future__ import annotations

import errno
import json
import re
import tempfile
import threading
from functools import cache
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders.commands import Ended, run_cli
from integration.test_batch_service import Service, quickly
from simulated.disk import Crash, Disk
from simulated.kept import records_in
from simulated.test_writes import KINDS

from harness.testing.server import FaultyServer

EVERY = 32
"""One write in so many meets a kind of trouble here, and in the soak each meets each kind."""
PEOPLE = 3
MOST = 30
"""More commands than any folder needs."""
SUITE = """\
models:
  - {{name: asked, spec: "openai:model=candidate-model,base_url={url}"}}
  - {{name: base, spec: baseline}}
tasks: [interests]
judge: lexical
limit: {people}
options: {{data: sample, concurrency: 1}}
"""


def answer(body: dict[str, Any]) -> str:
    """An interest in the words of what is cited for it."""
    liked = re.findall(r"^(\d+)\. \[liked\] (.+)$", body["messages"][-1]["content"], re.MULTILINE)
    return json.dumps([{"interest": text, "items": [int(number)]} for number, text in liked[:2]])


class Life:
    """Commands in a folder on a disk."""

    def __init__(self, place: Path) -> None:
        self.place, self.folder = place, place / "folder"
        self.folder.mkdir()
        self.disk = Disk(self.folder, place / "crashed", Random(0))
        self.commands = 0

    def command(self, *words: str) -> Ended | None:
        """What a command says; None if it was killed."""
        self.commands += 1
        places = {"HARNESS_CACHE": "cache", "HARNESS_DOWNLOADS": "downloads"}
        own = {name: str(self.folder / place) for name, place in places.items()}
        with self.disk.mounted():
            try:
                ended = run_cli(*words, folder=self.folder, environment=own)
            except Crash:
                ended = None
        if not self.disk.crashed:
            return ended
        self.folder.rename(self.place / f"before {self.commands}")
        self.disk.copy.rename(self.folder)
        self.disk.crashed = False
        return None

    def ends(self, *words: str) -> Ended:
        """What a command says at its end, repeated until it ends well, with a disk that is well."""
        while (ended := self.command(*words)) is None or ended.code:
            assert self.commands < MOST, ended
            self.disk.fails = lambda write: None
        return ended

    @property
    def delivered(self) -> bool:
        manifests = self.folder.glob("runs/2*/manifest.json")
        return any(json.loads(one.read_bytes()).get("delivered") for one in manifests)

    def saved(self) -> int:
        """The people whose answers by the model that is asked are in a journal."""
        runs = [file.parent for file in self.folder.glob("runs/2*/manifest.json")]
        asked = [run for run in runs if "openai" in run.name]
        return sum(len(records_in(run / "interests" / "1-name.jsonl")) for run in asked)

    def scores(self) -> list[list[bytes]]:
        files = self.folder.glob("runs/*/interests/scores.jsonl")
        return sorted(sorted(file.read_bytes().splitlines()) for file in files)


def suite(life: Life) -> None:
    """A suite of two models, of which one is asked."""
    with FaultyServer(answer, models=("candidate-model",)) as server:
        (life.folder / "s.yaml").write_text(SUITE.format(url=server.url, people=PEOPLE))
        ended = life.command("suite", "s.yaml", "--json")
        asked, saved = server.count, life.saved()
        life.disk.fails = lambda write: None
        if ended is None or ended.code:
            life.ends("suite", "s.yaml", "--json")
        assert server.count - asked <= PEOPLE - saved, "a saved answer was asked again"


def batches(life: Life) -> None:
    """A run in batches, from its first file to its scores."""
    with Service(answer) as service, quickly():
        threading.Thread(target=service.serve_forever, daemon=True).start()
        args = f"base_url={service.address}/v1,model=candidate-model,thinking=false,batch=only"
        run = (
            "--model", "openai", "--model_args", args, "--judge", "lexical",
            "--tasks", "interests", "--data", "sample", "--limit", str(PEOPLE),
        )  # fmt: skip
        while not life.delivered:  # a command that is killed after that is not repeated
            assert life.commands < MOST, "the run has not ended"
            ended = life.command(*run)
            if ended is None or ended.code:
                life.disk.fails = lambda write: None
        service.shutdown()
        assert len(service.sent) == len(set(service.sent)) == PEOPLE, "a question was sent twice"
        assert not service.live


LIVES = {"suite": suite, "batches": batches}


def outlives(kind: str, write: int, trouble: str) -> bool:
    """Whether the commands were through before their n-th write."""
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder))
        if trouble == "crash":
            life.disk.begin(write)
        else:
            code, once = getattr(errno, trouble.split(maxsplit=1)[0]), trouble.endswith("once")
            life.disk.fails = lambda at: code if at == write or (at > write and not once) else None
        LIVES[kind](life)
        assert life.scores() == undisturbed(kind)
        return life.disk.writes < write


@cache
def undisturbed(kind: str) -> list[list[bytes]]:
    with tempfile.TemporaryDirectory() as folder:
        life = Life(Path(folder))
        LIVES[kind](life)
        return life.scores()


@pytest.mark.parametrize("trouble", KINDS)
@pytest.mark.parametrize("kind", LIVES)
def test_the_nth_write_of_commands_is_the_last_or_fails(kind, trouble):
    until_through(kind, trouble, every=EVERY, first=1 + KINDS.index(trouble) * EVERY // len(KINDS))


def until_through(kind: str, trouble: str, *, every: int = 1, first: int = 1) -> None:
    for write in count(first, every):
        if outlives(kind, write, trouble):
            return
