"""What commands and files of settings are told that mean nothing, word for word."""

import pytest
from inline_snapshot import snapshot

from harness.base.errors import DataError, StorageError, UnknownName, UsageError

pytestmark = pytest.mark.usefixtures("elsewhere")

SETTINGS = {
    "models = 3\n": ("harness.toml:1", None, snapshot("""\
`models` is not a table
expected: a table [models.NAME] with kind = "openai" and its arguments\
""")),
    "[models.mine]\nmodel = 'm'\n": ("harness.toml:1", None, snapshot("""\
the model 'mine' has no kind
expected: a table [models.mine] with kind = "openai", or another, and arguments\
""")),
    "[models.'a b']\nkind = 'openai'\n": ("harness.toml:1", "'a b'", snapshot("""\
the name of a model is not valid
expected: letters, digits, `_`, `-` and `.`\
""")),
    "[models.openai]\nkind = 'openai'\n": ("harness.toml:1", None, snapshot("""\
the model 'openai' has the name of a kind of model or judge
expected: a name that `harness list models` and `harness list judges` do not list\
""")),
    "\ndry_run = true\n": ("harness.toml:2", None, snapshot("""\
'dry_run' is an option of single commands and cannot be a setting
expected: --dry_run on the command line\
""")),
    "[models.mine]\nkind = 'openai'\napi_key = 'abc'\n": ("harness.toml:1", "api_key = [redacted]",
        snapshot("""\
the settings contain a key, token or password
expected: api_key_env with the name of a variable that holds the key, or api_key_file with the path of a file that holds it
to do: remove the key from the settings; replace it if others may have read it\
""")),
    "[models.mine]\nkind = 'openai'\nmodel = ' m'\n": ("harness.toml:1", None, snapshot("""\
the arguments of the model 'mine' cannot be used
expected: values without `,name=` inside and without spaces at either end\
""")),
    "limit = 'many'\n": ("harness.toml:1", "many", snapshot("""\
the setting 'limit' is not valid
expected: a whole number\
""")),
    "model = \n": ("harness.toml", "Invalid value (at line 1, column 9)", snapshot("""\
the settings file is not TOML
expected: TOML, as `model = "openai"`\
""")),
}  # fmt: skip

COMMANDS = {
    "": (2, UsageError, None, "settings: tasks from harness.toml", snapshot("""\
no command given (settings alone do not start a run)
to do: `harness run` runs these settings, `harness --help` lists the commands\
""")),
    "--model baseline --set a=1 --set a=2": (2, UsageError, None, None,
        snapshot("--set sets 'a' twice")),
    "--model baseline --data interests=": (2, UsageError, None, "interests=", snapshot("""\
--data names no place
expected: --data TASK=DIR\
""")),
    "--model baseline --data a --data b": (2, UsageError, None, "a, b", snapshot("""\
--data for all tasks is given twice
expected: one place for all tasks, and --data TASK=DIR for single tasks\
""")),
    "--model baseline --role judge": (2, UsageError, None, "judge", snapshot("""\
--role needs NAME and SPEC
expected: --role NAME=SPEC\
""")),
    "--model baseline --judge a --role judge=b": (2, UsageError, "--role", "--judge and --role judge=b",
        snapshot("the judge is given twice")),
    "--model baseline --gen_kwargs a": (2, UsageError, "--gen_kwargs", "a", snapshot("""\
this is no argument
expected: name=value,name=value\
""")),
    "--model baseline --role candidate=b": (2, UsageError, None, "--role candidate=b", snapshot("""\
the candidate is given by --model
expected: --model KIND --model_args …\
""")),
    "tasks --all books": (2, UsageError, None, "books",
        snapshot("--all cannot be combined with names")),
    "--model baseline --max_cost 0": (2, UsageError, None, "0.0",
        snapshot("--max_cost must be an amount of money above 0")),
    "--model baseline --data zork=d --judge lexical": (2, UsageError, None, None, snapshot("""\
--data names a task that is not run: 'zork'
expected: TASK=PLACE with one of: interests
to do: write a path with = in its name as --data ./zork=…\
""")),
    "new-plugin My_Bench": (2, UsageError, None, "'My_Bench'", snapshot("""\
this name cannot be the name of a plugin
expected: lower-case letters, digits and single dashes, a letter first, as my-bench
to do: 'my-bench' is valid\
""")),
    "new-plugin json": (2, UsageError, None, None, snapshot("""\
'json' cannot be the name of a package
expected: a name that is not a Python keyword or module, and not reserved
to do: json-bench is valid\
""")),
    "--model baseline --tasks interests --workers 8": (
        2, UsageError, None, "8, with --executor local",
        snapshot("""\
--workers needs --executor ray
expected: --executor ray, which runs on a Ray cluster
to do: give --executor ray, or leave --workers out\
""")),
    "export latest": (2, UsageError, None, None, snapshot("""\
--format is missing
expected: one of inspect, csv, parquet, lm-eval, hf-eval, eval-results, every-eval-ever
to do: `harness export --help` lists the options\
""")),
    "export latest --format cvs --out x": (2, UsageError, "--format", None, snapshot("""\
no value 'cvs'
expected: one of inspect, csv, parquet, lm-eval, hf-eval, eval-results, every-eval-ever
to do: did you mean 'csv'?\
""")),
    "export latest --format csv": (2, UsageError, None, None, snapshot("""\
--out is missing
expected: --out DIR: a new folder, or an empty one
to do: `harness export --help` lists the options\
""")),
}  # fmt: skip

MISSPELT = {
    "help taks": (UsageError, "tasks", snapshot("no command 'taks'")),
    "list plugins interest": (UnknownName, "interests", snapshot("there is no plugin 'interest'")),
    "list prompts nmae.candidate": (UnknownName, "name.candidate",
        snapshot("no prompt matches 'nmae.candidate'")),
}  # fmt: skip


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
expected: values without `,name=` inside and without spaces at either end\
""")


def test_a_sample_that_the_run_has_not(kept_run, toy_plugin, exits):
    wording = exits(
        1, DataError, "show RUN --sample anna", where="RUN", found="anna", RUN=kept_run.path
    )
    assert wording == snapshot("""\
no item or user with records has this id
expected: an id, such as ann, ann/1\
""")


@pytest.mark.parametrize("command", MISSPELT)
def test_a_misspelt_name_is_answered_with_the_nearest(command, exits):
    kind, meant, problem = MISSPELT[command]
    first, *_, last = exits(2, kind, command).splitlines()
    assert repr(meant) in last
    assert first == problem


def test_a_plugin_that_cannot_be_written(tmp_path, exits):
    (tmp_path / "notes").write_text("a file, and no folder")
    found, command = "Not a directory", "new-plugin my-bench --into notes"
    assert exits(1, StorageError, command, where="notes/my-bench", found=found) == snapshot("""\
cannot write
to do: make the folder writable, or choose another with --into\
""")
