"""`--num_repeats`: everything asked several times, each time as a sample of its own."""

import json
from collections import Counter
from itertools import count
from pathlib import Path

import pytest

import harness as package

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


def test_what_was_recorded_is_replayed_repeat_by_repeat(ask, different):
    done = ask(num_repeats=2)
    again = ask(num_repeats=2, model="replay", model_args={"run": str(done.folder)})
    assert different.count == 2 * PEOPLE
    for name in ("interests", "interests@2"):
        told = [{call["text"] for call in calls(run.folder, name)} for run in (done, again)]
        assert told[0] == told[1]
        assert len(told[0]) == PEOPLE


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
    warm = ("--limit", "1", "--num_repeats", "2", "--gen_kwargs", "temperature=0.7")
    assert "temperature 0" not in harness.here(*harness.arguments(*warm)[3:]).ok().err


def test_an_analysis_takes_one_repeat_and_says_so(harness, recorded):
    words = ("analyse", "forest", str(recorded / "interests"), "--json")
    usual = harness.here(*words).ok()
    assert [one["task"] for one in usual.json["tasks"]] == ["interests"]
    note = "interests: repeat 1 of 2 (baseline); --task chooses another"
    assert note in usual.json["report"]["notes"]
    other = harness.here(*words, "--task", "interests@2").ok()
    assert [one["task"] for one in other.json["tasks"]] == ["interests@2"]
