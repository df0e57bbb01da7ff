"""Analyses of scores, categories and thresholds, worked out by hand."""

from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from builders.gistbench import judged
from harness_gistbench.analyses import (
    coverage,
    failure_modes,
    oracle_stability,
    scores,
    thresholds,
    window_size,
)
from harness_gistbench.analyses.compared_runs import ComparisonOptions, TableOptions
from harness_gistbench.analyses.coverage import CoverageOptions
from harness_gistbench.analyses.scores import ForestOptions
from harness_gistbench.analyses.thresholds import NOT_ASKED_TITLE, ThresholdOptions
from harness_gistbench.analyses.window_size import WindowOptions
from harness_gistbench.metrics import METRICS
from harness_gistbench.records import Judged, Verification
from harness_gistbench.records import Options as Settings

from harness.contracts.report import Bars, Boxes, Line, Points, Rule, Spans
from harness.contracts.task import IntervalSpec
from harness.scoring.aggregate import Columns


@pytest.fixture
def runs(kept):
    """Two models over three users.

    The oracle: 1 and 2 for u1, 3 for u2, nothing for u3.
    `keen`: u1 has P 1, R 1, F1 1; u2 P 1/2, R 1, F1 2/3; u3 named nothing and has 0 of all.
    `shy`: u1 has P 1, R 1/2, F1 2/3; u2 P 0, R 0, F1 0; u3 cannot be read.
    """
    trains, owls = judged("trains", 1, liked=2, found=(1, 2)), judged("owls", 2, watched=3)
    jazz, weak = judged("jazz", 3, liked=1, watched=2), judged("looms", 4, liked=1)
    keen = {"u1": (trains, owls), "u2": (jazz, weak), "u3": ()}
    shy = {"u1": (trains,), "u2": (weak,), "u3": "predict/no_json"}
    return [kept("keen", keen), kept("shy", shy)]


def test_a_bubble_stands_at_the_medians_and_is_as_large_as_the_categories(runs, kept):
    report = scores.precision_recall(runs, ComparisonOptions())
    assert report.sheets[0].rows == (
        ("synthetic", "keen", 50.0, 100.0, pytest.approx(200 / 3), pytest.approx(4 / 3), 3),
        ("synthetic", "shy", 50.0, 25.0, pytest.approx(100 / 3), 1.0, 2),
    )
    [figure] = report.figures
    assert [mark for mark in figure.marks if isinstance(mark, Points)] == [
        Points(label="keen", x=(1.0,), y=(0.5,), sizes=(4 / 3,), names=("keen",)),
        Points(label="shy", x=(0.25,), y=(0.5,), sizes=(1.0,), names=("shy",)),
    ]
    # Interests without a category do not make it larger.
    named = (judged("trains", 1), judged("night trains", 1), judged("odd", None))
    report = scores.precision_recall([kept("first", {"u1": named})], ComparisonOptions())
    assert report.sheets[0].rows[0][5] == 1.0


def test_lines_of_equal_f1_pass_where_their_mean_says_and_smoothly(runs):
    line = scores.equal_f1(0.5)
    assert (line.label, line.dashed) == ("F1 0.5", True)
    assert (line.x[0], line.y[0]) == (pytest.approx(1 / 3), pytest.approx(1.0))
    assert (line.x[-1], line.y[-1]) == (pytest.approx(1.0), pytest.approx(1 / 3))
    assert all(
        2 * x * y / (x + y) == pytest.approx(0.5) for x, y in zip(line.x, line.y, strict=True)
    )
    [figure] = scores.precision_recall(runs, ComparisonOptions()).figures
    lowest = next(mark for mark in figure.marks if mark.label == "F1 0.1")
    ends = list(zip(lowest.x, lowest.y, strict=True))
    for (x, y), (next_x, next_y) in pairwise(ends):
        across, up = (x + next_x) / 2, (y + next_y) / 2
        assert 2 * across * up / (across + up) == pytest.approx(0.1, rel=0.02)


def test_every_user_is_a_dot_and_every_model_a_diamond(runs):
    report = scores.by_user(runs, ComparisonOptions())
    diagonal, *marks = report.figures[0].marks
    assert (diagonal.x, diagonal.y, diagonal.dashed) == ((0.0, 1.0), (0.0, 1.0), True)
    assert marks == [
        Points(label="keen", x=(1.0, 1.0, 0.0), y=(1.0, 0.5, 0.0), faint=True),
        Points(label="shy", x=(0.5, 0.0), y=(1.0, 0.0), faint=True),
        Points(label="keen", x=(1.0,), y=(0.5,), shape="diamond"),
        Points(label="shy", x=(0.25,), y=(0.5,), shape="diamond"),
    ]
    assert report.sheets[0].rows == (
        ("synthetic", "keen", 3, 50.0, 100.0, 0.0, pytest.approx(100 / 3)),
        ("synthetic", "shy", 2, 50.0, 25.0, 50.0, 50.0),
    )
    assert report.sheets[1].rows == (
        ("synthetic", "keen", 3, 3, 1, "specificity/not_asked 2"),
        ("synthetic", "shy", 3, 2, 2, "predict/no_json 1"),
    )


def test_a_forest_goes_from_the_best_mean_to_the_worst_with_intervals(runs):
    report = scores.forest(runs[::-1], ForestOptions())
    rows = report.sheets[0].rows
    assert [(row[1], row[2], row[5]) for row in rows] == [
        ("keen", pytest.approx(100 * 5 / 9), 3),
        ("shy", pytest.approx(100 / 3), 2),
    ]
    # Of two users drawn with replacement a quarter of the draws holds one of them twice.
    assert rows[1][3:5] == (pytest.approx(0.0), pytest.approx(200 / 3))
    [mark] = report.figures[0].marks
    assert isinstance(mark, Spans)
    assert mark.names == ("keen", "shy")
    assert mark.value == (pytest.approx(5 / 9), pytest.approx(1 / 3))
    assert (mark.low[1], mark.high[1]) == (pytest.approx(0.0), pytest.approx(2 / 3))


@pytest.mark.parametrize("statistic", ["mean", "median"])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_a_forest_has_the_intervals_of_the_runs_own_metrics(kept, statistic, method):
    nine = range(1, 10)
    found = {f"u{n}": tuple(judged(f"i{m}", m, liked=2 * (m < n)) for m in nine) for n in nine}
    run = kept("one", found)
    task = msgspec.structs.replace(run.task, interval=IntervalSpec(draws=300, method=method))
    run = replace(run, task=task)
    columns = Columns(METRICS)
    for score in run.scores():
        columns.add(score)
    results = columns.results(interval=task.interval, seed=run.manifest.seed, task=task.name)
    own = results["ig_f1" if statistic == "median" else "mean_ig_f1"]
    [row] = scores.forest([run], ForestOptions(statistic=statistic)).sheets[0].rows
    assert row[2:5] == tuple(100 * value for value in (own.value, *own.interval))


def test_a_model_of_one_user_has_no_interval_and_one_without_scores_no_figure(kept):
    one = kept("lone", {"u1": (judged("trains", 1, liked=2, found=(1, 2)),)})
    report = scores.forest([one], ForestOptions(score="is", statistic="median"))
    [sheet] = report.sheets[:1]
    assert (sheet.title, sheet.rows) == (
        "IS (median), in %", (("synthetic", "lone", 50.0, None, None, 1),)
    )  # fmt: skip
    assert sheet.notes[-1] == (
        "lone on synthetic: no interval, for fewer than two users: there is nothing to draw from"
    )
    assert report.figures[0].marks == (
        Spans(label="IS (median)", names=("lone",), low=(None,), value=(0.5,), high=(None,)),
    )
    report = scores.boxes([kept("mute", {"u1": "predict/no_json"})], ComparisonOptions())
    assert report.sheets[0].rows[0] == ("synthetic", "mute", 0, *[None] * 6)
    assert report.figures == ()


def test_boxes_hold_all_users_and_the_line_is_the_median_of_all(runs):
    report = scores.boxes(runs, ComparisonOptions())
    keen, shy, everybody = report.sheets[0].rows
    third = pytest.approx(100 / 3)
    # keen: 0, 2/3, 1; shy: 0, 2/3; all: 0, 0, 2/3, 2/3, 1
    assert keen == ("synthetic", "keen", 3, 0.0, third, pytest.approx(200 / 3),
                    pytest.approx(250 / 3), 100.0, third)  # fmt: skip
    assert shy == ("synthetic", "shy", 2, 0.0, pytest.approx(50 / 3), third,
                   pytest.approx(50.0), pytest.approx(200 / 3), 50.0)  # fmt: skip
    assert everybody[:3] == ("synthetic", "all", 5)
    drawn, line = report.figures[0].marks
    assert isinstance(drawn, Boxes)
    assert drawn.names == ("keen", "shy")
    assert drawn.values == ((1.0, pytest.approx(2 / 3), 0.0), (pytest.approx(2 / 3), 0.0))
    assert isinstance(line, Rule)
    assert (line.label, line.at) == ("median of all", pytest.approx(2 / 3))


@pytest.fixture
def two(kept):
    """Two models of two users.

    `first`: u1 has IG P 1/4 and IS 1/2 and verifies category 1; u2 has 1 and 1 and verifies 3.
    `second`: u1 has IG P 1 and IS 2/3 and verifies 1 and 5; u2 has 1/2 and 0 and verifies 4.
    """
    first = {
        "u1": (judged("trains", 1, liked=2, found=(3, 4)), judged("owls", 2, skipped=1),
               judged("night trains", 1, watched=1, found=(1, 4))),
        "u2": (judged("jazz", 3, watched=3, found=(2, 2)),),
    }  # fmt: skip
    second = {
        "u1": (judged("trains", 1, liked=3, found=(1, 3)),
               judged("chess", 5, liked=2, found=(2, 2))),
        "u2": (judged("looms", 4, liked=2, found=(0, 2)), judged("lakes", 6, liked=1)),
    }  # fmt: skip
    return [kept("first", first), kept("second", second)]


def test_scores_are_against_what_all_runs_verified(two):
    groundedness, parts, _ = scores.scores(two, TableOptions()).sheets
    # The oracle is 1 and 5 for u1, 3 and 4 for u2. Of `first`, u1 has P = R = F1 = 1/4, and u2 has
    # P = 1, R = 1/2, F1 = 2/3. Of `second`, u1 has 1, 1, 1 and u2 has 1/2, 1/2, 1/2.
    assert groundedness.rows == (
        ("first", pytest.approx(100 * 11 / 24), pytest.approx(75.0)),
        ("second", pytest.approx(75.0), pytest.approx(100 / 3)),
    )
    assert parts.rows == (("first", 62.5, 37.5), ("second", 75.0, 75.0))
    # A run alone misses nothing, and that is said: its recall is 1/2 for u1 and 1 for u2.
    report = scores.scores(two[:1], TableOptions(published=True))
    assert report.sheets[1].rows == (("first", 62.5, 75.0),)
    assert report.notes[0] == (
        "synthetic: IG R and IG F1 are against what this run verified; "
        "below 3 models there is little to miss"
    )
    # The published tables stand below in the same form.
    _, _, table, parts, _ = report.sheets
    assert table.rows[0] == (
        *("GPT-OSS-120B", 67.8, 74.0, 56.3, 68.4),
        *(66.7, 66.6, 66.7, 70.6, 58.0, 67.4),
    )
    assert parts.rows[1] == ("DeepSeek-R1", 82.4, 43.9, 89.8, 29.5)


def test_models_and_datasets_make_a_table_with_gaps(kept):
    found = {"u1": (judged("trains", 1, liked=2, found=(1, 2)),)}
    pairs = ("first", "gist_synthetic"), ("first", "gist_mind"), ("second", "gist_mind")
    tasks = [kept(model, found, dataset=dataset) for model, dataset in pairs]
    sheet = scores.scores(tasks, TableOptions()).sheets[0]
    assert sheet.columns == ("model", "synthetic IG F1", "synthetic IS", "mind IG F1", "mind IS")
    assert sheet.rows == (("first", 100.0, 50.0, 100.0, 50.0), ("second", None, None, 100.0, 50.0))


def test_a_model_that_too_few_users_of_can_be_read_has_no_number(kept):
    found = {"u1": (judged("trains", 1, liked=2, found=(1, 2)),)}
    users = {**found, "u2": "predict/no_json", "u3": "predict/truncated"}
    groundedness, _, people = scores.scores([kept("first", users)], TableOptions()).sheets
    assert groundedness.rows == (("first", None, None),)
    assert groundedness.notes[0] == (
        "first on synthetic: no IG F1, for 1 of 3 units have one, less than the required 50%; "
        "over those few it is 1.000"
    )
    assert people.rows == (
        ("synthetic", "first", 3, 1, 1, "predict/no_json 1, predict/truncated 1"),
    )


def test_runs_that_were_judged_otherwise_are_left_out_by_name_unless_forced(two, kept):
    other = kept("third", {"u1": (judged("chess", 7, liked=2, found=(1, 2)),)}, judge="another")
    # With category 7 in the oracle of u1 `second` finds 2 of 3 there, and 1/2 for u2 as before.
    forced = pytest.approx(100 * (2 / 3 + 1 / 2) / 2)
    for force, names, recall, said in (
        (False, ["first", "second"], 75.0, "left out"),
        (True, ["first", "second", "third"], forced, "taken in by force"),
    ):
        report = scores.scores([*two, other], TableOptions(force=force))
        assert [row[0] for row in report.sheets[0].rows] == names
        assert report.sheets[1].rows[1] == ("second", 75.0, recall)
        assert report.notes[-1] == (
            f"gist_synthetic: third is {said}: judge's name another against judge-70b"
        )


@pytest.fixture
def taxonomy():
    """Options with a taxonomy of eight categories."""
    return Settings(taxonomy=tuple(f"category {number}" for number in range(1, 9)))


@pytest.fixture
def covering(kept, taxonomy):
    """`wide` reaches 1, 2, 3 of the videos and 5 of the news; `narrow` 4 and 1 of the videos."""
    wide_videos = {
        "u1": (judged("Trains", 1), judged("owls", 2, liked=2)),
        "u2": (judged("trains ", 1), judged("jazz", 3), judged("odd", None)),
    }
    return [
        kept("wide", wide_videos, options=taxonomy),
        kept("wide", {"u1": (judged("chess", 5),)}, dataset="gist_mind", options=taxonomy),
        kept("narrow", {"u1": (judged("pots", 4), judged("Trains", 1))}, options=taxonomy),
    ]


def test_categories_are_counted_by_model_and_by_dataset(covering):
    report = coverage.coverage(covering, CoverageOptions())
    sheet, together, *_ = report.sheets
    assert sheet.rows == (("wide", 4, 4, 50.0, 1), ("narrow", 2, 2, 25.0, 0))
    assert together.title == "Categories by dataset: wide and all models"
    assert together.rows == (("synthetic", 3, 37.5, 4, 50.0, 1), ("mind", 1, 12.5, 1, 12.5, 0))
    models, alone, together = report.figures
    bars = Bars(label="categories", names=("wide", "narrow"), values=(4.0, 2.0))
    assert models.marks == (bars, Rule(label="all 8", at=8.0))
    assert (alone.marks[0].names, alone.marks[0].values) == (("synthetic", "mind"), (3.0, 1.0))
    assert together.marks[0].values == (4.0, 1.0)
    narrow = coverage.coverage(covering, CoverageOptions(model="narrow")).sheets[1].rows
    assert narrow == (("synthetic", 2, 25.0, 4, 50.0, 2), ("mind", None, None, 1, 12.5, None))
    rows = coverage.concentration(covering, TableOptions()).sheets[0].rows
    assert [(row[0], row[1]) for row in rows] == [("wide", 5), ("narrow", 2), ("all models", 7)]


def test_the_share_of_categories_that_hold_most_interests(kept, taxonomy):
    # Ten interests in four of eight categories: 5, 3, 1, 1.
    counts = {1: 5, 2: 3, 3: 1, 4: 1}
    named = tuple(judged(f"{id} {n}", id) for id, many in counts.items() for n in range(many))
    task = kept("first", {"u1": (*named, judged("odd", None))}, options=taxonomy)
    report = coverage.concentration([task], TableOptions())
    sheet = report.sheets[0]
    # One category holds 5 of 10, two hold 8, three hold 9. Ascending 0,0,0,0,1,1,3,5:
    # Gini = 2 (5·1 + 6·1 + 7·3 + 8·5) / (8·10) − 9/8 = 144/80 − 9/8 = 0.675.
    assert sheet.rows == (("first", 10, 12.5, 25.0, 37.5, pytest.approx(0.675)),)
    # The curve is cumulated from the largest category.
    [curve] = report.figures[0].marks
    assert curve.x == (0.0, 12.5, 25.0, 37.5, 50.0)
    assert curve.y == pytest.approx((0.0, 50.0, 80.0, 90.0, 100.0))


def test_each_mode_is_a_share_of_all_unverified_interests(kept):
    found = {
        "u1": (
            judged("trains", 1, liked=2),  # verified
            judged("owls", 2, liked=1, watched=1),  # short of both
            judged("jazz", 3, liked=2, skipped=4),  # short of implicit, too negative
            judged("lakes", 4, watched=3, skipped=4),  # short of explicit, too negative
            judged("looms", 5, liked=2, watched=3, skipped=4),  # too negative alone
        ),
        "u2": (
            Judged(name="chess", cited=1, category=6, evidence_failure="verify/no_label"),
            judged("pots", None),  # short of both
        ),
    }
    sheet, people = failure_modes.run([kept("first", found)], TableOptions()).sheets
    assert sheet.rows == (("first", 7, 1, 5, 60.0, 60.0, 60.0),)
    # Category 1 of u1 is verified and was not asked about; all that is mapped of u2 has no verdict.
    assert people.rows == (
        ("synthetic", "first", 2, 1, 0, "specificity/not_asked 1, verify/no_label 1"),
    )


def test_a_dataset_without_a_signal_is_not_short_of_it(kept):
    news = {"u1": (judged("trains", 1, liked=1), judged("owls", 2, liked=2, skipped=4))}
    clips = {"u1": (judged("trains", 1, liked=1), judged("owls", 2, liked=1, watched=3, skipped=5))}
    tasks = [
        kept(
            "first", news, dataset="gist_mind", signals=("explicit_positive", "implicit_negative")
        ),
        kept("first", clips, dataset="gist_synthetic"),
    ]
    pooled, mind, synthetic, _ = failure_modes.run(tasks, TableOptions()).sheets
    assert pooled.rows == (("first", 4, 0, 4, 25.0, 75.0, 50.0),)
    assert mind.title == "Failure modes, mind"
    assert mind.rows == (("first", 2, 0, 2, None, 50.0, 50.0),)
    assert synthetic.rows == (("first", 2, 0, 2, 50.0, 100.0, 50.0),)


def test_the_thresholds_of_the_run_decide(kept):
    found = {"u1": (judged("trains", 1, liked=2, watched=4),)}
    strict = Settings(verification=Verification(min_explicit_positive=3, min_implicit_positive=5,
                                                mixed_implicit_positive=5))  # fmt: skip
    as_usual, stricter = (
        failure_modes.run([kept("first", found, options=options)], TableOptions()).sheets[0]
        for options in (Settings(), strict)
    )
    assert as_usual.rows == (("first", 1, 0, 0, None, None, None),)
    assert stricter.rows == (("first", 1, 0, 1, 100.0, 100.0, 0.0),)


@pytest.fixture
def three_models(kept):
    """Three models; seven pairs in all.

    a: u1 1, 2, 3; u2 1, 5     b: u1 1, 2; u2 7     c: u1 1; u2 6
    """

    def verified(*categories):
        return tuple(judged(f"{id}", id, liked=2) for id in categories)

    return [
        kept("c", {"u1": verified(1), "u2": verified(6)}),
        kept("a", {"u1": verified(1, 2, 3), "u2": (*verified(1, 5), judged("x", 9, liked=1))}),
        kept("b", {"u1": verified(1, 2), "u2": (*verified(7), judged("y", None, liked=2))}),
    ]


def test_pairs_and_what_would_be_lost_without_each_model(three_models):
    agreement, models, _ = oracle_stability.run(three_models, TableOptions()).sheets
    assert agreement.rows == (
        (1, 5, pytest.approx(500 / 7)),
        (2, 1, pytest.approx(100 / 7)),
        (3, 1, pytest.approx(100 / 7)),
        ("total", 7, 100.0),
    )
    sole = [("a", 5, 3, 300 / 7), ("b", 3, 1, 100 / 7), ("c", 2, 1, 100 / 7)]
    assert models.rows == tuple((*row, pytest.approx(share)) for *row, share in sole)


def test_runs_of_one_model_are_one_provider(three_models, kept):
    found = {"u1": (judged("t", 1, liked=2), judged("u", 4, liked=2)), "u2": ()}
    again = kept("a", found, run="another-of-a", label="a another-of-a")
    agreement, models, _ = oracle_stability.run([*three_models, again], TableOptions()).sheets
    # The second run of a adds category 4 of u1, and takes no pair from its first.
    assert agreement.rows[:3] == ((1, 6, 75.0), (2, 1, 12.5), (3, 1, 12.5))
    assert agreement.notes == ("a pair is a user and a category; runs: 4, models: 3",)
    assert models.rows[0] == ("a, 2 runs", 6, 4, 50.0)
    # Nothing verified is an empty oracle.
    agreement, models, _ = oracle_stability.run([kept("e", {"u1": ()})], TableOptions()).sheets
    assert agreement.rows == ((1, 0, None), ("total", 0, None))
    assert models.rows == (("e", 0, 0, None),)


@pytest.fixture
def broad_and_narrow(kept):
    """`broad` has an interest with two likes and one with one like; `narrow` one with two likes.

    Retrieval was asked where something is verified with two likes.
    """
    two = judged("trains", 1, liked=2, found=(1, 2))
    one = judged("owls", 2, liked=1)
    three = judged("jazz", 3, liked=3, found=(3, 3))
    return [kept("broad", {"u1": (two, one)}), kept("narrow", {"u1": (two, three)})]


def explicit(broad_and_narrow, **options):
    return thresholds.run(
        broad_and_narrow, ThresholdOptions(threshold=("min_explicit_positive",), steps=1, **options)
    )


def sheets(report):
    return {sheet.title.partition(": ")[2]: sheet for sheet in report.sheets if ": " in sheet.title}


def test_scores_and_ranks_are_made_anew_for_each_setting(broad_and_narrow):
    report = explicit(broad_and_narrow)
    found = sheets(report)
    sheet = found["IG F1, medians in %"]
    assert sheet.columns == ("threshold", "asked with", "broad", "narrow")
    # From one like on all is verified: of 1, 2, 3 each model finds two, P 1, R 2/3, F1 4/5.
    # From two on: broad P 1/2, R 1/2 of 1 and 3; narrow P 1, R 1. From three on the oracle is 3
    # alone: broad has nothing, narrow P 1/2, R 1.
    assert sheet.rows == (
        ("min_explicit_positive 1", "", pytest.approx(80.0), pytest.approx(80.0)),
        ("min_explicit_positive 2", "yes", 50.0, 100.0),
        ("min_explicit_positive 3", "", 0.0, pytest.approx(200 / 3)),
    )
    assert [row[2:] for row in found["ranks by IG F1"].rows] == [(1, 1), (2, 1), (2, 1)]
    # With one like the category of owls is verified, and its retrieval was never asked.
    of_is = [row[2:] for row in found["IS, medians in %"].rows]
    assert of_is == [(None, 75.0), (50.0, 75.0), (0.0, 100.0)]
    assert [row[2:] for row in found["ranks by IS"].rows] == [(None, 1), (2, 1), (2, 1)]
    assert [row[2:] for row in found[NOT_ASKED_TITLE].rows] == [(1, 0), (0, 0), (0, 0)]
    assert {figure.x.ticks for figure in report.figures} == {(1, 2, 3)}
    figures = {figure.title: figure.marks for figure in report.figures}
    assert [*figures] == [
        "synthetic: IG F1 (median), % by min_explicit_positive",
        "synthetic: rank by IG F1 by min_explicit_positive",
        "synthetic: IS (median), % by min_explicit_positive",
        "synthetic: rank by IS by min_explicit_positive",
    ]
    assert figures["synthetic: IS (median), % by min_explicit_positive"] == (
        Line(label="broad", x=(2.0, 3.0), y=(50.0, 0.0)),
        Line(label="narrow", x=(1.0, 2.0, 3.0), y=(75.0, 75.0, 100.0)),
    )
    assert figures["synthetic: rank by IG F1 by min_explicit_positive"] == (
        Line(label="broad", x=(1.0, 2.0, 3.0), y=(1.0, 2.0, 2.0)),
        Line(label="narrow", x=(1.0, 2.0, 3.0), y=(1.0, 1.0, 1.0)),
    )
    said = report.notes[0]
    assert said.startswith("the prompts stated the numbers that were asked with")
    assert [figure.note for figure in report.figures] == [said] * 4


def test_numbers_of_signals_that_the_data_lack_are_not_varied(broad_and_narrow):
    report = thresholds.run(broad_and_narrow, ThresholdOptions(steps=1))
    assert [row[0] for row in sheets(report)["IG F1, medians in %"].rows] == [
        *("min_explicit_positive 1", "min_explicit_positive 2", "min_explicit_positive 3"),
        *("min_implicit_positive 2", "min_implicit_positive 3", "min_implicit_positive 4"),
        *("mixed_explicit_positive 1", "mixed_explicit_positive 2"),
        *("mixed_implicit_positive 1", "mixed_implicit_positive 2", "mixed_implicit_positive 3"),
        *("max_implicit_negative 2", "max_implicit_negative 3", "max_implicit_negative 4"),
    ]
    assert report.notes[-1] == (
        "synthetic: max_explicit_negative does nothing, for the data has no such signal"
    )


def test_a_negative_limit_may_go_down_to_none(kept):
    skipped = kept("first", {"u1": (judged("trains", 1, liked=2, skipped=1, found=(1, 3)),)})
    report = thresholds.run(
        [skipped], ThresholdOptions(threshold=("max_implicit_negative",), steps=9)
    )
    rows = sheets(report)["IG F1, medians in %"].rows
    assert [row[0].split()[1] for row in rows] == [str(value) for value in range(13)]
    assert [row[2] for row in rows[:3]] == [0.0, 100.0, 100.0]


@pytest.fixture
def sizes(kept):
    """One model at 50 and 100 engagements a prompt; named as runs that were not given in order."""
    trains = judged("trains", 1, liked=2, found=(1, 2))
    owls = judged("owls", 2, watched=3, found=(2, 2))
    weak = judged("looms", 3, liked=1)
    return [
        kept("m", {"u1": (trains, owls)}, run="large", options=Settings(window=100)),
        kept("m", {"u1": (trains, weak, weak)}, run="small", options=Settings(window=50)),
    ]


def test_sizes_stand_side_by_side_with_an_oracle_of_their_own(sizes):
    report = window_size.run(sizes, WindowOptions())
    [note] = report.notes
    assert "an oracle of its own" in note
    sheet = report.sheets[0]
    assert sheet.title == "synthetic: m by window size"
    assert sheet.columns == ("engagements a prompt", "50", "100")
    # At 50: P (1 + 0) / 2, R 1 of the categories 1 and 2 that the two sizes verified, IS 1/2.
    # At 100: P 1, R 1, IS (1/2 + 1) / 2.
    assert sheet.rows == (
        ("IG P %", 50.0, 100.0),
        ("IG R %", 50.0, 100.0),
        ("IG F1 %", 50.0, 100.0),
        ("IS %", 50.0, 75.0),
        ("interests a user", 3.0, 2.0),
        ("users with IG", 1, 1),
        ("users with IS", 1, 1),
    )
    [figure] = window_size.run(sizes, WindowOptions()).figures
    assert "an oracle of its own" in figure.note
    assert figure.marks == (
        Line(label="IG P", x=(50.0, 100.0), y=(50.0, 100.0)),
        Line(label="IG R", x=(50.0, 100.0), y=(50.0, 100.0)),
        Line(label="IG F1", x=(50.0, 100.0), y=(50.0, 100.0)),
        Line(label="IS", x=(50.0, 100.0), y=(50.0, 75.0)),
    )


def test_what_differs_is_named_and_another_model_does_not_enter_the_oracle(sizes, kept):
    third = kept("m", {"u1": ()}, run="third", options=Settings(window=150), judge="another")
    notes = window_size.run([*sizes, third], WindowOptions()).sheets[0].notes
    said = "third differs from small also in: roles.judge.name another against judge-70b"
    assert [one for one in notes if "third" in one] == [said]
    other = kept("n", {"u1": (judged("chess", 9, liked=2),)}, options=Settings(window=100))
    alone, among = (window_size.run(of, WindowOptions()).sheets for of in (sizes, [*sizes, other]))
    assert among[0] == alone[0]
    assert among[1].title == "synthetic: n by window size"
    # One window size may stand beside the published ones.
    assert window_size.run(sizes[:1], WindowOptions(published=True)).sheets
