"""What options and files of settings ask of a whole run, and what is looked at before it."""

import json
import re
import sys
import time

import pytest

from harness.base.errors import ModelError
from harness.cli.main import main
from harness.testing import ScriptedModel
from harness.testing.faults import status
from harness.testing.scripted import offered
from harness.testing.server import FaultyServer

CANDIDATE, JUDGE = "candidate-model", "judge-model"


def write(harness, url, more=""):
    (harness.folder / "harness.toml").write_text(
        f"""
        model = "served"
        judge = "lexical"
        tasks = "interests"
        limit = 8
        {more}
        [data]
        interests = "sample"
        [models.served]
        kind = "openai"
        base_url = "{url}"
        model = "candidate-model"
        """
    )


def test_a_run_that_a_budget_ended_is_taken_up_when_the_file_has_a_larger_one(harness, serve):
    server = serve()
    write(harness, server.url, "max_calls = 3\nconcurrency = 1")
    stopped = harness.here("run", "--json")
    assert stopped.code == 1
    assert (server.count, server.asked_if_thinking) == (2, 1)
    write(harness, server.url)
    harness.here("run", "--json").ok()
    assert server.count == 8
    (folder,) = harness.folders
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["settings"]["limit"] == 8
    assert manifest["asked"]["model_args"] == {"base_url": server.url, "model": "candidate-model"}
    # The same, said in full on the command line, is the same run.
    (harness.folder / "harness.toml").unlink()
    harness.here(
        "--model", "openai", "--model_args", f"base_url={server.url},model=candidate-model",
        "--judge", "lexical", "--tasks", "interests", "--data", "interests=sample", "--limit", "8",
        "--json",
    ).ok()  # fmt: skip
    # Of two runs that begin within one second, the later one's name has a number at its end.
    first, second = (re.search("-[0-9a-f]{8}(?=-|$)", one.name)[0] for one in harness.folders)
    assert first == second


def test_from_python_no_settings_are_read(harness):
    (harness.folder / "harness.toml").write_text("this is no TOML")
    code = (
        "import harness; r = harness.evaluate('interests', model='baseline', judge='lexical', "
        "data='sample', limit=2); print(r.status, r.summaries[0].seed)"
    )
    done = harness.process([sys.executable, "-c", code], HARNESS_SEED="5")
    assert (done.code, done.out) == (0, "done 0\n"), done.err


def test_one_engine_at_a_time_asks_the_candidate_everything_first(harness, serve):
    server = serve(harness, latency=0.01)
    both = "interests,interests_short"
    harness.run("--one-engine-at-a-time", "--reuse", "run", "--concurrency", "4", tasks=both).ok()
    order = [body["model"] for body in server.requests]
    candidate = order.count(CANDIDATE)
    assert candidate == 2 * 40
    assert set(order[:candidate]) == {CANDIDATE}
    assert set(order[candidate:]) == {JUDGE}


def judge_at(url, name=JUDGE):
    return f"openai:model={name},base_url={url}"


@pytest.fixture
def dead():
    with FaultyServer() as server:
        pass
    return server.url


def test_a_wrong_judge_is_found_before_the_candidate_is_paid(harness, serve, dead):
    server = serve()
    harness.url = server.url
    began = time.monotonic()
    ended = harness.run("--judge", judge_at(dead))
    assert time.monotonic() - began < 20
    assert (ended.code, server.count, server.asked_if_thinking) == (1, 0, 0), "nothing is asked"
    assert f"judge: openai:{JUDGE}, from --judge: {dead} cannot be reached: " in ended.err
    assert "to do:    start the server there, or correct base_url" in ended.err

    with FaultyServer(models=["another"], thinks=status(404)) as other:
        ended = harness.run("--judge", judge_at(other.url))
    assert (ended.code, server.count) == (1, 0)
    assert f"lists 1 model without a key, but not '{JUDGE}': another" in ended.err

    harness.run().ok()
    assert len(harness.folders) == 1, "the corrected command went on in the same folder"


def test_a_stage_that_is_recorded_needs_its_server_no_more(harness, serve):
    candidate = serve()
    harness.url = candidate.url
    pinned = f"base_url={candidate.url},model={CANDIDATE},revision=a"
    args = ("--model_args", pinned, "--reuse", "run", "--limit", "6")
    with FaultyServer(models=[JUDGE], faults=[status(404)] * 500) as broken:
        assert harness.run("--judge", judge_at(broken.url), *args).code == 1
    candidate.stop()
    harness.run("--judge", judge_at(serve().url), *args).ok()


def test_a_dry_run_asks_no_server(harness, dead):
    harness.url = dead
    ended = harness.run("--judge", "lexical", "--dry_run")
    assert (ended.code, "cannot be reached" in ended.err) == (0, False)


NAMED = '[{"interest": "gardening", "items": [1, 2, 3, 4, 5, 6, 7, 8]}]'
HELD = "harness: scripted:m: the GPU's memory has not come back\n  to do:    wait for it\n"


class Held(ScriptedModel):
    occupies = "gpu"

    async def close(self):
        raise ModelError(
            "the GPU's memory has not come back", where="scripted:m", hint="wait for it"
        )


@pytest.fixture
def command(tmp_path, monkeypatch, capsys):
    """The exit code, the summaries and the errors of a run over this model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HARNESS_CACHE", str(tmp_path / "cache"))

    def run(model, *more):
        with offered((model,)):
            code = main([
                "--tasks", "interests", "--data", "sample", "--limit", "4", "--model", model.spec,
                "--judge", "lexical", "--json", "--max_failures", "1", *more,
            ])  # fmt: skip
        said = capsys.readouterr()
        return code, json.loads(said.out)["summaries"], said.err

    return run


def test_what_was_answered_is_scored_and_the_error_told_beside_it(command):
    code, (summary,), told = command(Held(NAMED, name="m"))
    assert code == 1
    assert summary["stages"]["name"]["done"] == 4
    assert told == HELD
    model = ScriptedModel(NAMED, name="m")
    again, summaries, told = command(model)
    assert (again, summaries[0]["metrics"], told) == (0, summary["metrics"], "")
    assert model.count == 0


def test_what_stopped_the_run_is_told_first_and_not_lost(command):
    code, summaries, told = command(Held(NAMED, name="m"), "--max_calls", "1")
    assert (code, summaries) == (1, [])
    assert told.startswith("harness: the budget of calls is spent")
    assert told.endswith(HELD)
