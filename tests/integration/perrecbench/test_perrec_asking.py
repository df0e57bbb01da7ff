"""The three ways of asking against models that know the truth, its contrary, or nothing at all."""

from __future__ import annotations

import shutil
from collections import Counter

import pytest

LEVELS = ("easy", "medium", "hard")
WAYS = ("pointwise", "pairwise", "listwise")
NINE = [f"perrec_{level}_{way}" for level in LEVELS for way in WAYS]
THINGS = 6


def every(value: float) -> dict[str, float]:
    return dict.fromkeys(NINE, pytest.approx(value))


def test_who_knows_the_truth_has_tau_1_in_all_nine_tasks(true):
    perrec, done, _ = true
    for name in ("ptc", "ptc_published", "exact"):
        assert perrec.of(done, name) == every(1.0), name
    assert [one["units"] for one in done.json["summaries"]] == [THINGS] * 9
    pointwise = [one for one in done.json["summaries"] if one["task"].endswith("pointwise")]
    assert [one["metrics"]["mae"]["value"] for one in pointwise] == [0.0] * 3
    pairwise = [one for one in done.json["summaries"] if one["task"].endswith("pairwise")]
    for one in pairwise:
        values = {name: metric["value"] for name, metric in one["metrics"].items()}
        assert values["first_position"] == 0.5
        assert values["inconsistent"] == values["undecided"] == 0.0


def test_each_user_is_rated_each_group_ranked_and_each_pair_compared_in_both_orders(true, answers):
    _, _, server = true
    asked = Counter()
    pairs = Counter()
    for body in server.requests:
        question = answers.question(body)
        asked[question.stage, len(question.users)] += 1
        if question.stage == "compare":
            pairs[question.title, frozenset(question.users)] += 1
    assert asked["rate", 1] == THINGS * (2 + 3 + 4)
    assert [asked["rank", members] for members in (2, 3, 4)] == [THINGS] * 3
    assert set(pairs.values()) == {2}
    # At most 1, 3 and 6 pairs in groups of 2, 3 and 4; at least those of neighbours.
    assert THINGS * (1 + 2 + 3) <= len(pairs) <= THINGS * (1 + 3 + 6)
    assert {body["temperature"] for body in server.requests} == {0.1}
    lengths = {answers.question(body).stage: body["max_tokens"] for body in server.requests}
    assert lengths == {"rate": 800, "compare": 512, "rank": 800}
    assert max(server.counts.values()) == 1


def test_profiles_are_made_once_for_all_tasks_and_runs_and_shown(
    tmp_path, perrecs, small, serve, answers
):
    bare = perrecs(tmp_path, str(shutil.copytree(small, tmp_path / "world")))
    (tmp_path / "world/userid2profile.json").unlink()
    candidate, writer = serve(answer=answers.true), serve(answer=answers.true)
    bare.url = candidate.url
    profiler = "--role", f"profiler=openai:base_url={writer.url},model=p,revision=1"
    done = bare.run("perrec", *profiler).ok()
    assert set(bare.of(done, "ptc").values()) == {1.0}
    asked = Counter(answers.question(body).stage for body in writer.requests)
    assert asked == {"profile": THINGS * 9}  # nine users are asked about each thing
    # Everybody has 22 ratings of their own and that of the thing; who rated it twice has one more.
    texts = {f"The profile made of {number} things" for number in (23, 24)}
    for body in candidate.requests:
        prompt = body["messages"][-1]["content"]
        assert any(f"## User Profile\n{text}\n" in prompt for text in texts), prompt
    other = bare.run("perrec_medium_listwise", *profiler, "--set", "k=2").ok()
    assert max(writer.counts.values()) == 1
    stages = other.json["summaries"][0]["stages"]
    assert stages["profile"]["roles"]["profiler"]["from_store"] == THINGS * 3


def test_show_prints_the_analysis_of_the_nine_tasks(true):
    perrec, done, _ = true
    run = str(perrec.folder(done))
    shown = " ".join(perrec.harness.here("show", run).ok().out.split())
    assert " ".join(perrec.harness.here("analyse", "perrec", run).ok().out.split()) in shown
    assert "Only ptc_published is comparable to Table 1" in shown
    assert "of perrec_now, _plain, _dot or _older: without --limit, sample or strict" in shown
