"""Every page of help fits a terminal, and its examples are commands that there are."""

import re
import shlex

import pytest

from harness.cli.main import COMMANDS, harness, main, with_command
from harness.registry import load_plugins


def page(capsys, monkeypatch, *words):
    monkeypatch.setenv("COLUMNS", "80")
    words = words or ("run",)
    assert main([*words, "--help"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_page_fits_eighty_columns_and_has_examples(capsys, monkeypatch, command):
    text = page(capsys, monkeypatch, *command.split())
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "\nexamples:\n  harness " in text or "\nexamples:\n  source " in text


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_the_first_page_names_every_command_on_one_small_screen(printed, word):
    lines = printed(word).out.splitlines()
    assert len(lines) <= 22  # of 24, beside the command itself and the prompt
    assert max(map(len, lines)) <= 80
    named = {name for line in lines for name in re.findall(r"^  harness ([\w|-]+)", line)}
    assert {*COMMANDS, "run"} <= {name for names in named for name in names.split("|")}


def examples():
    for name in COMMANDS:
        text = harness.get_command(None, name).epilog.partition("examples:")[2]
        for line in text.partition("\n\n")[0].replace("\\\n", " ").splitlines()[1:]:
            command = re.search(r"harness (?:'[^']*'|[^)>])+", line.partition("#")[0])
            assert command, line
            yield command[0].partition("  see ")[0]


@pytest.mark.parametrize("line", list(examples()))
def test_an_example_is_a_command_that_there_is(line):
    name, *words = with_command([word for word in shlex.split(line)[1:] if word != "…"])
    command = harness.get_command(None, name)
    assert command.make_context(name, words, resilient_parsing=False)
    if name == "analyse" and words:
        assert words[0] in load_plugins().analyses
    if name == "data" and words:
        assert ("data", words[0]) in load_plugins().data_tools
