"""What commands and files of settings are told that mean nothing, word for word."""

import pytest
from inline_snapshot import snapshot

from harness.base.errors import DataError, TaskError, UnknownName, UsageError

SETTINGS = {
    "models = 3\n": ("harness.toml:1", None, snapshot("""\
`models` is no table
expected: [models.NAME] with kind = "openai" and its arguments\
""")),
    "[models.mine]\nmodel = 'm'\n": ("harness.toml:1", None, snapshot("""\
the model 'mine' is of no kind
expected: a table [models.mine] with kind = "openai" or another, and its arguments\
""")),
    "[models.'a b']\nkind = 'openai'\n": ("harness.toml:1", "'a b'", snapshot("""\
no name for a model
expected: letters, digits, `_`, `-` and `.`\
""")),
    "[models.openai]\nkind = 'openai'\n": ("harness.toml:1", None, snapshot("""\
'openai' is a kind of model or judge, and cannot name another
expected: another name\
""")),
    "\ndry_run = true\n": ("harness.toml:2", None, snapshot("""\
'dry_run' is for one command and cannot be a setting
expected: --dry_run on the command line\
""")),
    "[models.mine]\nkind = 'openai'\napi_key = 'abc'\n": ("harness.toml:1", "api_key = [redacted]",
        snapshot("""\
a key, token or password stands in the settings
expected: api_key_env = the name of a variable that holds it, or api_key_file = the file that does
to do: take it out of there, and change it where others may have read it\
""")),
    "[models.mine]\nkind = 'openai'\nmodel = ' m'\n": ("harness.toml:1", None, snapshot("""\
the arguments of the model 'mine' cannot be used
expected: names, and values without `,name=` or blanks at their ends\
""")),
    "limit = 'many'\n": ("harness.toml:1", "many", snapshot("""\
the setting 'limit' cannot be used
expected: a whole number\
""")),
    "model = \n": ("harness.toml", "Invalid value (at line 1, column 9)", snapshot("""\
the settings are not TOML
expected: lines as `model = "openai"`\
""")),
}  # fmt: skip

COMMANDS = {
    "": (2, UsageError, None, "settings: tasks of harness.toml", snapshot("""\
nothing was asked
to do: `harness run` runs what the settings say, `harness --help` lists what there is\
""")),
    "--model baseline --set a=1 --set a=2": (2, UsageError, None, None,
        snapshot("--set gives 'a' twice")),
    "--model baseline --data interests=": (2, UsageError, None, "interests=", snapshot("""\
no place to read from
expected: --data TASK=DIR\
""")),
    "--model baseline --data a --data b": (2, UsageError, None, "a, b", snapshot("""\
--data is given twice
expected: one place for all tasks, or TASK=DIR for each of some\
""")),
    "--model baseline --role judge": (2, UsageError, None, "judge", snapshot("""\
not a role
expected: --role NAME=SPEC\
""")),
    "--model baseline --judge a --role judge=b": (2, UsageError, None, "--judge and --role judge=b",
        snapshot("the judge is given twice")),
    "--model baseline --role candidate=b": (2, UsageError, None, "--role candidate=b", snapshot("""\
the candidate is given by --model
expected: --model KIND --model_args …\
""")),
    "--model baseline --rescore_only --fresh": (2, UsageError, None, None,
        snapshot("--rescore_only asks nothing, and --fresh means nothing beside it")),
    "--model baseline --max_cost 0": (2, UsageError, None, "0.0",
        snapshot("--max_cost must be an amount of money above 0")),
    "--model baseline --timeout 0": (2, UsageError, None, "0.0",
        snapshot("--timeout must be a number of seconds above 0")),
    "--model baseline --limit 0": (2, UsageError, None, "0",
        snapshot("--limit must be at least 1")),
    "--model baseline --max_failures all=2": (2, UsageError, None, "all=2", snapshot("""\
--max_failures cannot be used
expected: a share from 0 to 1, or FAMILY=SHARE with calls, parsing, judging, errors\
""")),
    "--model baseline --data zork=d --judge lexical": (2, UsageError, None, None, snapshot("""\
--data names a task that is not run: 'zork'
expected: TASK=PLACE with one of: interests
to do: write a path with = in its name as --data ./zork=…\
""")),
    "--modle baseline": (2, UsageError, None, None, snapshot("""\
no option '--modle'
to do: did you mean '--model'?\
""")),
    "--limit few": (2, UsageError, "--limit", None, snapshot("""\
'few' is not a valid integer
to do: `harness run --help` lists what there is\
""")),
    "prompts zork": (2, UnknownName, None, None, snapshot("""\
no prompt is called 'zork'
to do: `harness prompts` lists what there is\
""")),
    "score --oracle x.json": (2, UsageError, None, None, snapshot("""\
RUN is missing
to do: `harness score --help` lists what there is\
""")),
    "score none": (1, DataError, "runs", "none", snapshot("""\
there is no such run
expected: the folder of a run\
""")),
    "show none": (1, DataError, "runs", "none", snapshot("""\
there is no such run
expected: the folder of a run\
""")),
    "batch read none a.jsonl": (1, DataError, "runs", "none", snapshot("""\
there is no such run
expected: the folder of a run\
""")),
    "export none": (2, UsageError, None, None, snapshot("""\
--format is missing
to do: `harness export --help` lists what there is\
""")),
    "tasks zork": (2, TaskError, None, None, snapshot("""\
no task, group or tag is called 'zork'
to do: `harness tasks` lists all tasks\
""")),
    "new-plugin My_Bench": (2, UsageError, None, "'My_Bench'", snapshot("""\
not a name for a plugin
expected: small letters, digits and single dashes, a letter first, as my-bench
to do: 'my-bench' would do\
""")),
    "new-plugin json": (2, UsageError, None, None, snapshot("""\
a package cannot well be called 'json'
expected: a name that is no word of Python and no module of its library
to do: json-bench would do\
""")),
    "completion tcsh": (2, UsageError, "bash|zsh|fish", None, snapshot("""\
'tcsh' is not one of 'bash', 'zsh', 'fish'
to do: `harness completion --help` lists what there is\
""")),
    "batch write --model baseline --judge lexical --out a.jsonl --retry_failures": (
        2, UsageError, None, None,
        snapshot("""\
--retry_failures means nothing to `harness batch write`
to do: leave --retry_failures out, or give it to `harness run`\
""")),
    "--model baseline --limit 0.5": (2, UsageError, None, "0.5", snapshot("""\
--limit of lm-evaluation-harness has no such meaning here
expected: a whole number of users or samples, not a share
to do: docs/coming-from-lm-eval.md has every option\
""")),
    "batch write --model baseline --judge lexical --out harness.toml": (
        2, UsageError, "harness.toml", "a file",
        snapshot("""\
the file of requests exists already, and is not overwritten
expected: --out FILE with the name of a new file\
""")),
}  # fmt: skip

MISSPELT = {
    "doctr": (UsageError, "doctor", snapshot("no command 'doctr'")),
    "analyse perrec-size none": (UnknownName, "perrec-sizes",
        snapshot("no plugin offers the analysis 'perrec-size'")),
    "data descrbe": (UnknownName, "describe", snapshot("no plugin offers the tool 'descrbe'")),
    "plugins interest": (UnknownName, "interests", snapshot("no plugin is called 'interest'")),
    "models opnai": (UnknownName, "openai", snapshot("no plugin offers the kind of model 'opnai'")),
    "judges lexicl": (UnknownName, "lexical", snapshot("no plugin offers the judge 'lexicl'")),
    "prompts nmae.candidate": (UnknownName, "name.candidate",
        snapshot("no prompt is called 'nmae.candidate'")),
    "validate intrests": (TaskError, "interests",
        snapshot("no task, group or tag is called 'intrests'")),
}  # fmt: skip


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.mark.parametrize("content", SETTINGS)
def test_settings(content, tmp_path, exits):
    (tmp_path / "harness.toml").write_text(content)
    where, found, wording = SETTINGS[content]
    command = "--model baseline --tasks interests"
    assert exits(2, UsageError, command, where=where, found=found) == wording


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(command, tmp_path, exits):
    (tmp_path / "harness.toml").write_text("tasks = 'interests'\n")
    code, kind, where, found, wording = COMMANDS[command]
    assert exits(code, kind, command, where=where, found=found) == wording


def test_arguments_after_the_name_of_a_model(tmp_path, exits):
    (tmp_path / "harness.toml").write_text("[models.mine]\nkind = 'openai'\n")
    command = "--model baseline --judge 'mine: m' --tasks interests"
    place, found = "harness.toml:1", "'mine: m'"
    assert exits(2, UsageError, command, where=place, found=found) == snapshot("""\
the arguments given to the model 'mine' cannot be used
expected: names, and values without `,name=` or blanks at their ends\
""")


def test_a_sample_that_the_run_has_not(kept_run, toy_plugin, exits):
    wording = exits(
        1, DataError, "show RUN --sample anna", where="RUN", found="anna", RUN=kept_run.path
    )
    assert wording == snapshot("""\
no record of an item or user of that name
expected: an id, as ann, ann/1\
""")


@pytest.mark.parametrize("command", MISSPELT)
def test_a_misspelt_name_is_answered_with_the_nearest(command, exits):
    kind, meant, problem = MISSPELT[command]
    first, *_, last = exits(2, kind, command).splitlines()
    assert repr(meant) in last
    assert first == problem
