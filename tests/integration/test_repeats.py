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
NAMES = ("interests", "interests@2", "interests@3")


def calls(folder: Path, task: str) -> list[dict]:
    lines = (folder / task / "1-name.jsonl").read_text().splitlines()
    return [call for line in lines for call in json.loads(line)["calls"]]


def test_each_repeat_is_asked_once_with_seeds_and_keys_of_its_own_and_replayed(serve, tmp_path):
    number = count()
    server = serve(answer=lambda body: json.dumps([{"interest": f"n{next(number)}", "items": [1]}]))

    def ask(**settings):
        args = {"base_url": server.url, "model": "m", "revision": "r1"}
        return package.evaluate("interests", **{
            "model": "openai", "model_args": args, "judge": "lexical", "data": "sample",
            "limit": PEOPLE, "gen_kwargs": WARM, "output_path": tmp_path / "runs", **settings,
        })  # fmt: skip

    first = ask()
    assert server.count == PEOPLE
    done = ask(num_repeats=3)
    assert [(each.task, each.repeat) for each in done.summaries] == [
        (NAMES[0], 1), (NAMES[1], 2), (NAMES[2], 3),
    ]  # fmt: skip
    # Only those that are new are paid for.
    assert server.count == 3 * PEOPLE
    told = {name: calls(done.folder, name) for name in NAMES}
    sources = [{call.get("source", "model") for call in told[name]} for name in NAMES]
    assert sources == [{"store"}, {"model"}, {"model"}]
    keys = (
        {call["key"] for call in found} for found in (calls(first.folder, NAMES[0]), told[NAMES[0]])
    )
    assert next(keys) == next(keys)
    assert sorted(Counter(body["seed"] for body in server.requests).values()) == [PEOPLE] * 3
    repeats = [{call.get("repeat", 0) for call in told[name]} for name in NAMES]
    assert repeats == [{0}, {1_000_000}, {2_000_000}]
    assert len({call["text"] for found in told.values() for call in found}) == 3 * PEOPLE

    again = ask(num_repeats=3, model="replay", model_args={"run": str(done.folder)})
    assert server.count == 3 * PEOPLE
    for name in NAMES:
        recorded = sorted(call["text"] for call in told[name])
        assert sorted(call["text"] for call in calls(again.folder, name)) == recorded


def test_the_command_shows_what_repeats_come_to(harness, serve):
    serve(harness)
    done = harness.run("--limit", "4", "--num_repeats", "2").ok()
    assert "asked at temperature 0, so that repeats differ only" in done.err
    (over,) = done.json["repeats"]
    assert (over["task"], over["repeats"]) == ("interests", ["interests", "interests@2"])
    assert over["metrics"]["support"]["n"] == 2
    folder = done.json["folder"]
    shown = harness.here("show", folder, "--metrics")
    assert "over repeats" in shown.out
    scored = harness.here("score", folder, "--json", "--set", "interests.min_support=1").ok()
    (run,) = scored.json["runs"]
    for summary in run["summaries"]:
        assert "min_support 3 → 1" in " ".join(summary["not_comparable_because"]), summary["task"]
    assert run["repeats"][0]["metrics"]["support"]["n"] == 2
    warm = ("--limit", "1", "--num_repeats", "2", "--gen_kwargs", "temperature=0.7")
    assert "temperature 0" not in harness.run(*warm).ok().err


def test_an_analysis_takes_one_repeat_and_says_so(harness, recorded):
    words = ("analyse", "forest", str(recorded / "interests"), "--json")
    usual = harness.here(*words).ok()
    assert [one["task"] for one in usual.json["tasks"]] == ["interests"]
    note = "interests: repeat 1 of 2 (baseline); --task chooses another"
    assert note in usual.json["report"]["notes"]
    other = harness.here(*words, "--task", "interests@2").ok()
    assert [one["task"] for one in other.json["tasks"]] == ["interests@2"]
