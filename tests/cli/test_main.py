import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import DataError, Interrupted, TooManyFailures, UsageError
from harness.cli import main as entry
from harness.cli.command import FORMER, command
from harness.cli.main import COMMANDS, harness, main, with_command
from harness.registry import load_plugins

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


@pytest.fixture
def command_that(monkeypatch):
    """Adds the command `probe`, which raises what it is given, or returns it."""

    def make(outcome):
        @command()
        def probe():
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome

        monkeypatch.setitem(sys.modules, "harness.cli.probe", SimpleNamespace(probe=probe))
        monkeypatch.setitem(entry.COMMANDS, "probe", "probe")

    return make


@pytest.mark.parametrize(
    ("words", "same"),
    [
        (["help"], ["--help"]), (["help", "run"], ["run", "--help"]), (["version"], ["--version"]),
    ],
)  # fmt: skip
def test_help_and_version_are_commands_too(words, same, printed):
    assert printed(*words) == printed(*same)


def test_the_version_is_the_projects_and_needs_no_task(printed):
    version = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["version"]
    assert printed("--version").out == f"{version}\n"


@pytest.mark.parametrize(
    ("error", "code"), [(DataError, 1), (UsageError, 2), (TooManyFailures, 3), (Interrupted, 130)]
)
def test_an_error_is_printed_whole_and_gives_its_exit_code(error, code, command_that, printed):
    command_that(error("it broke", where="a.yaml", found="x", expected="y", hint="mend it"))
    said = printed("probe", code=code)
    assert said.out == ""
    assert said.err == (
        "harness: a.yaml: it broke\n  found:    x\n  expected: y\n  to do:    mend it\n"
    )


def test_an_interruption_is_reported_in_a_line_and_a_bug_with_its_traceback(command_that, printed):
    command_that(KeyboardInterrupt())
    assert printed("probe", code=130).err == "harness: interrupted\n"
    command_that(ZeroDivisionError("a bug"))
    with pytest.raises(ZeroDivisionError):
        main(["probe"])


def test_an_interruption_while_the_command_is_imported_leaves_no_traceback(tmp_path):
    (tmp_path / "click.py").write_text("raise KeyboardInterrupt\n")
    ended = subprocess.run(
        [sys.executable, "-m", "harness", "tasks"], capture_output=True, text=True, timeout=60,
        check=False, env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (130, "harness: interrupted\n")
    scripts = tomllib.loads(PROJECT.read_text("utf-8"))["project"]["scripts"]
    assert scripts == {"harness": "harness.__main__:main"}


@pytest.mark.parametrize("code", [0, 1, 3, 130])
def test_the_exit_code_of_a_command_is_the_harness_s(code, command_that):
    command_that(code)
    assert main(["probe"]) == code


def test_a_reader_that_goes_away_leaves_no_traceback():
    readable, writable = os.pipe()
    os.close(readable)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "harness", "tasks", "--json"],
            stdout=writable, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(writable)
    assert (ended.returncode, ended.stderr) == (1, "")


def test_names_of_options_may_have_dashes_and_values_keep_theirs():
    words = ["--max-calls", "3", "--model-args=model=a-b", "--no-allow-self-judging", "--name=a-b"]
    given = harness.get_command(None, "run").make_context("run", words).params
    assert (given["max_calls"], given["model_args"]) == (3, "model=a-b")
    assert (given["allow_self_judging"], given["name"]) == (False, "a-b")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_fits_eighty_columns_and_has_examples(printed, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(command, "--help").out
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


SAID = {
    "batch": "batch=true", "config": "harness doctor --settings", "ls": "harness tasks",
    "leaderboard": "--rank", "replies": "--answers", "requests": "--write_requests",
    "report --max_size": "--samples N", "--fresh": "--reuse none", "--no_offline": "--download",
    "--no_store": "--reuse run", "--check_servers": "harness doctor",
    "--print_server_command": "harness doctor", "--rescore_only": "harness score RUN",
    "--run_storage": "--output_path DIR", "--strict_plugins": "harness list plugins",
    "validate --tasks": "harness validate NAME",
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


def test_an_analysis_without_a_name_is_refused_with_where_they_are_listed(printed):
    assert "`harness list analyses`" in printed("analyse", code=2).err
