"""Every page of help fits a terminal, and its examples are commands that there are."""

import re
import shlex

import pytest

from harness.cli.complete import load
from harness.cli.help_pages import EXAMPLES
from harness.cli.main import COMMANDS, EPILOG, main, parser_for, with_underscores


def page(capsys, monkeypatch, *words):
    monkeypatch.setenv("COLUMNS", "80")
    words = words or ("run",)
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_a_page_fits_eighty_columns_and_has_examples(capsys, monkeypatch, command):
    text = page(capsys, monkeypatch, *([command] if command else []))
    assert [line for line in text.splitlines() if len(line) > 80] == []
    assert "\nexamples:\n  harness " in text or "\nexamples:\n  source " in text


@pytest.mark.parametrize("word", ["--help", "-h"])
def test_the_first_page_names_every_command_on_one_small_screen(capsys, word):
    assert main([word]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 22  # of 24, beside the command itself and the prompt
    assert max(map(len, lines)) <= 80
    named = {name for line in lines for name in re.findall(r"^  harness ([\w|-]+)", line)}
    assert {*COMMANDS, "run"} <= {name for names in named for name in names.split("|")}


def examples():
    named = [line for lines in EXAMPLES.values() for line in lines]
    text = EPILOG[EPILOG.index("examples:") : EPILOG.index("exit codes")].replace("\\\n", " ")
    named += [line.strip() for line in text.splitlines()[1:] if line.strip()]
    for line in named:
        command = re.search(r"harness [^)>]+", line.partition("#")[0])
        assert command, line
        yield command[0].partition("  see ")[0]


@pytest.mark.parametrize("line", list(examples()))
def test_an_example_is_a_command_that_there_is(line):
    words = with_underscores([word for word in shlex.split(line)[1:] if word != "…"])
    parsed = parser_for(words).parse_args(words)
    if words[0] == "analyse" and len(words) > 1:
        assert words[1] in load().analyses
    if words[0] == "data" and len(words) > 1:
        assert words[1] in load().tools_of("data")
    assert parsed.func
