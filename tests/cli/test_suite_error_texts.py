"""What is said of suites that cannot be run, word for word, each at its line and column."""

from pathlib import Path

import pytest
from inline_snapshot import snapshot

from harness.base.errors import HarnessError, TaskError, UsageError

pytestmark = pytest.mark.usefixtures("elsewhere", "own_cache")

A = "models: [{name: a, spec: baseline}"
ONE = f"{A}]\ntasks: [t]\n"
REAL = "\ntasks: [interests]\njudge: lexical\n"
RUN = f"{A}]{REAL}"

SUITES = {
    "- models": (TaskError, "", "a list", snapshot("""\
the file defines no suite
expected: keys and values\
""")),
    f"{ONE}gate: []": (TaskError, ":3:1", None, snapshot("""\
unknown key 'gate'
expected: one of models, tasks, judge, seeds, limit, against, gates, options
to do: did you mean 'gates'?\
""")),
    "models: []\ntasks: [t]": (TaskError, ":1:9", "[]", snapshot("""\
`models` is invalid
expected: a list that is not empty (Models, each with a `name`, and a `spec` or a `glob`.)\
""")),
    f"{ONE}against: b": (TaskError, ":3:10", "b", snapshot("""\
`against` names no model of the suite
expected: a\
""")),
    f"{ONE}gates: [t.m>0]": (TaskError, ":3:1", None, snapshot("""\
gates need `against`
expected: `against: NAME` with one of a\
""")),
    f"{A}, {{name: a, spec: b}}]\ntasks: [t]": (TaskError, ":1:53", "another in s.yaml:1:26", snapshot("""\
two models of the suite are called 'a'
expected: a name for each model, as its runs are called so in tables\
""")),
    "models: [{name: a}]\ntasks: [t]": (TaskError, ":1:10", "neither", snapshot("""\
a model has either `spec` or `glob`
expected: `spec: SPEC`, or `glob: PATH` with `kind: KIND`\
""")),
    "models: [{name: a, spec: b, kind: c}]\ntasks: [t]": (TaskError, ":1:29", None, snapshot("""\
`kind` belongs to a model with `glob`
expected: all arguments of the model in its `spec`\
""")),
    "models: [{name: a, glob: b}]\ntasks: [t]": (TaskError, ":1:20", None, snapshot("""\
`kind` is missing
expected: the kind of the models that `glob` finds, such as `kind: vllm`\
""")),
    "models: [{name: a, glob: gone-*, kind: b}]\ntasks: [t]": (TaskError, ":1:26", "gone-*", snapshot("""\
nothing matches the glob
expected: the weights of at least one model; a relative path begins in the folder of the command\
""")),
    f"{A}]\ntasks: [interests, interest]": (TaskError, ":2:20", None, snapshot("""\
no task, group or tag is called 'interest'
to do: did you mean 'interests'?\
""")),
    f"{RUN}against: a\ngates: [interests.suport>0]": (
        UsageError, ":5:9", "interests.suport>0", snapshot("""\
'interests' has no metric 'suport'
expected: support, grounded, coverage
to do: did you mean 'support'?\
""")),
    f"{RUN}options: {{seed: 3}}": (UsageError, ":4:11", None, snapshot("""\
'seed' is no option of a suite
expected: models, tasks, judge, seeds and limit beside `options`\
""")),
    f"{RUN}options: {{concurrency: many}}": (UsageError, ":4:11", "many", snapshot("""\
the setting 'concurrency' is not valid
expected: a whole number\
""")),
    f"{RUN}options: {{max_cost: 0}}": (UsageError, ":4:11", "0.0", snapshot('--max_cost must be an amount of money above 0')),
    f"{RUN}options: {{offline: true, max-calls: 0}}": (UsageError, ":4:26", "0", snapshot("--max_calls must be at least 1")),
    f"{RUN}options: {{role: [judge=b]}}": (
        UsageError, ":4:11 (--role)", "--judge and --role judge=b", snapshot("the judge is given twice")),
    f"{RUN}options: {{gen_kwargs: a}}": (UsageError, ":4:11 (--gen_kwargs)", "a", snapshot("""\
this is no argument
expected: name=value,name=value\
""")),
    f"models: [{{name: a, glob: '.', kind: b, args: {{c: ' d'}}}}]{REAL}": (
        UsageError, ":1:26", None, snapshot("""\
the arguments of this model cannot be used
expected: values without `,name=` inside and without spaces at either end\
""")),
    f"models: [{{name: a, glob: '.', kind: b, args: {{api_key: c}}}}]{REAL}": (
        UsageError, ":1:26", "api_key = [redacted]", snapshot("""\
the settings contain a key, token or password
expected: api_key_env with the name of a variable that holds the key, or api_key_file with the path of a file that holds it
to do: remove the key from the settings; replace it if others may have read it\
""")),
    f"models: [{{name: a, spec: 'baseline:b=c'}}]{REAL}": (UsageError, ":1:26", "b", snapshot("""\
the model 'baseline' has no argument 'b'
expected: respondent=NAME\
""")),
    f"{A}]\ntasks: [interests]\njudge: 'openai:model=a,model=b'": (
        UsageError, ":3:8", "model=a,model=b", snapshot("argument 'model' is given twice")),
    f"{A}, {{name: b, spec: 'baseline:respondent=default'}}]{REAL}": (
        UsageError, ":1:53", "baseline", snapshot("""\
b and a are the same model
expected: another model than in s.yaml:1:26
to do: revision= says which weights a server has under one name\
""")),
}  # fmt: skip


@pytest.mark.parametrize("text", SUITES)
def test_suites(text, tmp_path, exits):
    (tmp_path / "s.yaml").write_text(text)
    kind, place, found, wording = SUITES[text]
    assert exits(2, kind, "suite s.yaml", where=f"s.yaml{place}", found=found) == wording
    assert not Path("runs").exists()


def test_a_setting_that_a_suite_does_not_replace_is_at_fault_in_its_own_file(tmp_path, exits):
    Path("harness.toml").write_text("\nmax_cost = 0\n")
    for more, where, found in [
        ("", "harness.toml:2", "0.0"),
        ("{max_cost: -1}", "s.yaml:4:11", "-1.0"),
    ]:
        (tmp_path / "s.yaml").write_text(f"{RUN}options: {more or '{}'}")
        said = exits(2, UsageError, "suite s.yaml", where=where, found=found)
        assert said == "--max_cost must be an amount of money above 0"


def test_options_of_the_command_and_of_runs_that_a_suite_has_not(tmp_path, exits):
    (tmp_path / "night-1").mkdir()
    models = f"{A}, {{name: night, glob: night-*, kind: b}}]"
    (tmp_path / "s.yaml").write_text(f"{models}{REAL}")
    found = {"where": "--only", "found": "night-2"}
    assert exits(2, TaskError, "suite s.yaml --only night-2", **found) == snapshot("""\
the suite has no such model
expected: a, night, night-1
to do: did you mean 'night-1'?\
""")
    found = {"where": "--report", "found": "gone"}
    assert exits(2, UsageError, "suite s.yaml --report gone/page.html", **found) == snapshot("""\
the folder of the report does not exist
expected: an existing folder\
""")
    found = {"where": "--report", "found": "page.pdf"}
    assert exits(2, UsageError, "suite s.yaml --report page.pdf", **found) == snapshot("""\
a report is a page of HTML
expected: a name that ends in .html, such as page.html\
""")
    assert not Path("runs").exists()
    (tmp_path / "s.yaml").write_text(f"{RUN}options: {{seeds: 3}}")
    problem, known = exits(2, UsageError, "suite s.yaml", where="s.yaml:4:11").splitlines()
    assert problem == "there is no setting 'seeds'"
    taken = {*known.removeprefix("expected: ").split(", ")}
    assert {"data", "set", "max_calls"} <= taken
    assert not {"model", "models", "model_args", "tasks", "judge", "seed", "limit"} & taken


def test_gates_without_a_run_on_either_side(tmp_path, exits):
    gone = "{name: gone, spec: 'vllm:pretrained=/nowhere/weights'}"
    text = f"{A}, {gone}]{REAL}options: {{data: sample}}\nlimit: 2\ngates: [interests.support>0]\n"
    for against, only, why in [
        ("a", "gone", "no model has a run"),
        ("gone", "a", "gone has no run"),
    ]:
        (tmp_path / "s.yaml").write_text(f"{text}against: {against}")
        said = exits(1, HarnessError, f"suite s.yaml --only {only}", where="s.yaml:6:1")
        assert said == f"the gates of seed 0 are not decided, as {why}"
