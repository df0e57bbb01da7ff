"""One process has one set of caches: commands say in it what they say in processes of their own."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from builders.commands import run_cli
from freeze.record import HERE, NARROW, World, expected, said, write_files

SEED = 36
GROUPS = ("tables", "json", "errors", "asking")
LEFT_OUT = ("new-plugin", "batch write", "--model baseline --judge lexical")
"""Beginnings of commands that write what the next round would find."""


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
        if group["name"] in GROUPS
        for command in group["commands"]
        if "{" not in command and not command.startswith(LEFT_OUT)
    ]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = OneProcess(sys.executable, tmp_path_factory.mktemp("world").resolve() / "freeze")
    for group, _ in chosen():
        write_files(made, group)
    return made


def test_commands_in_any_order_say_what_fresh_processes_said(world: World) -> None:
    recorded, _ = expected()
    order = 2 * chosen()
    Random(SEED).shuffle(order)
    for group, command in order:
        text = recorded[f"output/{group['name']}.txt"]
        assert said(world, group, command) in text, command
