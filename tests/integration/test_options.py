"""What the options of a run do at the server, in its records and in its results."""

from __future__ import annotations

import json
from collections import Counter

PEOPLE = 40
CANDIDATE, JUDGE = "candidate-model", "judge-model"


def bodies(server, model: str) -> list[dict]:
    return [body for body in server.requests if body["model"] == model]


def pinned(server) -> tuple[str, ...]:
    """Options under which answers of one run may serve another."""
    return (
        "--model_args", f"base_url={server.url},model={CANDIDATE},revision=1",
        "--judge", f"openai:base_url={server.url},model={JUDGE},revision=1",
    )  # fmt: skip


def stage_keys(harness, folder: str) -> dict[str, str]:
    (file,) = (harness.folder / folder).glob("*/manifest.json")
    stages = json.loads(file.read_text())["tasks"]["interests"]["stages"]
    return {stage["name"]: stage["key"] for stage in stages}


def test_only_an_option_that_prompts_use_asks_anything_new(harness, serve):
    server = serve(harness)

    def run(place, *more):
        return harness.run(*pinned(server), "--limit", "6", "--output_path", place, *more).ok()

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


def test_sampling_given_on_the_command_line_is_the_candidates_alone(harness, serve):
    server = serve(harness)
    sampling = ("--gen_kwargs", "temperature=0.5,max_tokens=77", "--seed", "9")
    done = harness.run(*sampling, "--limit", "6").ok()
    candidate, judge = bodies(server, CANDIDATE), bodies(server, JUDGE)
    assert len(candidate) == 6 and len(judge) > 0
    assert {(one["temperature"], one["max_tokens"]) for one in candidate} == {(0.5, 77)}
    assert {(one["temperature"], one["max_tokens"]) for one in judge} == {(0.0, 256)}
    assert all("seed" in one for one in candidate) and not any("seed" in one for one in judge)
    assert "changed by --gen_kwargs" in done.summary()["not_comparable_because"]


def test_one_engine_at_a_time_asks_the_candidate_everything_first(harness, serve):
    server = serve(harness, latency=0.01)
    both = "interests,interests_short"
    harness.run("--one-engine-at-a-time", "--no_store", "--concurrency", "4", tasks=both).ok()
    order = [body["model"] for body in server.requests]
    candidate = order.count(CANDIDATE)
    assert candidate == 2 * PEOPLE
    assert set(order[:candidate]) == {CANDIDATE}
    assert set(order[candidate:]) == {JUDGE}


def test_else_the_judge_begins_while_the_candidate_is_still_asked(harness, serve):
    server = serve(harness, latency=0.05)
    both = "interests,interests_short"
    harness.run("--no_store", "--concurrency", "4", tasks=both).ok()
    order = [body["model"] for body in server.requests]
    assert JUDGE in order[: order.count(CANDIDATE)]


def test_a_run_is_resumed_by_the_command_that_began_it_alone(harness, serve):
    server = serve(harness)
    assert harness.run("--max_calls", "10", "--concurrency", "2").code == 1
    (folder,) = harness.folders
    asked = server.count

    for changed, found, expected in (
        (("--limit", "5"), "limit: 5", "limit: None"),
        (("--seed", "3"), "seed: 3", "seed: 0"),
    ):
        refused = harness.run("--resume", f"runs/{folder.name}", *changed)
        assert refused.code == 2
        assert "this command's settings differ from the run's" in refused.err
        assert f"found:    {found}\n" in refused.err
        assert f"expected: {expected}\n" in refused.err
    assert server.count == asked

    done = harness.run("--resume", f"runs/{folder.name}", "--concurrency", "3").ok()
    assert harness.folders == [folder]
    assert all(count == 1 for count in server.counts.values())
    assert done.summary()["metrics"]["support"]["n"] == PEOPLE


def test_the_seed_reaches_the_server_where_chance_plays_a_part(harness, serve):
    server = serve(harness)
    sent = []
    for seed, folder in (("1", "a"), ("1", "b"), ("2", "c")):
        server.asked.clear()
        warm = ("--gen_kwargs", "temperature=0.7", "--judge", "lexical")
        harness.run("--seed", seed, *warm, "--output_path", folder).ok()
        sent.append(bodies(server, CANDIDATE))
    one, same, other = sent
    assert len(one) == len(same) == len(other) == PEOPLE
    assert Counter(map(repr, one)) == Counter(map(repr, same))
    assert {body["seed"] for body in one}.isdisjoint(body["seed"] for body in other)
    # Nothing else differs: the prompts of the two seeds are the same.
    assert Counter(repr(body["messages"]) for body in one) == Counter(
        repr(body["messages"]) for body in other
    )


def test_the_seed_chooses_who_is_asked_under_a_limit(harness, serve):
    server = serve(harness)
    asked = []
    for seed in ("1", "2"):
        server.asked.clear()
        assert harness.run("--seed", seed, "--limit", "5", "--output_path", seed).code == 0
        asked.append({repr(body["messages"]) for body in bodies(server, CANDIDATE)})
    assert [len(each) for each in asked] == [5, 5]
    assert asked[0] != asked[1]
