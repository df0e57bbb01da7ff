"""Scripted models, the fixtures of pytest, and what is said of mistakes in tests."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from harness import CallError
from harness.base.errors import ModelError, PluginError, UsageError
from harness.registry import load_plugins
from harness.testing import FaultyServer, ScriptedModel, run_tasks
from harness.testing.scripted import offered

INTEREST = '[{"interest": "trains", "items": [1, 2, 3]}]'


def run(folder, model, **settings):
    settings = {"judge": "lexical", "limit": 2, **settings}
    return run_tasks("interests", folder=folder, model=model, **settings).summaries[0]


def test_one_text_or_a_function_answers_every_request_and_each_is_kept(tmp_path):
    def answer(request):
        return INTEREST if request.topic.role == "candidate" else "1"

    model, judge = ScriptedModel(INTEREST), ScriptedModel(answer, name="judge")
    summary = run(tmp_path, model, judge=judge)
    assert summary.stages["name"].done == model.count == len(model.requests) == 2
    assert summary.stages["support"].roles["judge"].calls == judge.count > 0
    assert [request.topic.prompt for request in model.requests] == ["name", "name"]
    assert all(request.topic.variables["max_interests"] == 5 for request in model.requests)


def raises(request):
    raise CallError("bad_request", "no")


@pytest.mark.parametrize("script", [lambda request: CallError("bad_request", "no"), raises])
def test_an_error_in_the_script_is_a_call_that_failed(tmp_path, script):
    summary = run(tmp_path, ScriptedModel(script), max_failures=1.0)
    assert summary.stages["name"].failures == {"bad_request": 2}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (lambda request: {}["no such"], "raised KeyError: 'no such'"),
        (lambda request: None, "returned None, which is no text, Reply or CallError"),
        ([INTEREST], "has 1 answers, but this is request 2"),
        ([INTEREST, 7], "returned 7, which is no text, Reply or CallError"),
    ],
)
def test_a_mistake_in_the_script_ends_the_run_and_is_no_failed_call(tmp_path, script, said):
    with pytest.raises(ModelError) as failure:
        run(tmp_path, ScriptedModel(script), max_failures=1.0)
    assert f"the script of 'model' {said}" in str(failure.value)


def test_a_mistake_in_what_a_server_says_is_raised_and_no_failed_call(tmp_path):
    def answer(body):
        raise AssertionError("asked for the wrong thing")

    with FaultyServer(answer) as server, pytest.raises(AssertionError, match="the wrong thing"):
        run(tmp_path, server, max_failures=1.0)
    assert set(server.counts.values()) == {1}, "and nothing is tried again"


def test_two_models_of_one_name_are_refused():
    with pytest.raises(UsageError) as failure, offered([ScriptedModel(), ScriptedModel("b")]):
        pass
    assert "the same name" in str(failure.value)


def test_the_kind_is_there_for_the_run_alone(tmp_path):
    before = load_plugins().models
    with offered([ScriptedModel("x", name="a")]):
        made = load_plugins().model("scripted").factory(SimpleNamespace(args={"model": "a"}))
        assert made.answers == "x"
    assert load_plugins().models is before
    with pytest.raises(PluginError):
        load_plugins().model("scripted")


TEST = """
from harness.testing import ScriptedModel

INTEREST = '[{"interest": "trains", "items": [1, 2, 3]}]'


def test_a_run(harness_run, tmp_path):
    result = harness_run("interests", model=ScriptedModel(INTEREST), judge="lexical", limit=2)
    assert result.status == "done"
    assert result.folder.parent == tmp_path / "runs"
    assert (tmp_path / "calls.sqlite").is_file()


def test_a_server(harness_run, harness_server):
    harness_server.answer = lambda body: INTEREST
    result = harness_run("interests", model=harness_server, judge="lexical", limit=2)
    assert result.summaries[0].stages["name"].done == harness_server.count == 2
"""

LOADED = """
import sys
import harness.testing.pytest_plugin
print(*sorted(name for name in sys.modules if name.partition(".")[0] == "harness"))
"""


def test_the_fixtures_are_there_wherever_the_harness_is(tmp_path):
    (tmp_path / "test_it.py").write_text(TEST)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "HARNESS_CACHE": str(tmp_path / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout
    assert not (tmp_path / "cache").exists(), "a run in a test leaves the user's store alone"


def test_they_cost_who_does_not_use_them_next_to_nothing():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["harness", "harness.testing", "harness.testing.pytest_plugin"]
