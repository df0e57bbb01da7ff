import os
import shutil
import subprocess
import sys

import pytest
from click.shell_completion import split_arg_string

from harness.cli.completion import SHELLS, VARIABLE, candidates
from harness.cli.main import COMMANDS, harness


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder with two runs, something that is none, and a model with a name."""
    monkeypatch.chdir(tmp_path)
    for name in ("runs/one", "runs/two"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "manifest.json").write_text("{}")
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "harness.toml").write_text('[models.local]\nkind = "baseline"\n')
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my_tea.yaml").write_text("task: my_tea\nextends: interests\n")


def offered(before, current, kind="plain"):
    """What may stand in place of the word that is being typed."""
    shell = SHELLS["fish"](harness, {"obj": candidates}, "harness", VARIABLE)
    items = shell.get_completions(before, current)
    return [item.value for item in items if item.type == kind]


@pytest.mark.parametrize("models", ["3", '["local"]', '[{kind = "baseline"}]'])
def test_models_that_are_no_table_complete_nothing_and_keep_the_kinds(tmp_path, models):
    (tmp_path / "harness.toml").write_text(f"models = {models}")
    assert offered(["--model"], "ba") == ["baseline"]
    assert offered(["--model"], "lo") == []


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("harness sh", {"show"}),
        ("harness --max-c", {"--max-calls", "--max-cost"}),
        ("harness --max_c", {"--max_calls", "--max_cost"}),
        ("harness --executor ", {"local", "ray"}),
        ("harness --model lo", {"local"}),
        ("harness list judges l", {"lexical", "llm"}),
        ("harness list prompts interests/n", {"interests/name.candidate"}),
        ("harness --model=bas", {"--model=baseline"}),
        ("harness --role judge=lex", {"judge=lexical"}),
        ("harness --tasks interests,interests_sh", {"interests,interests_short"}),
        ("harness --tasks tag:ex", {"tag:example"}),
        ("harness show runs/", {"runs/one", "runs/two"}),
        ("harness --resume runs/o", {"runs/one"}),
        ("harness export runs/two --format h", {"hf-eval"}),
        ("harness data desc", {"describe"}),
        ("harness --store ", set()),
        ("harness --include-path mine --tasks my_t", {"my_tea"}),
        ("harness --include_path=mine --tasks interests,my_", {"interests,my_tea"}),
        ("harness tasks --include_path mine my_", {"my_tea"}),
        ("harness --include_path nowhere --tasks interests_sh", {"interests_short"}),
    ],
)
def test_what_may_stand_at_the_cursor(line, some):
    *before, current = split_arg_string(line)[1:] + [""] * line.endswith(" ")
    assert set(offered(before, current)) == some


def test_folders_of_tasks_that_settings_include_are_known(tmp_path):
    (tmp_path / "harness.toml").write_text('include_path = ["mine"]\n')
    assert offered(["--tasks"], "my_") == ["my_tea"]


def test_the_first_word_is_a_command():
    assert {*COMMANDS, "run", "perrec"} <= set(offered([], ""))


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("harness --store ca", ["ca"]),
        ("harness --store=ca", ["--store=ca"]),
        ("harness --answers an", ["an"]),
        ("harness --data ", [""]),
        ("harness --nothing", []),
    ],
)
def test_all_else_is_a_file(line, files):
    *before, current = split_arg_string(line)[1:] + [""] * line.endswith(" ")
    assert offered(before, current) == []
    assert offered(before, current, kind="file") == files


def test_settings_that_cannot_be_read_leave_no_error(tmp_path, printed, monkeypatch):
    (tmp_path / "harness.toml").write_text("=")
    monkeypatch.setenv(VARIABLE, "zsh_complete")
    monkeypatch.setenv("COMP_WORDS", "harness --model open")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert printed() == ("file\nopen\n_\n", "")


BASH = """
source <("$PYTHON" -m harness completion bash)
compopt() { :; }
IFS=' ' read -r -a COMP_WORDS <<< "$(sed 's/[=:]/ & /g' <<< "$1")"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_harness_completion harness
printf '%s\\n' "${COMPREPLY[@]}"
complete -p harness
"""
# bash takes words apart at = and :, as sed does here.

FISH = f'{sys.executable} -m harness completion fish | source; complete -C "$argv[1]"'

ZSH = """
compdef() { registered=($@) }
source <($PYTHON -m harness completion zsh)
compadd() { print -l -- $completions }
words=(${(z)1}); CURRENT=$#words
_harness_completion
print -- $registered
"""


@pytest.mark.parametrize(
    ("shell", "script", "line", "word", "registered"),
    [
        *(
            ("bash", BASH, line, word, ["complete -o nosort -F _harness_completion harness"])
            for line, word in (("val", "validate"), ("--tasks tag:ex", "example"))
        ),
        ("zsh", ZSH, "--tasks interests_sh", "interests_short", ["_harness_completion harness"]),
        ("fish", FISH, "--tasks interests_sh", "interests_short", []),
    ],
)
def test_a_shell_completes(shell, script, line, word, registered, tmp_path):  # noqa: PLR0917
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = tmp_path / "bin" / "harness"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    command.chmod(0o755)
    environment = {
        **os.environ, "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHON": sys.executable, "HOME": str(tmp_path),
    }  # fmt: skip
    before = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    name = [] if shell == "fish" else [shell]
    done = subprocess.run(
        [shell, *before, "-c", script, *name, f"harness {line}"],
        capture_output=True, text=True, timeout=120, check=False, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.splitlines() == [word, *registered]
