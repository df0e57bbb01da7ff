"""The command where its output, its messages or its home folder are missing."""

import json
import os
import subprocess
import sys
from contextlib import redirect_stdout, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest
from builders.commands import run_cli

from harness.cli import main

pytestmark = pytest.mark.usefixtures("elsewhere", "own_cache")

RUN = ["--model", "baseline", "--judge", "lexical", "--tasks", "interests", "--data", "sample"]
RUN += ["--limit", "2"]


def by_shell(*arguments, shell="", **variables):
    """A process of the command, redirected by the shell: code, output, messages."""
    done = subprocess.run(
        ["bash", "-c", f'"$@" {shell}', "bash", sys.executable, "-m", "harness", *arguments],
        env={**os.environ, **variables}, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def refused_output(code, said, found):
    assert (code, "Traceback" in said) == (1, False)
    assert f"the output cannot be written\n  found:    {found}" in said
    assert "harness show" in said


@pytest.mark.parametrize("arguments", [["tasks"], ["doctor", "--settings", "--json"], RUN])
def test_an_output_that_takes_nothing_is_an_error(arguments, capsys):
    with Path("/dev/full").open("w") as full, redirect_stdout(full):
        code = main.main(arguments)
    refused_output(code, capsys.readouterr().err, "No space left on device")


def test_an_output_that_is_closed_is_an_error_and_closed_messages_are_none(tmp_path):
    code, _, said = by_shell("tasks", shell=">&-")
    refused_output(code, said, "Bad file descriptor")
    code, printed, _ = by_shell(*RUN, shell="2>&-")
    assert code == 0
    assert "judge: lexical" in printed
    (manifest,) = tmp_path.glob("runs/*/manifest.json")
    assert json.loads(manifest.read_text())["status"] == "done"


def begin_with(monkeypatch, **streams):
    """Make these the streams that the process began with."""
    for name, stream in streams.items():
        monkeypatch.setattr(sys, name, stream)
        monkeypatch.setattr(sys, f"__{name}__", stream)


def test_a_run_goes_on_where_its_messages_cannot_be_written(monkeypatch, capsys):
    with suppress(OSError), Path("/dev/full").open("w") as full:
        begin_with(monkeypatch, stderr=full)
        assert main.main(RUN) == 0
    assert "judge: lexical" in capsys.readouterr().out


def test_memory_that_ran_out_is_an_error(monkeypatch, capsys):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr(main.harness, "invoke", fail)
    assert main.main(["show"]) == 1
    assert capsys.readouterr().err.startswith("harness: no memory is left")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("arguments", [RUN, ["gone"]])
def test_another_encoding_is_no_traceback(encoding, arguments, monkeypatch):
    out = TextIOWrapper(BytesIO(), encoding)
    err = TextIOWrapper(BytesIO(), encoding, errors="backslashreplace")
    begin_with(monkeypatch, stdout=out, stderr=err)
    assert main.main(arguments) == (2 if arguments == ["gone"] else 0)
    assert out.buffer.getvalue().isascii()
    assert (b"\\u2013" in out.buffer.getvalue()) is (arguments == RUN)  # the dash for no value


@pytest.mark.parametrize("arguments", [RUN, [*RUN, "--dry_run"]])
def test_no_line_in_a_pipe_ends_with_a_blank(arguments, tmp_path):
    done = run_cli(*arguments, folder=tmp_path).ok()
    lines = [*done.out.splitlines(), *done.err.splitlines()]
    assert [line for line in lines if line.endswith(" ")] == []


@pytest.mark.parametrize(
    "arguments", [["doctor"], ["doctor", "--settings"], ["runs"], [*RUN, "--dry_run"]]
)
def test_the_cache_in_the_home_of_nobody_is_an_error_at_most(arguments, tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE", "~nobody-at-all/x")
    done = run_cli(*arguments, folder=tmp_path)
    if done.code:
        whole = " ".join((done.out + done.err).split())
        assert "HARNESS_CACHE: this path is in a home folder that cannot be found" in whole
        assert "set the variable HOME" in whole


def test_a_cache_that_cannot_be_a_folder_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "shut").write_text("a file, which nobody can enter as a folder")
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "shut"))
    done = run_cli(*RUN, folder=tmp_path)
    assert done.code == 1
    assert "the folder of the store cannot be created" in done.err


def test_settings_that_are_nested_too_deeply_are_a_usage_error(tmp_path):
    (tmp_path / "harness.toml").write_text("x = " + "[" * 100_000)
    done = run_cli("doctor", "--settings", folder=tmp_path)
    assert done.code == 2
    assert "harness.toml: the settings file is nested too deeply" in done.err
