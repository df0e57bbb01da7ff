"""What a run prints at its end, what `--verbose` adds, and where `harness show` has it."""

import statistics

import pytest

FROM_RULES = ("--model", "baseline", "--data", "sample", "--limit", "4")


@pytest.fixture(scope="module")
def ended(tmp_path_factory, harnesses):
    """A finished run of a group and what it printed, with --verbose."""
    harness = harnesses(tmp_path_factory.mktemp("results"))
    return harness, harness.here("--tasks", "perrec_hard", *FROM_RULES, "--verbose").ok()


def test_verbose_and_show_print_the_same_and_everything_and_have_the_means_in_their_json(ended):
    harness, done = ended
    (first, *_) = harness.folders
    shown = harness.here("show", first.name).ok().out
    assert shown.startswith(f"run {first.relative_to(harness.folder)}: baseline, begun ")
    assert shown.endswith(
        "\nmore: --metrics, --costs, --samples, --failures, --provenance, --sample ID\n"
    )
    head = "\n".join(shown.splitlines()[:2]) + "\n"
    metrics, costs = (
        harness.here("show", first.name, chapter).ok().out.removeprefix(head)
        for chapter in ("--metrics", "--costs")
    )
    short = "\n".join(shown.splitlines()[2:-1])
    assert done.out == f"{short}\n\n{metrics}{costs}"
    assert "ptc Kendall's tau of the predicted and the true ranking" in " ".join(done.out.split())
    assert "ptc, unreadable groups counted 0" in done.out  # the analysis of the group
    assert "perrec_hard_pointwise/rate, candidate" in done.out
    alone = harness.here("show", first.name, "--task", "perrec_hard_pairwise").ok().out
    assert "perrec_hard_pairwise/compare" in alone
    assert "more: " not in alone and "perrec_hard_listwise" not in alone
    assert "ptc, unreadable groups counted 0" not in alone
    document = harness.here("show", first.name, "--json").ok().json
    (mean,) = document["means"]
    values = [summary["metrics"]["ptc"]["value"] for summary in document["summaries"]]
    assert mean["value"] == pytest.approx(statistics.fmean(values))
    assert mean["interval"][0] < mean["value"] < mean["interval"][1]
    run = harness.here("--tasks", "perrec_hard", *FROM_RULES, "--json").ok().json
    assert run["means"] == [mean]


def test_a_run_that_stops_says_what_is_not_finished(harness):
    options = ("--max_calls", "20", "--reuse", "run")
    done = harness.here("--tasks", "perrec_hard", *FROM_RULES, *options)
    assert done.code != 0
    assert "0 of 1 stages done" in done.out
    assert "harness: " in done.err


def test_many_notes_on_the_data_are_a_number_before_a_run_and_whole_after_it(harness):
    words = ("--model", "baseline", "--judge", "lexical", "--data", "sample", "--limit", "2")
    few = harness.here("--tasks", "usersum_movielens", *words).ok()
    assert "usersum_movielens: users with fewer than 50 activities, left out: 4\n" in few.err
    many = harness.here("--tasks", "usersum_movielens,behaviour_movies", *words, "--verbose").ok()
    said = [line for line in many.err.splitlines() if "notes on the data" in line]
    assert said == ["19 notes on the data: `harness show latest --metrics` prints them"]
    assert "left out: 4" not in many.err
    assert "users with fewer than 50 activities, left out: 4" in many.out
