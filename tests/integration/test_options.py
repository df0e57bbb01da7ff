"""What the options of a run do at the server, in its records and in its results."""

from __future__ import annotations

import json

PEOPLE = 40
CANDIDATE, JUDGE = "candidate-model", "judge-model"


def bodies(server, model: str) -> list[dict]:
    return [body for body in server.requests if body["model"] == model]


def stage_keys(harness, folder: str) -> dict[str, str]:
    (file,) = (harness.folder / folder).glob("*/manifest.json")
    stages = json.loads(file.read_text())["tasks"]["interests"]["stages"]
    return {stage["name"]: stage["key"] for stage in stages}


def test_only_an_option_that_prompts_use_asks_anything_new(harness, serve):
    server = serve(harness)

    def run(place, *more):
        return harness.run(*harness.pinned, "--limit", "6", "--output_path", place, *more).ok()

    usual = run("usual")
    asked = server.count
    changed = run("changed", "--set", "min_support=1")
    assert server.count == asked > 6
    # The judge accepts one or two of the cited items of every interest; three are wanted as a rule.
    before, after = usual.summary(), changed.summary()
    assert before["metrics"]["grounded"]["value"] == 0.0
    assert after["metrics"]["grounded"]["value"] == 1.0
    assert before["metrics"]["support"] == after["metrics"]["support"]
    assert "changed by --set" not in str(before["not_comparable_because"])
    assert "changed by --set: min_support=1" in after["not_comparable_because"]
    assert stage_keys(harness, "usual") == stage_keys(harness, "changed")

    run("fewer", "--set", "max_interests=1")
    assert stage_keys(harness, "usual")["name"] != stage_keys(harness, "fewer")["name"]
    assert len(bodies(server, CANDIDATE)) == 2 * 6


def test_one_engine_at_a_time_asks_the_candidate_everything_first(harness, serve):
    server = serve(harness, latency=0.01)
    both = "interests,interests_short"
    harness.run("--one-engine-at-a-time", "--no_store", "--concurrency", "4", tasks=both).ok()
    order = [body["model"] for body in server.requests]
    candidate = order.count(CANDIDATE)
    assert candidate == 2 * PEOPLE
    assert set(order[:candidate]) == {CANDIDATE}
    assert set(order[candidate:]) == {JUDGE}


def test_the_seed_chooses_who_is_asked_under_a_limit(harness, serve):
    server = serve(harness)
    asked = []
    for seed in ("1", "2"):
        server.asked.clear()
        assert harness.run("--seed", seed, "--limit", "5", "--output_path", seed).code == 0
        asked.append({repr(body["messages"]) for body in bodies(server, CANDIDATE)})
    assert [len(each) for each in asked] == [5, 5]
    assert asked[0] != asked[1]
