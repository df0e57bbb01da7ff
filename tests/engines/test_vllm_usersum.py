"""UserSumBench's loop on a real engine, whose answers make no sense."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]

HC = "usersum_movielens_hc"
PEOPLE = 6
LIMITED = ("--limit", str(PEOPLE), "--set", "max_words=40")
WHOLE_PROMPTS = {"enable_chunked_prefill": "false"}
"""vLLM for CPUs dies of a seed and a prompt that it reads in steps."""


def outcomes(command, stage):
    return [one["outcome"] for one in command.records(stage)]


def test_a_loop_of_random_answers_ends_and_every_failure_has_a_cause(command):
    done = command.run(*LIMITED, task=HC, **WHOLE_PROMPTS)
    assert done.code == 0, done.err
    every = [one for stage in ("segment", "combine", "predict") for one in outcomes(command, stage)]
    failed = [one for one in every if one["type"] != "done"]
    assert len(failed) > 0
    assert {one["type"] for one in failed} <= {"unreadable", "call_failed"}
    assert all(one["cause"] for one in failed)
    rounds = [
        check
        for one in outcomes(command, "segment")
        if one["type"] == "done"
        for check in one["value"]["rounds"]
    ]
    assert len(rounds) > 0
    metrics = done.summary(HC)["metrics"]
    for name in ("qm", "ifm", "idm"):
        missing = metrics[name]["missing"]
        assert metrics[name]["n"] + sum(missing.values()) == PEOPLE
        assert all(cause.split("/")[1] for cause in missing)


def test_a_loop_of_one_word_reaches_the_scores_with_nothing_read(command):
    command.checkpoints = replace(command.checkpoints, candidate=command.checkpoints.judge)
    done = command.run(*LIMITED, task=HC, **WHOLE_PROMPTS)
    assert done.code == 3
    assert "usersum_movielens_hc/predict: no item has a value" in done.err
    assert {one["value"]["text"] for one in outcomes(command, "combine")} == {"1"}
    asked = outcomes(command, "predict")
    assert len(asked) == PEOPLE * 4 * 3
    assert {one["type"] for one in asked} == {"unreadable"}
    summary = done.summary(HC)
    assert summary["metrics"]["ifm"]["value"] == 1.0
    assert summary["metrics"]["unreadable"]["value"] == 1.0
    assert summary["metrics"]["qm"]["value"] is None
    segments = summary["stages"]["segment"]["items"]
    assert summary["counts"]["unreadable checks: fits_query"] == segments
