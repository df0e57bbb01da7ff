"""Spellings of before are refused, and the refusal names the spelling of now."""

import shlex

import pytest

from harness.cli.command import FORMER
from harness.cli.main import COMMANDS, main, with_command

SAID = {
    "batch": "batch=true", "config": "harness doctor --settings", "ls": "harness tasks",
    "leaderboard": "--rank", "replies": "--answers", "requests": "--write_requests",
    "report --max_size": "--samples N", "--fresh": "--reuse none", "--no_offline": "--download",
    "--no_store": "--reuse run",
}  # fmt: skip


@pytest.mark.parametrize("old", FORMER)
def test_an_old_spelling_is_refused_with_the_new_one(old, printed):
    kinds = {"models", "judges", "embedders", "prompts", "plugins"}
    new = f"harness list {old}" if old in kinds else SAID.get(old, "harness compare")
    said = printed(*old.split(), code=2)
    assert said.out == ""
    assert new in said.err.partition("to do:")[2]


@pytest.mark.parametrize("old", ["--fresh", "--no-store", "--no_offline"])
def test_an_old_option_is_refused_however_the_run_is_spelled(old, printed):
    for words in ([old, "--model", "baseline"], ["doctor", old]):
        assert "to do:    `--" in printed(*words, code=2).err


@pytest.mark.parametrize("hint", FORMER.values())
def test_a_hint_names_a_command_that_there_is(hint):
    spelled = hint.split("`")[1]
    first = with_command(shlex.split(spelled.removeprefix("harness ")))[0]
    assert first in COMMANDS


def test_an_analysis_without_a_name_is_refused_with_where_they_are_listed(capsys):
    assert main(["analyse"]) == 2
    assert "`harness list analyses`" in capsys.readouterr().err
