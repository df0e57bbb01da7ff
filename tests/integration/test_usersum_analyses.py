"""Table 4 and the other analyses of UserSumBench, from a run over the sample to raters' files."""

import csv

import pytest
from samples.usersumbench import PLANT, write

BASELINE = ("--model", "baseline")
CONTEXTS = ("usersum_movielens", "usersum_movielens_none", "usersum_movielens_other")


@pytest.fixture(scope="module")
def ended(tmp_path_factory, harnesses):
    """A run of all methods over the sample, and what it printed with --verbose."""
    harness = harnesses(tmp_path_factory.mktemp("usersum"))
    command = (*BASELINE, "--tasks", "usersum", "--data", "sample", "--limit", "25", "--verbose")
    return harness, harness.here(*command)


@pytest.fixture
def report(ended):
    """The sheets of an analysis of that run by title, each as rows by their first cell."""
    harness, _ = ended

    def make(name, *options):
        document = harness.here("analyse", name, "latest", *options, "--json").ok().json
        return {sheet["title"]: sheet for sheet in document["report"]["sheets"]}

    return make


def test_a_run_prints_table_4_at_its_end(ended):
    harness, done = ended
    command = (*BASELINE, "--tasks", "usersum", "--data", "sample", "--limit", "5")
    short = harness.here(*command, "--output_path", "short").ok().out
    lines = short.splitlines()
    assert lines[3] == "usersum (5 tasks)"
    assert lines[11] == "Table 4: MovieLens, baseline"
    assert lines[15].startswith("other ")
    assert len(lines) <= 40
    text = done.ok().out
    assert "Table 4: MovieLens, baseline" in text
    table = text.partition("Table 4: MovieLens, baseline")[2].splitlines()
    assert [line.split()[0] for line in table[4:11]] == [
        "other", "none", "raw_timeline", "single_step", "hierarchy_critique", "popular,", "random,",
    ]  # fmt: skip
    assert text.count("Table 4: MovieLens, baseline") == 2  # ours, and beside the published one
    assert "single_step, hierarchy_critique: not comparable: bundled sample data" in " ".join(
        text.split()
    )
    assert "limit unknown" in text


def test_the_analyses_agree_on_the_sample(report):
    table = report("usersum")
    main = {row[0]: row for row in table["Table 4: MovieLens, baseline"]["rows"]}
    assert main["single_step"][2] > main["none"][2] > main["other"][2]
    accuracy = report("usersum-questions")["Accuracy in %: MovieLens, baseline"]["rows"]
    questions = {row[0]: row for row in table["Questions and cost: MovieLens, baseline"]["rows"]}
    for method, question, _, right, *_ in accuracy:
        assert right == pytest.approx(questions[method][1 + int(question[1])])


def test_most_that_the_verifier_flags_is_fixed(report):
    sheets = report("usersum-rounds")
    [row] = sheets["Segments by what the verifier said"]["rows"]
    _, _, segments, failed, at_once, flagged, *_, fixed, left, undecided, _, again = row
    assert (failed, at_once + fixed + left + undecided) == (0, segments)
    assert (undecided, fixed + left) == (0, flagged)
    assert fixed > left
    checks = [one[3] for one in sheets["Checks by round"]["rows"]]
    assert checks[0] == segments
    assert sum(checks[1:]) == pytest.approx(again * segments)


def test_summaries_are_rated_and_ratings_compared(ended, report, tmp_path):
    harness, _ = ended
    out = tmp_path / "out"
    report("usersum-sheet", "--number", "8", "--out", str(out))
    with (out / "for_raters" / "sheet.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 16
    lines = ["example,rater,rating"]
    for number, row in enumerate(rows):
        for rater in ("ann", "bob")[: 1 + number % 2]:
            lines.append(f"{row['example']},{rater},{'good' if number % 3 else 'bad'}")
    ratings = tmp_path / "ratings.csv"
    ratings.write_text("\n".join(lines) + "\n", encoding="utf-8")
    agreement = report("usersum-agree", "--ratings", str(ratings))
    counted = agreement["Q_s and people's ratings"]["rows"]
    assert sum(row[3] for row in counted if row[2] == "all raters") == 24
    assert all(sum(row[4:8]) == row[3] for row in counted)
    assert {row[5] for row in agreement["Raters of the same examples"]["rows"]} == {100.0}
    sheets = report("usersum-metrics", "--ratings", str(ratings))
    assert len(sheets) == 2
    ratings.write_text("example,rater,rating\nx1,ann,good\n", encoding="utf-8")
    refused = harness.here("analyse", "usersum-agree", "latest", "--ratings", str(ratings))
    assert refused.code == 1
    assert "'x1'" in refused.err


def differences(harness, folder, *, seed, plant):
    """The paired differences in QM of a generated sample, by what is compared, with their ends."""
    write(folder / "data", seed=seed, plant=plant)
    harness.here(*BASELINE, "--tasks", ",".join(CONTEXTS), "--data", str(folder / "data")).ok()
    sheets = harness.here("analyse", "usersum", "latest", "--json").ok().json["report"]["sheets"]
    [sheet] = [one for one in sheets if one["title"].startswith("Methods on the same users")]
    return {
        (first, second): (low, high)
        for metric, first, second, _, low, high, _ in sheet["rows"]
        if metric == "QM"
    }


@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_taste_is_found(harness, tmp_path, seed):
    found = differences(harness, tmp_path, seed=seed, plant=PLANT)
    # The template's summary beats none, and none beats another user's.
    assert found["none", "single_step"][1] < 0
    assert found["other", "none"][1] < 0


def test_without_a_planted_taste_no_difference_is_found(harness, tmp_path):
    found = differences(harness, tmp_path, seed=0, plant=0.0)
    assert len(found) == 3
    assert all(low <= 0 <= high for low, high in found.values())
