"""A suite fills a cluster: models run side by side, and a judge's engine opens once for all."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest
from builders.processes import wait_until

WORDS = [f"w{number % 5} {number}" for number in range(24)]


@pytest.fixture
def suite(runs):
    """The command of a suite of these models on the words, and a way to its exit code, its
    document and what it said."""
    runs.words(*WORDS)

    def command(models, referee, *more, executor="ray", name="suite", seeds=(0,), **options):
        on_ray = {"executor": "ray", "ray_address": runs.address}
        options = {
            "data": str(runs.folder / "data"),
            "output_path": str(runs.folder / name),
            "no_store": True,  # so that each run asks the judge
            "role": [f"referee={referee}"],
            **(on_ray if executor == "ray" else {}),
            **options,
        }
        models = [{"name": model, "spec": spec} for model, spec in models.items()]
        file = runs.folder / f"{name}.yaml"
        whole = {"models": models, "tasks": ["toys"], "seeds": seeds, "options": options}
        file.write_text(json.dumps(whole))
        return [sys.executable, "-m", "harness", "suite", str(file), *more]

    def run(*given, **options):
        done = subprocess.run(
            command(*given, "--json", **options),
            cwd=runs.folder, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout), done.stderr

    run.command = command
    return run


def toy(name, *, gpus=1, seconds=0.005):
    """The SPEC of an engine that notes when it opens and closes."""
    return f"toy:name={name},gpus={gpus},seconds={seconds}"


def served(server, name):
    return f"openai:base_url={server.url},revision=1,model={name}"


def events(runs):
    """What engines did, in order: `opens one`."""
    log = runs.package / "engines"
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.partition(" ")[2] for line in lines]


def scores(folder):
    """By model, the scores of its run."""
    return {
        json.loads(path.read_text())["tags"]["model"]: (
            path.parent / "toys" / "scores.jsonl"
        ).read_bytes()
        for path in folder.glob("*/manifest.json")
    }


def test_models_run_side_by_side_and_a_judge_opens_once_for_all(suite, runs):
    """Two GPUs hold two of three models, and then the judge twice."""
    models = {name: toy(name, seconds=0.2) for name in ("one", "two", "three")}
    code, document, said = suite(models, toy("judge"))
    assert code == 0, said
    assert [run["status"] for run in document["runs"]] == ["done"] * 3
    found = events(runs)
    opened = Counter(event for event in found if event.startswith("opens"))
    assert opened.pop("opens judge") <= 2  # one for each GPU, of three runs
    assert opened == dict.fromkeys(("opens one", "opens two", "opens three"), 1)
    closed = Counter(event for event in found if event.startswith("closes"))
    assert closed.total() == len(found) / 2
    assert found.index("opens two") < found.index("closes one")
    assert found.index("opens one") < found.index("closes two")
    first = min(found.index("closes one"), found.index("closes two"))
    assert found.index("opens three") > first
    last = max(found.index(f"closes {name}") for name in models)
    assert found.index("opens judge") > last
    assert suite(models, toy("judge"), executor="local", name="local")[0] == 0
    assert scores(runs.folder / "suite") == scores(runs.folder / "local")
    assert len(scores(runs.folder / "suite")) == 3


def test_a_model_that_fails_does_not_stop_those_next_to_it(suite, serve):
    """Models of servers run side by side where there are processors: each has two requests."""
    server = serve(latency=0.5)
    models = {
        "gone": "openai:model=m,revision=1,base_url=http://127.0.0.1:1/v1",
        "one": served(server, "candidate"),
        "two": served(server, "judge"),
    }
    referee = served(server, "referee")
    code, document, said = suite(models, referee, workers=1, concurrency=2)
    assert [run["exit_code"] for run in document["runs"]] == [1, 0, 0], said
    assert code == document["exit_code"] == 1
    assert "gone, seed 0: failed\n" in said and "one, seed 0: done\n" in said
    assert document["runs"][0]["errors"]
    assert server.most_in_flight > 2


def test_an_interruption_ends_all_runs(suite, runs):
    models = {name: toy(name, seconds=1) for name in ("one", "two", "three")}
    process = runs.started(suite.command(models, toy("judge")))
    wait_until(lambda: {"opens one", "opens two"} <= {*events(runs)})
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=120)
    assert process.returncode == 130, said
    for name in ("one", "two"):
        assert f"{name}, seed 0: finishing the calls in flight" in said
    assert "three, seed 0: waits until runs before it leave room on the cluster" in said
    found = {"opens one", "opens two", "closes one", "closes two"}
    assert {*events(runs)} == found
