"""What a person does with GISTBench, run after run: who is asked what, and who is not."""

import json
from collections import Counter

import pytest

TASK = "gist_synthetic"
STRICTER = ("--set", "gistbench.verification.min_explicit_positive=3")
JUDGES = ("verify", "taxonomy", "overlap", "specificity")


@pytest.fixture
def served(gist, serve):
    """A server that knows the topics, and the harness that asks it."""
    return serve(gist)


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
    score = [*gist.arguments()[:3], "score", f"runs/{gist.folders[0].name}", *STRICTER, "--json"]
    (run,) = gist.command(score).ok().json["runs"]
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
