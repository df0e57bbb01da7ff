"""The entry of the command: which subcommand is meant, what is printed of errors, exit codes."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.base.errors import (
    DataError,
    Interrupted,
    TooManyFailures,
    UsageError,
)
from harness.cli import main as entry
from harness.cli.command import command
from harness.cli.main import main, with_underscores

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
    ("error", "code"),
    [
        (DataError, 1),
        (UsageError, 2),
        (TooManyFailures, 3),
        (Interrupted, 130),
    ],
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


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["--max-calls", "3"], ["--max_calls", "3"]),
        (["--model-args=model=a-b"], ["--model_args=model=a-b"]),
        (["show", "run-1", "--sample", "a-b"], ["show", "run-1", "--sample", "a-b"]),
        (["-x-y", "--", "--a-b"], ["-x-y", "--", "--a-b"]),
    ],
)
def test_only_names_of_options_are_respelt(written, meant):
    assert with_underscores(written) == meant
