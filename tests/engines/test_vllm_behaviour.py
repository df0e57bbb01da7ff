"""User behaviour prediction's prompts on a real engine, whose answers make no sense."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace

import pytest
from samples.behaviour import SAMPLE

from .conftest import FRUGAL, HERE

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("engine"), pytest.mark.timeout(2400)]

TASK = "behaviour_movies_a"
PROMPTS = 50
LIMITED = ("--limit", str(PROMPTS), "--set", "kept=20")
WHOLE_PROMPTS = {"enable_chunked_prefill": "false"}
"""vLLM for CPUs dies of a seed and a prompt that it reads in steps."""


def test_every_random_answer_is_a_ranking_or_has_a_cause(command):
    done = command.run(*LIMITED, task=TASK, **WHOLE_PROMPTS)
    assert done.code in (0, 3), done.err
    outcomes = [one["outcome"] for one in command.records("recommend")]
    assert len(outcomes) == PROMPTS
    assert {one["type"] for one in outcomes} <= {"done", "unreadable", "call_failed"}
    assert all(one["cause"] for one in outcomes if one["type"] != "done")
    metrics = done.summary(TASK)["metrics"]
    read = sum(one["type"] == "done" for one in outcomes)
    assert metrics["gap"]["n"] == read < PROMPTS
    assert sum(metrics["gap"]["missing"].values()) == PROMPTS - read
    assert metrics["gap_random"]["n"] == PROMPTS
    assert metrics["gap"]["counted_as_worst"] > 0


def test_all_films_in_one_order_are_about_as_good_as_chance(command, vllm_python):
    lines = (SAMPLE / "movies/movies.dat").read_text("iso-8859-1").splitlines()
    films = repr([line.split("::")[1] for line in lines])
    target = command.folder / "tiny-list"
    subprocess.run(
        [vllm_python, HERE / "tiny_model.py", target, "--says", films],
        env={**os.environ, **FRUGAL},
        check=True,
    )
    command.checkpoints = replace(command.checkpoints, candidate=target)
    done = command.run(*LIMITED, task=TASK, **WHOLE_PROMPTS)
    assert done.code == 0, done.err
    asked = [one["outcome"]["value"] for one in command.records("recommend")]
    assert len(asked) == PROMPTS
    assert {len(one["places"]) for one in asked} == {10}
    metrics = done.summary(TASK)["metrics"]
    gap, chance = metrics["gap"], metrics["gap_random"]
    assert gap["n"] == PROMPTS
    low, high = gap["interval"]
    assert low < chance["value"] < high
