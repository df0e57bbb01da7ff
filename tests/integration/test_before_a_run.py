"""Nothing is paid before every role was looked at, and a corrected command goes on."""

import time

import pytest

from harness.testing.faults import status
from harness.testing.server import FaultyServer

CANDIDATE, JUDGE = "candidate-model", "judge-model"


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
