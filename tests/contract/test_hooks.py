import inspect
import typing

import msgspec
import pytest
from builders.commands import run_cli

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


def has(hook, *entry, **named):
    def called(register):
        note(hook)
        register(*entry, **named)

    globals()[hook] = hookimpl(called)


class Parrot(Model):
    concurrency = 1

    def __init__(self, settings):
        self.identity = Identity(kind="parrot", name="parrot")

    async def ask(self, request):
        return Reply(text=request.messages[-1].content.split()[-1])


has("register_benchmarks", "noted", lambda: simple(
    "noted", build=lambda row: {"word": row["id"]}, read=TextReader(),
    score=lambda row, answer: {"right": float(answer == row["id"])},
    metrics={"right": Metric(description="Share of words repeated.")},
))
has("register_models", "parrot", Parrot, description="answers with the last word")
has("register_judges", "lenient", str, description="takes everything")
has("register_embedders", "vowels", lambda settings: None, description="counts vowels")
has("register_executors", "nowhere", str, description="works nothing")
has("register_respondents", "noted", "answer", "candidate",
    lambda: lambda variables, random: "respondent")
has("register_metrics", "noted", "wrong", Metric(
    description="Share of words not repeated.", needs=("right",), higher_is_better=False,
    compute=lambda score: 1 - score.values["right"],
))
has("register_analyses", "noted", "noted-words", str, description="which words were repeated")
has("register_data_tools", "count-words", str, description="how many words there are")
for observer in ("on_run_start", "on_stage_end", "on_run_end"):
    globals()[observer] = hookimpl(lambda event, hook=observer: note(hook))
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
}


@pytest.mark.usefixtures("own_cache")
def test_every_hook_is_called_in_a_real_run_and_a_respondent_answers_for_the_baseline(
    site, tmp_path, monkeypatch
):
    site.install("noted", {"noted": "noted.plugin"}, FILES)
    monkeypatch.setenv("HOOKS_CALLED", str(tmp_path / "called"))
    words = ("--tasks", "noted", "--data", "sample", "--json")
    # Its model answers; a respondent always says "respondent".
    for model, right in (("parrot", 1.0), ("baseline", 0.0)):
        ran = run_cli("--model", model, *words, folder=tmp_path).ok()
        assert ran.summary("noted")["metrics"]["right"]["value"] == right
    assert set(HOOKS), "no hook was found, so this test would prove nothing"
    called = {*(tmp_path / "called").read_text("utf-8").splitlines()}
    assert called == set(HOOKS), "a new hook has to be implemented by the plugin above"


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_a_hook_says_what_it_is_for_and_an_observer_gets_one_frozen_documented_event(name):
    first = (inspect.getdoc(HOOKS[name]) or "").partition("\n")[0]
    assert first.endswith((".", ":")), f"{name} has no docstring that begins with a sentence"
    if name.startswith("on_"):
        kinds = typing.get_type_hints(HOOKS[name])
        assert kinds.pop("return") is type(None)
        [event] = kinds.values()
        assert issubclass(event, msgspec.Struct)
        assert event.__struct_config__.frozen
        assert event.__doc__
