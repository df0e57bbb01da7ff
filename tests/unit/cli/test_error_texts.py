"""What commands and files of settings are told that mean nothing, word for word."""

import pytest

from harness.cli.main import main

SETTINGS = {
    "models = 3\n": """\
harness.toml:1: `models` is no table
  expected: [models.NAME] with kind = "openai" and its arguments""",
    "[models.mine]\nmodel = 'm'\n": """\
harness.toml:1: the model 'mine' is of no kind
  expected: a table [models.mine] with kind = "openai" or another, and its arguments""",
    "[models.'a b']\nkind = 'openai'\n": """\
harness.toml:1: no name for a model
  found:    'a b'
  expected: letters, digits, `_`, `-` and `.`""",
    "[models.openai]\nkind = 'openai'\n": """\
harness.toml:1: 'openai' is a kind of model or judge, and cannot name another
  expected: another name""",
    "\ndry_run = true\n": """\
harness.toml:2: 'dry_run' is for one command and cannot be a setting
  expected: --dry_run on the command line""",
    "[models.mine]\nkind = 'openai'\napi_key = 'abc'\n": """\
harness.toml:1: a key, token or password stands in the settings
  found:    api_key = [redacted]
  expected: api_key_env = the name of a variable that holds it, or api_key_file = the file that does
  to do:    take it out of there, and change it where others may have read it""",
    "[models.mine]\nkind = 'openai'\nmodel = ' m'\n": """\
harness.toml:1: the arguments of the model 'mine' cannot be used
  expected: names, and values without `,name=` or blanks at their ends""",
    "limit = 'many'\n": """\
harness.toml:1: the setting 'limit' cannot be used
  found:    many
  expected: a whole number""",
    "model = \n": """\
harness.toml: the settings are not TOML
  found:    Invalid value (at line 1, column 9)
  expected: lines as `model = "openai"`""",
}

COMMANDS = {
    "": """\
nothing was asked
  found:    settings: tasks of harness.toml
  to do:    `harness run` runs what the settings say, `harness --help` lists what there is""",
    "--model baseline --set a=1 --set a=2": "--set gives 'a' twice",
    "--model baseline --data interests=": """\
no place to read from
  found:    interests=
  expected: --data TASK=DIR""",
    "--model baseline --data a --data b": """\
--data is given twice
  found:    a, b
  expected: one place for all tasks, or TASK=DIR for each of some""",
    "--model baseline --role judge": """\
not a role
  found:    judge
  expected: --role NAME=SPEC""",
    "--model baseline --judge a --role judge=b": """\
the judge is given twice
  found:    --judge and --role judge=b""",
    "--model baseline --role candidate=b": """\
the candidate is given by --model
  found:    --role candidate=b
  expected: --model KIND --model_args …""",
    "--model baseline --rescore_only --fresh": (
        "--rescore_only asks nothing, and --fresh means nothing beside it"
    ),
    "--model baseline --max_cost 0": """\
--max_cost must be an amount of money above 0
  found:    0.0""",
    "--model baseline --timeout 0": """\
--timeout must be a number of seconds above 0
  found:    0.0""",
    "--model baseline --limit 0": """\
--limit must be at least 1
  found:    0""",
    "--model baseline --max_failures all=2": """\
--max_failures cannot be used
  found:    all=2
  expected: a share from 0 to 1, or FAMILY=SHARE with calls, parsing, judging, errors""",
    "--model baseline --data zork=d --judge lexical": """\
--data names a task that is not run: 'zork'
  expected: TASK=PLACE with one of: interests
  to do:    a path with = in its name is given as --data ./zork=…""",
    "--modle baseline": """\
no option '--modle'
  to do:    did you mean '--model'?""",
    "--limit few": """\
--limit: 'few' is not a valid integer
  to do:    `harness run --help` lists what there is""",
    "prompts zork": """\
no prompt is called 'zork'
  to do:    `harness prompts` lists what there is""",
    "score --oracle x.json": """\
RUN is missing
  to do:    `harness score --help` lists what there is""",
    "score none": """\
runs: there is no such run
  found:    none
  expected: the folder of a run""",
    "show none": """\
runs: there is no such run
  found:    none
  expected: the folder of a run""",
    "replies none a.jsonl": """\
runs: there is no such run
  found:    none
  expected: the folder of a run""",
    "export none": """\
--format is missing
  to do:    `harness export --help` lists what there is""",
    "tasks zork": """\
no task, group or tag is called 'zork'
  to do:    `harness tasks` lists what there is""",
    "new-plugin My_Bench": """\
not a name for a plugin
  found:    'My_Bench'
  expected: small letters, digits and single dashes, a letter first, as my-bench
  to do:    'my-bench' would do""",
    "new-plugin json": """\
a package cannot well be called 'json'
  expected: a name that is no word of Python and no module of its library
  to do:    json-bench would do""",
    "completion tcsh": """\
bash|zsh|fish: 'tcsh' is not one of 'bash', 'zsh', 'fish'
  to do:    `harness completion --help` lists what there is""",
    "requests --model baseline --judge lexical --out a.jsonl --retry_failures": """\
--retry_failures means nothing to `harness requests`
  to do:    leave --retry_failures out, or give it to `harness run`""",
    "--model baseline --limit 0.5": """\
--limit of lm-evaluation-harness has no such meaning here
  found:    0.5
  expected: a whole number of users or samples, not a share
  to do:    docs/coming-from-lm-eval.md has every option""",
    "requests --model baseline --judge lexical --out harness.toml": """\
harness.toml: requests overwrite nothing
  found:    a file
  expected: --out FILE with a name that is free""",
}


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("content", SETTINGS)
def test_settings(content, tmp_path, capsys):
    (tmp_path / "harness.toml").write_text(content)
    assert main(["--model", "baseline", "--tasks", "interests"]) == 2
    assert capsys.readouterr().err == f"harness: {SETTINGS[content]}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, tmp_path, capsys):
    (tmp_path / "harness.toml").write_text("tasks = 'interests'\n")
    assert main(command.split()) in (1, 2)
    # Before it may stand what the settings say.
    said = capsys.readouterr().err.rpartition("harness: ")[2]
    assert said == f"{COMMANDS[command]}\n"


def test_arguments_after_the_name_of_a_model(tmp_path, capsys):
    (tmp_path / "harness.toml").write_text("[models.mine]\nkind = 'openai'\n")
    assert main(["--model", "baseline", "--judge", "mine: m", "--tasks", "interests"]) == 2
    assert (
        capsys.readouterr().err.rpartition("harness: ")[2]
        == """\
harness.toml:1: the arguments given to the model 'mine' cannot be used
  found:    'mine: m'
  expected: names, and values without `,name=` or blanks at their ends
"""
    )


def test_a_sample_that_the_run_has_not(kept_run, toy_plugin, capsys):
    assert main(["show", str(kept_run.path), "--sample", "anna"]) == 1
    assert (
        capsys.readouterr().err.replace(str(kept_run.path), "RUN")
        == """\
harness: RUN: no record of an item or user of that name
  found:    anna
  expected: an id, as ann, ann/1
"""
    )


@pytest.mark.parametrize(
    ("command", "problem", "meant"),
    [
        ("doctr", "no command 'doctr'", "doctor"),
        ("analyse perrec-size none", "no plugin offers the analysis 'perrec-size'", "perrec-sizes"),
        ("data descrbe", "no plugin offers the tool 'descrbe'", "describe"),
        ("plugins interest", "no plugin is called 'interest'", "interests"),
        ("models opnai", "no plugin offers the kind of model 'opnai'", "openai"),
        ("judges lexicl", "no plugin offers the judge 'lexicl'", "lexical"),
        ("prompts nmae.candidate", "no prompt is called 'nmae.candidate'", "name.candidate"),
        ("validate intrests", "no task, group or tag is called 'intrests'", "interests"),
    ],
)
def test_a_misspelt_name_is_answered_with_the_nearest(capsys, command, problem, meant):
    assert main(command.split()) == 2
    lines = capsys.readouterr().err.splitlines()
    assert (lines[0], lines[-1]) == (f"harness: {problem}", f"  to do:    did you mean {meant!r}?")
