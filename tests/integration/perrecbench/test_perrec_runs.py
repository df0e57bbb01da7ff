"""The commands of PerRecBench that people give: the whole of it, a look ahead, a look back."""

from __future__ import annotations

import json

import pytest

LEVELS = ("easy", "medium", "hard")
WAYS = ("pointwise", "pairwise", "listwise")
BASELINES = (
    "random", "user_average", "item_average", "both_averages", "bm25_ratings",
    "higher_average_first", "lower_average_first",
)  # fmt: skip
STAGES = {"pointwise": "rate", "pairwise": "compare", "listwise": "rank"}
NINE = [f"{level} {way}" for level in LEVELS for way in ("point", "pair", "list")]


def test_two_benchmarks_run_in_one_command(perrec, serve, answers):
    def answer(body):
        if "Name the interests of this user" in body["messages"][-1]["content"]:
            return json.dumps([{"interest": "Hiking", "evidence": [1, 2, 3]}])
        return answers.true(body)

    perrec.url, perrec.data = serve(answer=answer).url, "sample"
    done = perrec.run("gist_synthetic,perrec_hard", "--judge", "lexical", "--limit", "5").ok()
    found = {one["task"]: one for one in done.json["summaries"]}
    assert list(found) == ["gist_synthetic", *(f"perrec_hard_{way}" for way in WAYS)]
    assert [one["units"] for one in found.values()] == [5] * 4
    assert found["gist_synthetic"]["metrics"]["ig_p"]["n"] == 5
    for way in WAYS:
        summary = found[f"perrec_hard_{way}"]
        assert summary["metrics"]["ptc"]["n"] == 5
        assert "bundled sample data" in summary["not_comparable_because"]
    assert "judge" not in found["perrec_hard_pairwise"]["roles"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory, perrecs, worlds):
    """The nine tasks on data of its own: what a run and `show` print of them, the analysis alone,
    and its report."""
    world = worlds(things=30, held_out=0).write(tmp_path_factory.mktemp("large"))
    perrec = perrecs(tmp_path_factory.mktemp("whole"), str(world))
    done = perrec.tool("--model", "baseline", "--tasks", "perrec", "--data", perrec.data).ok()
    (run,) = perrec.harness.folders
    shown = perrec.tool("show", str(run)).ok()
    printed, parts = (perrec.tool("analyse", "perrec", str(run), *as_) for as_ in ((), ("--json",)))
    assert printed.code == parts.code == 0, printed.err
    return done.out, shown.out, printed.out, parts.json["report"]


def rows(report, title: str) -> dict[str, list]:
    """The rows of a sheet by what they are called."""
    (sheet,) = (one for one in report["sheets"] if one["title"].startswith(title))
    assert sheet["columns"][1:10] == NINE
    return {row[0]: row[1:] for row in sheet["rows"]}


def test_a_run_of_the_nine_tasks_ends_in_the_short_table_and_show_prints_their_analysis(whole):
    out, shown, analysis, _ = whole
    assert "perrec (mean of 9)" in out and "Only ptc_published" not in out
    told = " ".join(shown.split())
    assert " ".join(analysis.split()) in told
    assert "Only ptc_published is comparable to Table 1" in told
    assert "of perrec_now, _plain, _dot or _older: without --limit, sample or strict" in told
    assert "no published rows beside" not in told


def test_groups_about_invented_items_stand_without_published_rows(whole):
    *_, report = whole
    found = rows(report, "ptc_published")
    (name,) = found
    assert found[name][9] == pytest.approx(sum(found[name][:9]) / 9)
    (sheet,) = (one for one in report["sheets"] if one["title"].startswith("ptc_published"))
    (why,) = (note for note in sheet["notes"] if note.startswith("no published rows"))
    assert "not the published data: 'item' in table 'groups' has the digest" in why
    assert ", not 3ab63ca83ff7…" in why


def test_the_rankings_that_need_no_model_stand_beside_the_cells(whole):
    *_, report = whole
    found = rows(report, "Baselines without a model")
    assert list(found) == list(BASELINES)
    assert set(found["user_average"]) == {0.0}
    higher, lower = found["higher_average_first"], found["lower_average_first"]
    assert higher[:10] == pytest.approx([-value for value in lower[:10]])
    # Who rates lower comes first where the same is expected of all.
    assert found["item_average"][:10] == lower[:10]


def test_a_dry_run_knows_how_often_each_way_asks_and_asks_nobody(true):
    perrec, done, server = true
    before = server.count
    dry = perrec.run("perrec", "--dry_run").ok()
    assert server.count == before
    expected = {one["task"]: one for one in dry.json["stages"]}
    assert len(expected) == 9
    for level in LEVELS:
        for way, stage in STAGES.items():
            task = f"perrec_{level}_{way}"
            calls = sum(len(one["calls"]) for one in perrec.records(done, task, stage))
            told = expected[task]
            assert told["stage"] == stage
            if way == "pairwise":
                assert told["least_calls"] <= calls <= told["most_calls"], task
            else:
                assert told["least_calls"] == told["most_calls"] == calls, task


def test_one_group_is_shown_whole(true):
    perrec, done, _ = true
    run = str(perrec.folder(done))
    shown = perrec.tool(
        "show", run, "--sample", "Kettle-3", "--task", "perrec_medium_pairwise"
    ).ok()
    assert "Kettle 3 for u3a u3b u3c" in shown.out
    assert "[User A]" in shown.out and "u3d is fond of kettles." in shown.out
    assert "Kettle 2 for" not in shown.out
    rated = perrec.tool("show", run, "--sample", "Kettle-3", "--task", "perrec_hard_pointwise")
    assert rated.out.count('{"predicted_rating": ') >= 4


def test_stored_records_are_scored_again_and_the_run_stays_as_it_is(true):
    perrec, done, server = true
    run = perrec.folder(done)
    before, asked = perrec.harness.files(run), server.count
    scored = perrec.tool("score", str(run), "--json").ok()
    (again,) = scored.json["runs"]
    found = {one["task"]: one["metrics"] for one in again["summaries"]}
    assert found == {one["task"]: one["metrics"] for one in done.json["summaries"]}
    # What decides which questions are asked cannot be changed afterwards.
    for changed in ("k=8", "samples=3", "repeated_users=passed", "comparing=all_pairs"):
        refused = perrec.tool("score", str(run), "--set", changed)
        assert refused.code == 2, changed
        assert changed.partition("=")[0] in refused.err
    assert perrec.harness.files(run) == before
    assert server.count == asked
