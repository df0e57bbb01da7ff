"""The command where its output, its messages or its home folder are missing."""

import json
import os
import subprocess
import sys

import pytest

from harness.cli import main

RUN = ["--model", "baseline", "--judge", "lexical", "--tasks", "interests", "--data", "sample"]
RUN += ["--limit", "2"]
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.fixture
def harness(tmp_path):
    """Runs the command by the shell in a folder of its own: code, output, messages."""

    def ran(*arguments: str, shell: str = "", **variables: str) -> tuple[int, str, str]:
        given = {name: value for name, value in os.environ.items() if name != "HARNESS_CACHE"}
        line = f'"$@" {shell}'
        done = subprocess.run(
            ["bash", "-c", line, "bash", sys.executable, "-m", "harness", *arguments],
            env={**given, "HARNESS_CACHE": str(tmp_path / "cache"), **variables},
            cwd=tmp_path, capture_output=True, timeout=120, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return ran


@pytest.mark.parametrize(
    ("shell", "found"),
    [("> /dev/full", "No space left on device"), (">&-", "Bad file descriptor")],
    ids=["full", "closed"],
)
@pytest.mark.parametrize("arguments", [["tasks"], ["config", "--json"], RUN])
def test_an_output_that_takes_nothing_is_an_error(harness, arguments, shell, found):
    code, _, said = harness(*arguments, shell=shell)
    assert code == 1
    assert "Traceback" not in said
    assert f"the output cannot be written\n  found:    {found}" in said
    assert "harness show" in said


@pytest.mark.parametrize("shell", ["2> /dev/full", "2>&-"])
def test_a_run_goes_on_where_its_messages_cannot_be_written(harness, shell, tmp_path):
    code, printed, _ = harness(*RUN, shell=shell)
    assert code == 0
    assert "judge: lexical" in printed
    (manifest,) = tmp_path.glob("runs/*/manifest.json")
    assert json.loads(manifest.read_text())["status"] == "done"


def test_memory_that_ran_out_is_an_error(monkeypatch, capsys):
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(main.harness, "invoke", fail)
    assert main.main(["show"]) == 1
    assert capsys.readouterr().err.startswith("harness: no memory is left")


def test_characters_that_the_locale_lacks_are_escaped(harness):
    code, printed, said = harness(*RUN, **ASCII)
    assert (code, "Traceback" in said) == (0, False)
    assert printed.isascii()
    assert "\\u2013" in printed  # the dash for no value


@pytest.mark.parametrize("given", ["ascii", "ascii:strict", "latin-1"])
@pytest.mark.parametrize("arguments", [RUN, [*RUN, "--dry_run"], ["tasks"], ["gone"]])
def test_another_encoding_is_no_traceback(harness, given, arguments):
    code, printed, said = harness(*arguments, PYTHONIOENCODING=given)
    assert (code, "Traceback" in said) == (2 if arguments == ["gone"] else 0, False)
    assert printed.isascii()


@pytest.mark.parametrize("arguments", [RUN, [*RUN, "--dry_run"]])
def test_no_line_in_a_pipe_ends_with_a_blank(harness, arguments):
    code, printed, said = harness(*arguments)
    assert code == 0
    lines = [*printed.splitlines(), *said.splitlines()]
    assert [line for line in lines if line.endswith(" ")] == []


@pytest.mark.parametrize("arguments", [["doctor"], ["config"], ["show"], [*RUN, "--dry_run"]])
def test_the_cache_in_the_home_of_nobody_is_an_error_at_most(harness, arguments):
    code, printed, said = harness(*arguments, HARNESS_CACHE="~nobody-at-all/x")
    assert "Traceback" not in said
    if code:
        whole = " ".join((printed + said).split())
        assert "HARNESS_CACHE: this path is in a home folder that cannot be found" in whole
        assert "set the variable HOME" in whole


def test_a_cache_that_cannot_be_a_folder_is_an_error(harness, tmp_path):
    (tmp_path / "shut").write_text("a file, which nobody can enter as a folder")
    code, _, said = harness(*RUN, HARNESS_CACHE=str(tmp_path / "shut"))
    assert (code, "Traceback" in said) == (1, False)
    assert "the folder of the store cannot be created" in said


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "model = '~nobody-at-all/x'\n["])
def test_settings_that_cannot_be_read_are_a_usage_error(harness, text, tmp_path):
    (tmp_path / "harness.toml").write_text(text)
    code, _, said = harness("config")
    assert "Traceback" not in said
    assert "harness.toml" in said or code == 0
