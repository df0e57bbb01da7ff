"""`--num_repeats`: everything asked several times, each time as a sample of its own."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

import harness as package
from harness.base.errors import UsageError

pytestmark = pytest.mark.usefixtures("own_cache")
WARM = {"temperature": 0.7}
PEOPLE = 4


@pytest.fixture
def different(serve):
    """A server that says something new to every request."""
    number = count()
    return serve(answer=lambda body: json.dumps([{"interest": f"n{next(number)}", "items": [1]}]))


@pytest.fixture
def ask(different, tmp_path):
    def ask(**settings):
        args = {"base_url": different.url, "model": "m", "revision": "r1"}
        given = {
            "model": "openai", "model_args": args, "judge": "lexical", "data": "sample",
            "limit": PEOPLE, "gen_kwargs": WARM, "output_path": tmp_path / "runs", **settings,
        }  # fmt: skip
        return package.evaluate("interests", **given)

    return ask


def calls(folder: Path, task: str) -> list[dict]:
    lines = (folder / task / "1-name.jsonl").read_text().splitlines()
    return [call for line in lines for call in json.loads(line)["calls"]]


def test_each_repeat_asks_with_seeds_and_keys_of_its_own(ask, different):
    done = ask(num_repeats=3)
    assert [each.task for each in done.summaries] == ["interests", "interests@2", "interests@3"]
    assert [each.repeat for each in done.summaries] == [1, 2, 3]
    assert different.count == 3 * PEOPLE
    seeds = Counter(body["seed"] for body in different.requests)
    assert sorted(seeds.values()) == [PEOPLE] * 3
    names = ("interests", "interests@2", "interests@3")
    repeats = [{call.get("repeat", 0) for call in calls(done.folder, name)} for name in names]
    assert repeats == [{0}, {1_000_000}, {2_000_000}]
    texts = {call["text"] for name in names for call in calls(done.folder, name)}
    assert len(texts) == 3 * PEOPLE


def test_more_repeats_pay_only_for_those_that_are_new(ask, different):
    first = ask()
    assert different.count == PEOPLE
    more = ask(num_repeats=3)
    assert different.count == 3 * PEOPLE
    assert {call["source"] for call in calls(more.folder, "interests")} == {"store"}
    assert {each["key"] for each in calls(first.folder, "interests")} == {
        each["key"] for each in calls(more.folder, "interests")
    }
    assert {call.get("source", "model") for call in calls(more.folder, "interests@2")} == {"model"}


def test_a_run_that_stopped_goes_on_in_its_repeats(ask, different):
    with pytest.raises(package.HarnessError, match="budget"):
        ask(num_repeats=2, max_calls=6)
    done = ask(num_repeats=2)
    assert done.status == "done"
    assert different.count == 2 * PEOPLE
    assert len(list(done.folder.parent.iterdir())) == 1


def test_what_was_recorded_is_replayed_repeat_by_repeat(ask, different):
    done = ask(num_repeats=2)
    again = ask(num_repeats=2, model="replay", model_args={"run": str(done.folder)})
    assert different.count == 2 * PEOPLE
    for name in ("interests", "interests@2"):
        told = [{call["text"] for call in calls(run.folder, name)} for run in (done, again)]
        assert told[0] == told[1]
        assert len(told[0]) == PEOPLE


def test_repeats_below_one_mean_nothing():
    with pytest.raises(UsageError, match="--num_repeats must be at least 1"):
        package.evaluate("interests", model="baseline", num_repeats=0)


def test_the_command_shows_what_repeats_come_to(harness, serve):
    serve(harness)
    done = harness.here(*harness.arguments("--limit", "4", "--num_repeats", "2")[3:]).ok()
    assert "asked at temperature 0, so that repeats differ only" in done.err
    (over,) = done.json["repeats"]
    assert (over["task"], over["repeats"]) == ("interests", ["interests", "interests@2"])
    assert over["metrics"]["support"]["n"] == 2
    folder = done.json["folder"]
    shown = harness.here("show", folder)
    assert "over repeats" in shown.out
    scored = harness.here("score", folder, "--json", "--set", "interests.min_support=1").ok()
    (run,) = scored.json["runs"]
    for summary in run["summaries"]:
        assert "min_support 3 → 1" in " ".join(summary["not_comparable_because"]), summary["task"]
    assert run["repeats"][0]["metrics"]["support"]["n"] == 2


def test_samples_are_no_repeats_of_the_same(harness, serve):
    serve(harness)
    warm = ("--limit", "4", "--num_repeats", "2", "--gen_kwargs", "temperature=0.7")
    done = harness.here(*harness.arguments(*warm)[3:]).ok()
    assert "temperature 0" not in done.err


def test_stored_repeats_are_scored_again_together(harness, serve):
    server = serve(harness)
    command = harness.arguments("--limit", "4", "--num_repeats", "2")[3:]
    assert harness.here(*command).code == 0
    asked = server.count
    again = harness.here(*command, "--rescore_only", "--set", "min_support=1").ok()
    assert [each["task"] for each in again.json["runs"][0]["summaries"]] == [
        "interests", "interests@2",
    ]  # fmt: skip
    assert server.count == asked
    plain = [word for word in command if word != "--json"]
    said = harness.here(*plain, "--rescore_only", "--set", "min_support=1").ok().out
    assert "interests ×2  support ↑" in said


def test_a_dry_run_counts_every_repeat_and_shows_prompts_once(harness):
    words = (
        "--model", "baseline", "--judge", "lexical", "--tasks", "interests", "--data", "sample",
        "--dry_run", "--num_repeats", "2",
    )  # fmt: skip
    shown = harness.here(*words)
    assert shown.out.count("interests, name: candidate (baseline)") == 1
    assert "interests@2, name: candidate (baseline)" not in shown.out
    told = {one["task"]: one for one in harness.here(*words, "--json").json["stages"]}
    assert told["interests"]["roles"] == told["interests@2"]["roles"]


def test_an_analysis_takes_one_repeat_and_says_so(harness):
    ran = harness.here(
        "--model", "baseline", "--judge", "lexical", "--tasks", "gist_synthetic",
        "--data", "sample", "--limit", "2", "--num_repeats", "2", "--json",
    ).ok()  # fmt: skip
    folder = ran.json["folder"]
    usual = harness.here("analyse", "gist-scores", folder, "--json").ok()
    assert [one["task"] for one in usual.json["tasks"]] == ["gist_synthetic"]
    assert (
        "gist_synthetic: repeat 1 of 2 (baseline); --task chooses another"
        in (usual.json["report"]["notes"])
    )
    other = harness.here("analyse", "gist-scores", folder, "--json", "--task", "gist_synthetic@2")
    assert [one["task"] for one in other.json["tasks"]] == ["gist_synthetic@2"]
