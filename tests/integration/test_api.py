"""The harness from Python."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import harness as package
from harness import api
from harness.base.errors import DataError, ModelError, UsageError
from harness.testing import faults

pytestmark = pytest.mark.usefixtures("own_cache")
SAMPLE = {"model": "baseline", "judge": "lexical", "data": "sample", "limit": 5, "quiet": True}


@pytest.fixture
def evaluate(tmp_path, monkeypatch):
    """Runs of the sample, in `runs` of the working directory."""
    monkeypatch.chdir(tmp_path)
    return lambda tasks="interests", **more: package.evaluate(tasks, **{**SAMPLE, **more})


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two runs that tests only read, `one` of two tasks and `two` of one of them."""
    folder = tmp_path_factory.mktemp("pair")
    settings = {**SAMPLE, "output_path": folder / "runs", "reuse": "run"}
    return (
        package.evaluate(["interests", "interests_short"], name="one", **settings),
        package.evaluate("interests", name="two", **settings),
    )


@pytest.fixture
def runs(pair, monkeypatch):
    """These, which are in `runs` of the working directory."""
    monkeypatch.chdir(pair[0].folder.parents[1])
    return pair


def test_options_are_given_by_the_command_s_names_and_progress_is_told(evaluate, tmp_path, capsys):
    result = evaluate(
        set={"interests.max_interests": 2}, gen_kwargs="temperature=0.5", judge=None,
        role={"judge": "lexical"}, data={"interests": "sample", "*": tmp_path}, tag={"week": 47},
        timeout=5, reuse="run", quiet=False,
    )  # fmt: skip
    settings = result.manifest.settings
    assert settings["changes"] == {"interests.max_interests": 2}
    assert settings["sampling"] == {"temperature": 0.5}
    assert settings["data"] == {"interests": "sample", "*": str(tmp_path)}
    assert settings["tags"] == {"week": "47"}
    assert settings["patience"]["attempt_timeout"] == 5.0
    assert {len(sample.value) for sample in result.samples(stage="name")} == {2}
    shown = capsys.readouterr()
    assert (shown.out, "interests/support: " in shown.err) == ("", True)
    evaluate()
    assert capsys.readouterr() == ("", "")


async def test_both_work_where_a_loop_runs(tmp_path):
    result = await package.aevaluate(["interests"], output_path=tmp_path / "runs", **SAMPLE)
    assert result.status == "done"
    again = package.evaluate("interests", output_path=tmp_path / "runs", **SAMPLE)
    assert again.summaries[0].metrics == result.summaries[0].metrics


STOPPED = """
import asyncio, harness, os, pathlib, signal, sys, threading, time

def stop():
    while not any(file.stat().st_size for file in pathlib.Path("runs").glob("*/interests/1-*")):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)

async def cell():
    threading.Thread(target=stop).start()
    harness.evaluate(
        "interests", model="openai", model_args={"base_url": sys.argv[1], "model": "m"},
        judge="lexical", data="sample", concurrency=1, quiet=True,
    )

try:
    eval(sys.argv[2])(cell())
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize("way", ["asyncio.new_event_loop().run_until_complete", "asyncio.run"])
def test_the_stop_button_of_a_notebook_ends_the_run(serve, tmp_path, way):
    server = serve(latency=0.2)
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, server.url, way],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "stopped\n", done.stderr
    (folder,) = (tmp_path / "runs").glob("*/manifest.json")
    assert json.loads(folder.read_text())["status"] == "interrupted"
    stored = package.load(folder.parent)
    assert stored.status == "interrupted"
    assert stored.unfinished == {"interests": ("name", "support")}
    assert "not done: interrupted\n" in repr(stored)
    assert "0 of 2 stages done" in repr(stored)
    assert stored.to_pandas().empty
    assert 0 < len(list(stored.samples())) < 40


def test_ctrl_c_before_the_loop_begins_ends_the_run(monkeypatch):
    interrupted, ended, asked = threading.Event(), threading.Event(), []

    class Pool(ThreadPoolExecutor):
        def shutdown(self, *args, **options):
            interrupted.set()
            super().shutdown(*args, **options)

    def begin_late(run, begin=asyncio.run):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        interrupted.wait()
        with contextlib.suppress(asyncio.CancelledError):
            begin(run)
        ended.set()

    async def run():
        await asyncio.sleep(0)
        asked.append("a model")

    monkeypatch.setattr(api, "ThreadPoolExecutor", Pool)
    monkeypatch.setattr(api.asyncio, "run", begin_late)
    with pytest.raises(KeyboardInterrupt):
        api._in_a_thread(run())
    assert ended.wait(60)
    assert asked == []


def test_a_run_that_cannot_go_on_raises_and_keeps_its_folder(tmp_path, serve):
    server = serve(faults=lambda asked: faults.status(401))
    args = {"base_url": server.url, "model": "m"}
    settings = {**SAMPLE, "model": "openai", "model_args": args}
    with pytest.raises(ModelError, match="auth"):
        package.evaluate("interests", output_path=tmp_path / "runs", **settings)
    (folder,) = Path(tmp_path / "runs").iterdir()
    assert '"status": "failed"' in (folder / "manifest.json").read_text()
    assert package.load(folder).exit_code == 1


def test_a_result_shows_the_short_table_and_its_samples_have_prompts_replies_and_typed_values(runs):
    _, result = runs
    assert repr(result) == str(result)
    page = result._repr_html_()
    assert page.startswith("<pre")
    assert "support ↑    0.869 [0.832, 0.908]  5" in page
    assert [sample.stage for sample in result.samples()] == ["name"] * 5 + ["support"] * 25
    sample = next(result.samples(task="interests", stage="name"))
    assert (sample.task, sample.id, sample.failure) == ("interests", sample.user, None)
    assert type(sample.value[0]).__name__ == "Interest"
    assert sample.value[0].name in sample.replies[0]
    assert len(sample.prompts) == len(sample.record.calls) == 1
    assert sample.record.calls[0].messages[-1].content in sample.prompts[0]
    with pytest.raises(UsageError, match="no stage 'nam'"):
        result.samples(stage="nam")


def test_metrics_as_a_data_frame(runs, monkeypatch):
    result, _ = runs
    frame = result.to_pandas()
    assert list(zip(frame.task, frame.metric, strict=True)) == [
        (task, metric)
        for task in ("interests", "interests_short")
        for metric in ("support", "grounded", "coverage")
    ]
    first = frame.iloc[0]
    assert (first.model, first.fell_out) == ("one", 0)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match="to_pandas needs pandas") as told:
        result.to_pandas()
    assert told.value.hint == "pip install pandas"


def test_samples_have_the_failure_in_place_of_the_value(evaluate, serve):
    server = serve(faults=lambda asked: faults.status(400) if asked.number == 1 else None)
    args = {"base_url": server.url, "model": "m"}
    result = evaluate(model="openai", model_args=args, max_failures=1.0, concurrency=1)
    (failed,) = [sample for sample in result.samples() if sample.failure is not None]
    assert (failed.value, failed.failure.cause) == (None, "bad_request")
    assert failed.replies == (None,)


def test_a_stored_run_is_loaded_by_folder_name_label_and_as_latest(evaluate):
    result = evaluate(name="two")
    for named in (result.folder, result.folder.name, "two", "latest"):
        loaded = package.load(named)
        assert repr(loaded) == repr(result)
        assert (loaded.summaries, loaded.means) == (result.summaries, result.means)
        assert (loaded.status, loaded.exit_code, loaded.unfinished) == ("done", 0, {})
    with pytest.raises(DataError, match="this run does not exist"):
        package.load("three")


def test_runs_are_compared_by_result_and_name(runs):
    first, second = runs
    comparison = package.compare([first, "two", second])
    (of_task,) = comparison.comparisons
    assert [run.label for run in of_task.runs] == ["one", "two"]
    assert {difference.value for difference in of_task.differences} == {0.0}
    assert "interests_short is not compared: only one has finished it" in repr(comparison)
    assert comparison._repr_html_().startswith("<pre")
    assert not comparison.gates
    assert "gate" not in repr(comparison)
    with pytest.raises(DataError, match="only two has finished it"):
        package.compare([second])
    with pytest.raises(DataError, match="nothing to compare"):
        package.compare([])


def test_runs_are_compared_by_a_slice_and_gated_first_minus_second(evaluate):
    task = {"tasks": "usersum_movielens_none", "judge": None, "limit": None}
    new, old = (evaluate(**task, seed=seed, name=name) for seed, name in ((1, "new"), (0, "old")))
    ours, theirs = (run.summaries[0].metrics["qm"].value for run in (new, old))
    assert ours != theirs
    gates = ["usersum_movielens_none.qm>-1.1", "usersum_movielens_none.qm>1"]
    comparison = package.compare([new, old], by="history", gate=gates, force=True)
    (of_task,) = comparison.comparisons
    assert of_task.differences[0].value == pytest.approx(ours - theirs)
    assert {part.slice for part in of_task.slices} == {"history"}
    assert sum(part.differences[0].n for part in of_task.slices) == 100
    assert [(gate.gate, gate.holds) for gate in comparison.gates] == [
        (gates[0], True), (gates[1], False),
    ]  # fmt: skip
    assert {gate.value for gate in comparison.gates} == {of_task.differences[0].value}
    assert [(gate.first, gate.second) for gate in comparison.gates] == [
        (new.manifest.run_id, old.manifest.run_id)
    ] * 2
    for shown in (repr(comparison), comparison._repr_html_()):
        assert "gate does not hold: usersum_movielens_none.qm" in shown
    other = package.compare([old], against=new, gate="usersum_movielens_none.t1>-2", force=True)
    assert [(gate.first, gate.holds) for gate in other.gates] == [(old.manifest.run_id, True)]
    with pytest.raises(UsageError, match="a gate needs to know which run is the base"):
        package.compare([new], gate="usersum_movielens_none.qm>0")


def test_every_public_name_is_there_and_listed():
    for name in package.__all__:
        assert getattr(package, name) is not None
    assert set(dir(package)) == set(package.__all__)
