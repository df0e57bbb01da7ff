"""A part of the freeze, made in one process, which has one set of caches; `make freeze` checks all
of it, by processes.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from builders.commands import run_cli
from freeze.record import HERE, NARROW, World, differences, expected, record, said, write_files

SEED, DRAWN = 36, 15
LEFT_OUT = (
    # They write what the next round would find, or name what a run of the record wrote.
    "new-plugin", "run --model openai", "--model baseline --judge lexical",
    "runs --output_path",
    # They tell by variables that the hub's library reads once in a process.
    "run --model vllm", "run --model hf",
    # It takes as long as all others together.
    "validate interests",
)  # fmt: skip
"""Beginnings of commands."""


class OneProcess(World):
    """A world whose commands run in the process of the tests."""

    def harness(
        self, words: Sequence[str], *, place: str = "", columns: str = NARROW
    ) -> subprocess.CompletedProcess[str]:
        (self.folder / place).mkdir(exist_ok=True)
        environment = self.environment(place, columns)
        ended = run_cli(*words, folder=self.folder / place, environment=environment)
        return subprocess.CompletedProcess(words, ended.code, ended.out, ended.err)


def chosen() -> list[tuple[dict[str, Any], str]]:
    """The commands that need no run, each with its group."""
    table = tomllib.loads((HERE / "commands.toml").read_text("utf-8"))
    return [
        (group, command)
        for group in table["outputs"]
        if group["name"] in ("tables", "json", "errors", "asking")
        for command in group["commands"]
        if "{" not in command
        # Their messages name the newest run, or the cache that the hub's library knows.
        and not command.endswith(("nowhere", "nowhere x.jsonl"))
        and command not in ("tasks", "data describe")
        and not command.startswith(LEFT_OUT)
    ]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return OneProcess(sys.executable, tmp_path.resolve() / "freeze")


def test_three_runs_are_as_they_were_recorded(world: World) -> None:
    found = record(world, only=("interests_repeats", "gist_structured", "perrec_short"), jobs=1)
    assert len(found) == 9
    assert list(differences(found, whole=False)) == []


def test_commands_in_any_order_say_what_fresh_processes_said(world: World) -> None:
    for group, _ in chosen():
        write_files(world, group)
    recorded, _ = expected()
    draw = Random(SEED)
    order = draw.sample(chosen(), len(chosen())) + draw.sample(chosen(), DRAWN)
    draw.shuffle(order)
    for group, command in order:
        text = recorded[f"output/{group['name']}.txt"]
        assert said(world, group, command) in text, command
