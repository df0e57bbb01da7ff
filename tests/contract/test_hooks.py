"""Every hook is documented, typed, and called in a real run by a plugin that has them all."""

import inspect
import json
import os
import subprocess
import sys
import typing

import msgspec
import pytest

from harness.registry import hookspecs

HOOKS = {
    name: function
    for name, function in vars(hookspecs).items()
    if inspect.isfunction(function) and hasattr(function, f"{hookspecs.PROJECT}_spec")
}

PLUGIN = """
import os

from harness import Identity, Metric, Model, Reply, TextReader, hookimpl, simple


def note(hook):
    with open(os.environ["HOOKS_CALLED"], "a") as file:
        print(hook, file=file)


@hookimpl
def register_benchmarks(register):
    note("register_benchmarks")
    register("noted", lambda: simple(
        "noted", build=lambda row: {"word": row["id"]}, read=TextReader(),
        score=lambda row, answer: {"right": float(answer == row["id"])},
        metrics={"right": Metric(description="Share of words repeated.")},
    ))


@hookimpl
def register_models(register):
    note("register_models")
    register("parrot", Parrot, description="answers with the last word")


@hookimpl
def register_judges(register):
    note("register_judges")
    register("lenient", str, description="takes everything")


@hookimpl
def register_embedders(register):
    note("register_embedders")
    register("vowels", lambda settings: None, description="counts vowels")


@hookimpl
def register_executors(register):
    note("register_executors")
    register("nowhere", str, description="works nothing")


@hookimpl
def register_respondents(register):
    note("register_respondents")
    register("noted", "answer", "candidate", lambda: lambda variables, random: "respondent")


@hookimpl
def register_metrics(register):
    note("register_metrics")
    register("noted", "wrong", Metric(
        description="Share of words not repeated.", needs=("right",), compute=wrong,
        higher_is_better=False,
    ))


def wrong(score):
    return 1 - score.values["right"]


@hookimpl
def register_analyses(register):
    note("register_analyses")
    register("noted", "noted-words", str, description="which words were repeated")


@hookimpl
def register_data_tools(register):
    note("register_data_tools")
    register("count-words", str, description="how many words there are")


@hookimpl
def on_run_start(event):
    note("on_run_start")


@hookimpl
def on_stage_end(event):
    note("on_stage_end")


@hookimpl
def on_run_end(event):
    note("on_run_end")


class Parrot(Model):
    concurrency = 1

    def __init__(self, settings):
        self.identity = Identity(kind="parrot", name="parrot")

    async def ask(self, request):
        return Reply(text=request.messages[-1].content.split()[-1])
"""

TASK = """
task: noted
version: 1
benchmark: noted
description: Repeat a word.
data:
  sample: sample
  tables:
    words:
      files: [words.jsonl]
      columns:
        id: {type: string}
metrics: [right]
"""

FILES = {
    "noted/__init__.py": "",
    "noted/plugin.py": PLUGIN,
    "noted/task_configs/noted.yaml": TASK,
    "noted/prompts/noted/answer.candidate.j2": "Say {{ word }}",
    "noted/sample/words.jsonl": '{"id": "tea"}\n{"id": "milk"}\n',
    "noted-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: noted\nVersion: 1.0\n",
    "noted-1.0.dist-info/entry_points.txt": "[harness.plugins]\nnoted = noted.plugin\n",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder to be put on the path: the plugin as an installation would leave it."""
    base = tmp_path_factory.mktemp("noted")
    for name, text in FILES.items():
        path = base / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return base


def run(folder, name, *arguments):
    """The hooks that were called in a run, and the value of its metric."""
    notes = folder / f"{name}.called"
    result = subprocess.run(
        [
            sys.executable, "-m", "harness", "--tasks", "noted", "--data", "sample",
            "--output_path", str(folder / name), *arguments,
        ],
        cwd=folder,
        env={
            **os.environ, "PYTHONPATH": str(folder), "HOOKS_CALLED": str(notes),
            "HARNESS_CACHE": str(folder / "cache"),
        },
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stdout + result.stderr
    [summary] = (folder / name).glob("*/noted/summary.json")
    value = json.loads(summary.read_text("utf-8"))["metrics"]["right"]["value"]
    return {*notes.read_text("utf-8").splitlines()}, value


def test_every_hook_is_called_in_a_real_run_and_a_respondent_answers_for_the_baseline(folder):
    called, value = run(folder, "own-model", "--model", "parrot")
    assert value == 1.0, "its model answered"
    assert set(HOOKS), "no hook was found, so this test would prove nothing"
    assert called == set(HOOKS), "a new hook has to be implemented by the plugin above"
    _, value = run(folder, "respondent", "--model", "baseline")
    assert value == 0.0, "it always says 'respondent'"


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_a_hook_says_what_it_is_for_and_what_it_takes(name):
    hook = HOOKS[name]
    first = (inspect.getdoc(hook) or "").partition("\n")[0]
    assert first.endswith((".", ":")), f"{name} has no docstring that begins with a sentence"
    assert "return" in hook.__annotations__
    assert set(inspect.signature(hook).parameters) <= set(hook.__annotations__)


@pytest.mark.parametrize("name", sorted(name for name in HOOKS if name.startswith("on_")))
def test_an_observer_gets_one_frozen_documented_event(name):
    [event] = [
        kind for word, kind in typing.get_type_hints(HOOKS[name]).items() if word != "return"
    ]
    assert issubclass(event, msgspec.Struct)
    assert event.__struct_config__.frozen
    assert event.__doc__
