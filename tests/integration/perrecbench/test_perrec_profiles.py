"""PerRecBench on data without profiles: who makes them, for whom, and what without them."""

from __future__ import annotations

import pytest

from harness.testing import faults

NINE_USERS = 9
THINGS = 6


@pytest.fixture
def bare(tmp_path, perrecs, worlds):
    """Runs the command on data without profiles."""
    return perrecs(tmp_path, str(worlds(profiles=False).write(tmp_path / "world")))


def profiler(url: str) -> tuple[str, str]:
    return "--role", f"profiler=openai:base_url={url},model=p,revision=1"


def test_profiles_are_made_once_for_all_tasks_and_runs_and_shown(bare, serve, answers):
    candidate, writer = serve(answer=answers.true), serve(answer=answers.true)
    bare.url = candidate.url
    done = bare.run("perrec", *profiler(writer.url)).ok()
    assert set(bare.of(done, "ptc").values()) == {1.0}
    assert bare.by_stage(writer) == {"profile": THINGS * NINE_USERS}
    assert "profile" not in bare.by_stage(candidate)
    # Everybody has 22 ratings of their own and that of the thing; who rated it twice has one more.
    texts = {f"The profile made of {number} things" for number in (23, 24)}
    for body in candidate.requests:
        prompt = body["messages"][-1]["content"]
        shown = [text for text in texts if f"## User Profile\n{text}\n" in prompt]
        assert shown, prompt
    other = bare.run("perrec_medium_listwise", *profiler(writer.url), "--set", "k=2").ok()
    assert max(writer.counts.values()) == 1
    stages = other.json["summaries"][0]["stages"]
    assert stages["profile"]["roles"]["profiler"]["from_store"] == THINGS * 3


def test_a_group_with_a_user_without_a_profile_is_no_group_to_rank(bare, serve, answers):
    def broken(asked):
        prompt = asked.body["messages"][-1]["content"]
        return faults.status(400) if "shelf of u3a" in prompt else None

    candidate = serve(answer=answers.true)
    writer = serve(answer=answers.true, faults=broken)
    bare.url = candidate.url
    done = bare.run("perrec_easy", *profiler(writer.url), "--max_failures", "calls=1").ok()
    for summary in done.json["summaries"]:
        assert summary["metrics"]["ptc"]["missing"] == {"profile/no_profile": 1}
        assert summary["counts"]["profiles that could not be made"] == 1
    asked = {title for body in candidate.requests for title in [answers.question(body).title]}
    rated = [body for body in candidate.requests if answers.question(body).stage == "rate"]
    assert len(rated) == 2 * THINGS - 1
    assert len(asked) == THINGS
    assert bare.by_stage(candidate)["rank"] == THINGS - 1
    assert bare.by_stage(candidate)["compare"] == 2 * (THINGS - 1)
