"""The observers for Weights & Biases and MLflow send numbers, and cost a run nothing."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import pytest
from harness_trackers import config_of, mlflow, numbers_of, wandb

import harness as package
from harness.calls.pricing import Cost
from harness.registry.hookspecs import RunEnded
from harness.runs.manifest import Session
from harness.testing import FaultyServer

BLOCK = 32 * 1024
ANSWER = '[{"interest": "answered-in-confidence", "items": [1, 2]}]'
VARIABLES = ("WANDB_PROJECT", "MLFLOW_TRACKING_URI")
SUPPORT = {
    "interests/support": 0.869351, "interests/support.low": 0.832035,
    "interests/support.high": 0.907619, "interests/support.n": 5, "interests/support.missing": 0,
}  # fmt: skip

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    """Runs of five people, without a tracker unless the test asks for one."""
    monkeypatch.chdir(tmp_path)
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    return lambda **more: package.evaluate(
        "interests",
        **{
            "model": "baseline", "judge": "lexical", "data": "sample", "limit": 5,
            "quiet": True, "name": "step-1", "tag": {"week": 47}, **more,
        },
    )  # fmt: skip


@pytest.fixture
def offline(evaluate, tmp_path, monkeypatch):
    """The real package of Weights & Biases, which writes to files only."""
    real = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_PROJECT", "evals")
    yield real
    real.teardown()


@pytest.fixture
def client(evaluate, tmp_path, monkeypatch):
    """The real client of MLflow over a store of files."""
    real = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "tracked").as_uri())
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "evals")
    return real.MlflowClient()


def ended(folder, status="done", exit_code=0):
    return RunEnded(folder=folder, status=status, exit_code=exit_code, seconds=1.0)


def rounded(numbers):
    return {key: round(value, 6) for key, value in numbers.items()}


def records_of(folder, kind):
    """The records of a kind that were written for Weights & Biases."""
    # The file is a log in the format of LevelDB, in blocks with parts of records.
    from wandb import teardown
    from wandb.proto.wandb_internal_pb2 import Record

    teardown()  # what writes is another process
    (file,) = folder.glob("wandb/offline-run-*/*.wandb")
    data, place, parts, found = file.read_bytes(), 7, b"", []
    while place < len(data):
        if BLOCK - place % BLOCK < 7:
            place += BLOCK - place % BLOCK
            continue
        size, part = struct.unpack_from("<HB", data, place + 4)
        parts += data[place + 7 : place + 7 + size]
        place += 7 + size
        if part in (1, 4):  # whole, or the last part
            found.append(Record.FromString(parts))
            parts = b""
    return [getattr(record, kind) for record in found if record.WhichOneof("record_type") == kind]


def the_run(client):
    experiment = client.get_experiment_by_name("evals")
    (run,) = client.search_runs([experiment.experiment_id])
    return run


def test_nothing_is_imported_or_sent_unless_asked(evaluate, monkeypatch, capsys):
    for name in ("wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)
    assert evaluate(quiet=False).status == "done"
    assert "failed" not in capsys.readouterr().err


@pytest.mark.parametrize(("variable", "name"), [*zip(VARIABLES, ("wandb", "mlflow"), strict=True)])
def test_a_tracker_that_fails_costs_only_a_line(evaluate, monkeypatch, capsys, variable, name):
    monkeypatch.setenv(variable, "asked")
    monkeypatch.setitem(sys.modules, name, None)
    assert evaluate().status == "done"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"plugin '{name}' of user-understanding-harness failed in on_run_end: ")
    assert f"import of {name} halted" in line


def test_weights_and_biases_gets_the_numbers(evaluate, offline, tmp_path):
    result = evaluate()
    (run,) = records_of(tmp_path, "run")
    assert (run.run_id, run.display_name, run.project) == (result.folder.name, "step-1", "evals")
    assert list(run.tags) == ["week=47"]
    config = {one.key: json.loads(one.value_json) for one in run.config.update}
    assert config["tasks"] == ["interests"]
    assert (config["label"], config["folder"]) == ("step-1", result.folder.name)
    assert (config["limit"], config["roles"]) == (5, {"judge": "lexical"})
    (history,) = records_of(tmp_path, "history")
    sent = {one.key or "/".join(one.nested_key): json.loads(one.value_json) for one in history.item}
    assert rounded({key: sent[key] for key in SUPPORT}) == SUPPORT
    assert [one.exit_code for one in records_of(tmp_path, "exit")] == [0]


@pytest.mark.parametrize(("status", "code"), [("interrupted", 130), ("failed", 1)])
def test_weights_and_biases_learns_how_a_run_ended(small_run, offline, tmp_path, status, code):
    wandb.on_run_end(ended(small_run, status, code))
    assert [one.exit_code for one in records_of(tmp_path, "exit")] == [code]
    items = [item for one in records_of(tmp_path, "summary") for item in one.update]
    summary = {item.key or "/".join(item.nested_key): item.value_json for item in items}
    assert json.loads(summary["status"]) == status


def test_a_run_of_the_caller_s_own_goes_on(evaluate, offline):
    with offline.init(project="training") as own:
        evaluate()
        assert offline.run is own
        own.log({"loss": 1.0})


def test_mlflow_gets_the_numbers(evaluate, client):
    result = evaluate()
    run = the_run(client)
    assert (run.info.run_name, run.info.status) == ("step-1", "FINISHED")
    assert run.data.tags["harness_run"] == result.folder.name
    assert (run.data.tags["week"], run.data.tags["status"]) == ("47", "done")
    assert run.data.params["tasks"] == "['interests']"
    assert (run.data.params["label"], run.data.params["limit"]) == ("step-1", "5")
    assert rounded(run.data.metrics) == SUPPORT


@pytest.mark.parametrize(
    ("status", "theirs"),
    [("interrupted", "KILLED"), ("failed", "FAILED"), ("too_many_failures", "FAILED"),
     ("waiting", "SCHEDULED")],
)  # fmt: skip
def test_mlflow_learns_how_a_run_ended_and_that_it_was_continued(evaluate, client, status, theirs):
    result = evaluate()
    mlflow.on_run_end(ended(result.folder, status, 1))
    run = the_run(client)
    assert (run.info.status, run.data.tags["status"]) == (theirs, status)


@pytest.mark.usefixtures("offline", "client")
def test_no_prompt_answer_key_or_command_line_leaves(evaluate, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret-key")
    monkeypatch.setattr(sys, "argv", ["harness", "an-argument-of-the-command"])
    with FaultyServer(lambda body: ANSWER) as server:
        result = evaluate(model="openai", model_args={"base_url": server.url, "model": "m"})
    sample = next(result.samples(stage="name"))
    assert sample.replies == (ANSWER,)
    files = [file for place in ("wandb", "tracked") for file in (tmp_path / place).rglob("*")]
    sent = b"".join(file.read_bytes() for file in files if file.is_file())
    assert b"interests/support.low" in sent
    secret = [
        "sk-very-secret-key", "an-argument-of-the-command", "answered-in-confidence",
        sample.user, sample.prompts[0][:40],
    ]  # fmt: skip
    assert [text for text in secret if text.encode() in sent] == []


def test_a_server_that_is_away_holds_nobody_up(client, evaluate, tmp_path):
    code = (
        "import harness; harness.evaluate('interests', model='baseline', judge='lexical',"
        " data='sample', limit=2)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "MLFLOW_TRACKING_URI": "http://127.0.0.1:1"},
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert "plugin 'mlflow' of user-understanding-harness failed in on_run_end" in done.stderr


def test_costs_are_added_a_mean_has_its_own_name_and_no_metric_without_a_value_is_sent(evaluate):
    result = evaluate(num_repeats=2)

    def cost(paid, unknown=0, currency="USD"):
        return Cost(
            model="m", currency=currency, priced=True, asked=1, paid=paid, paid_unknown=unknown,
            reused=0, saved=None, saved_unknown=0,
        )  # fmt: skip

    sessions = tuple(
        Session(started="now", costs=costs)
        for costs in (
            {"name": cost(0.25), "support": cost(None)},
            {"name": cost(0.5, unknown=2), "support": cost(None, 3, "EUR")},
            {},
        )
    )
    manifest = msgspec.structs.replace(result.manifest, sessions=sessions)
    numbers = numbers_of(msgspec.structs.replace(result, manifest=manifest))
    assert {key: value for key, value in numbers.items() if key.startswith("cost")} == {
        "cost/USD": 0.75, "cost/USD.calls_not_in_it": 2, "cost/EUR.calls_not_in_it": 3,
    }  # fmt: skip
    both = [numbers["interests/support"], numbers["interests@2/support"]]
    assert numbers["interests/support mean"] == pytest.approx(sum(both) / 2)
    assert config_of(result)["tasks"] == ["interests", "interests@2"]
    metric = SimpleNamespace(value=None, interval=None, n=0, missing={"no_json": 2, "cut": 1})
    summary = SimpleNamespace(task="a", main=("m",), metrics={"m": metric})
    result = SimpleNamespace(summaries=[summary], means=[], manifest=SimpleNamespace(sessions=()))
    assert numbers_of(result) == {"a/m.n": 0, "a/m.missing": 3}
