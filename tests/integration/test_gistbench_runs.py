"""What a person does with GISTBench, run after run: who is asked what, and who is not."""

from __future__ import annotations

import json
from collections import Counter

import pytest

TASK = "gist_synthetic"
STRICTER = ("--set", "gistbench.verification.min_explicit_positive=3")
JUDGES = ("verify", "taxonomy", "overlap", "specificity")

LOADED = """
    import os

    from harness import hookimpl
    from harness.contracts.model import Identity, Model, Reply


    class Careful(Model):
        identity = Identity(kind="careful", name="careful")
        concurrency = 4

        async def open(self):
            with open(os.environ["LOADED"], "a") as file:
                print("loaded", file=file)

        async def ask(self, request):
            lines = request.messages[1].content.splitlines()
            liked = [line[1 : line.index("]")] for line in lines if "positive) Clip" in line]
            cited = ", ".join(liked)
            return Reply(text='[{"interest": "Trains clips", "evidence": [%s]}]' % cited)


    @hookimpl
    def register_models(register):
        register("careful", lambda settings: Careful())
"""


@pytest.fixture
def served(gist, serve):
    """A server that knows the topics, and the harness that asks it."""
    return serve(gist)


def test_a_baseline_and_a_lexical_judge_need_nothing_but_the_install(gist):
    done = gist.here(
        "--model", "baseline", "--judge", "lexical", "--tasks", TASK, "--data", "sample",
        "--limit", "20", "--json",
    ).ok()  # fmt: skip
    summary = done.summary(TASK)
    assert summary["units"] == 20
    assert {metric["n"] for metric in summary["metrics"].values()} == {20}
    # Recall of what the run itself verified says nothing: one interest a category makes it whole.
    for name in ("ig_f1", "is", "ig_p", "mean_ig_f1", "mean_is", "mean_ig_p"):
        assert 0.0 < summary["metrics"][name]["value"] < 1.0, name


def test_another_threshold_asks_the_candidate_again_and_judges_only_what_is_new(gist, served):
    gist.run("--output_path", "usual").ok()
    assert gist.by_stage(served)["predict"] == gist.WINDOWS
    before = Counter(one.digest for one in served.asked)
    served.asked.clear()

    strict = gist.run("--output_path", "strict", *STRICTER).ok()
    asked = gist.by_stage(served)
    assert asked["predict"] == gist.WINDOWS
    assert "taxonomy" not in asked
    assert strict.summary(TASK)["counts"]["distinct interests mapped before this run"] == 4
    again = Counter(one.digest for one in served.asked)
    assert before.keys().isdisjoint(again)
    assert set(again.values()) == {1}
    # New are the interests that cite what was passed over as well.
    old, new = (claims(gist, folder) for folder in ("usual", "strict"))
    assert len(old) == len(new)
    assert 0 < asked["verify"] == len(new - old) < len(new)


def claims(gist, folder: str) -> set[tuple[str, tuple[str, ...]]]:
    """Interests with the texts that they cite, as the journal of a run holds them."""
    (journal,) = (gist.folder / folder).glob(f"*/{TASK}/?-verify.jsonl")
    items = [json.loads(line)["item"] for line in journal.read_text().splitlines()]
    return {(item["interest"], tuple(text for _, text, _ in item["evidence"])) for item in items}


def test_stored_verdicts_are_scored_under_another_threshold_and_the_run_stays_as_it_is(
    gist, served
):
    usual = gist.run().ok()
    asked, kept = served.count, gist.files(gist.folder / "runs")
    for arguments in (
        gist.arguments("--rescore_only", *STRICTER),
        [*gist.arguments()[:3], "score", f"runs/{gist.folders[0].name}", *STRICTER, "--json"],
    ):
        done = gist.command(arguments).ok()
        (run,) = done.json["runs"]
        (summary,) = run["summaries"]
        before = usual.summary(TASK)["metrics"]["mean_ig_p"]["value"]
        after = summary["metrics"]["mean_ig_p"]["value"]
        # The first model has an eye for four topics. Of what it names of each of eight people
        # 3 of 4, 2 of 3, 2 of 2, 1 of 1, 1 of 1, 2 of 2, 2 of 3 and 3 of 4 are proven. The second
        # topic of a person, which has two likes and nothing else, is so no longer.
        assert before == pytest.approx((0.75 + 2 / 3 + 4 + 2 / 3 + 0.75) / 8)
        assert after == pytest.approx((0.5 + 1 / 3 + 0.5 + 1 + 1 + 1 + 2 / 3 + 0.5) / 8)
        assert "changed by --set" in str(summary["not_comparable_because"])
    assert served.count == asked
    assert gist.files(gist.folder / "runs") == kept


def test_with_another_judge_the_candidate_is_not_asked(gist, served):
    gist.run().ok()
    served.asked.clear()
    other = gist.run(judge="another").ok()
    asked = gist.by_stage(served)
    assert "predict" not in asked
    assert asked.keys() == set(JUDGES)
    assert {one["model"] for one in served.requests} == {"another"}
    assert other.summary(TASK)["stages"]["predict"]["roles"]["candidate"]["from_store"] == 16


def test_with_another_judge_the_candidate_is_not_even_loaded(gist, served, install, monkeypatch):
    install(LOADED)
    loaded = gist.folder / "loaded"
    monkeypatch.setenv("LOADED", str(loaded))
    gist.run("--model", "careful", "--model_args", "").ok()
    assert loaded.read_text() == "loaded\n"
    loaded.unlink()
    other = gist.run("--model", "careful", "--model_args", "", judge="another").ok()
    assert not loaded.exists()
    assert other.summary(TASK)["units"] == gist.PEOPLE


def test_each_role_asks_the_server_that_it_is_bound_to(gist, serve):
    candidate = serve(gist)
    servers = {role: serve(answer=gist.answer) for role in
               ("judge", "taxonomist", "overlap_judge", "retrieval_judge")}  # fmt: skip
    spec = {role: f"openai:base_url={one.url},model={role}" for role, one in servers.items()}
    done = gist.run(
        "--judge", spec["judge"],
        *(word for role in list(spec)[1:] for word in ("--role", f"{role}={spec[role]}")),
    ).ok()  # fmt: skip
    assert gist.by_stage(candidate).keys() == {"predict"}
    for server, stage in zip(servers.values(), JUDGES, strict=True):
        assert gist.by_stage(server).keys() == {stage}
    roles = done.summary(TASK)["roles"]
    assert roles == {"candidate": "alpha@1"} | {role: role for role in servers}


@pytest.mark.parametrize("role", ["judge", "taxonomist", "overlap_judge", "retrieval_judge"])
def test_a_candidate_may_not_judge_itself(gist, served, role):
    itself = f"openai:base_url={served.url},model=alpha,revision=1"
    own = ("--judge", itself) if role == "judge" else ("--role", f"{role}={itself}")
    done = gist.run(*own)
    assert done.code == 2
    assert role in done.err and "alpha" in done.err
    assert served.count == 0


def test_a_dry_run_knows_the_windows_exactly_and_asks_nobody(gist, served):
    done = gist.run("--dry_run").ok()
    stages = {one["stage"]: one for one in done.json["stages"]}
    assert list(stages) == ["predict", *JUDGES]
    predict = stages["predict"]
    assert (predict["items"], predict["exact"]) == (gist.WINDOWS, True)
    assert (predict["least_calls"], predict["most_calls"]) == (gist.WINDOWS, gist.WINDOWS)
    assert not any(stages[name]["exact"] for name in JUDGES)
    # The baseline names what everybody shares here, so that there is no overlap to ask about.
    estimated = {name: stages[name]["most_calls"] for name in JUDGES if name != "overlap"}
    assert min(estimated.values()) > 0
    assert any("calls per user" in one for one in done.json["assumptions"])
    assert served.count == 0
    arguments = [one for one in gist.arguments("--dry_run") if one != "--json"]
    shown = gist.command(arguments).ok()
    assert "Name the interests of this user" in shown.out
    assert "calls per user" in " ".join(shown.out.split())


def test_synthetic_users_are_made_of_a_log_and_are_data_like_any_other(gist):
    log = clustered(gist)
    made = gist.here(
        "data", "synthesize", "--from", str(log), "--out", "made", "--json",
        "--clusters_column", "cluster", "--clusters_together", "3", "--least_people", "2",
        "--cohorts", "4", "--days", "30", "--time_unit", "seconds",
    ).ok()  # fmt: skip
    assert made.json["report"]["sheets"]
    ran = gist.here(
        "--model", "baseline", "--judge", "lexical", "--tasks", TASK, "--data", "made",
        "--set", "min_engagements=1", "--json",
    ).ok()  # fmt: skip
    assert ran.summary(TASK)["units"] >= 2
    told = gist.here("data", "describe", "--data", "made", "--json", "--plot", "held.svg").ok()
    assert told.json["drawn"] and (gist.folder / "held.svg").exists()
    assert gist.here("data", "describe", "--data", str(gist.data)).code == 0


def clustered(gist):
    """The log with a column that names the cluster of each clip."""
    header, *rows = gist.data.read_text().splitlines()
    log = gist.folder / "clustered.csv"
    lines = [f"{row},{row.split(',')[1].split('-')[0]}" for row in rows]
    log.write_text("\n".join([f"{header},cluster", *lines]) + "\n")
    return log
