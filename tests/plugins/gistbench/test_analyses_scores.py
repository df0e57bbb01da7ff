"""Scores as tables by model and dataset, and as bubbles, dots, forests and boxes."""

from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from builders.gistbench import judged
from harness_gistbench.analyses import scores
from harness_gistbench.analyses.compared_runs import ComparisonOptions, TableOptions
from harness_gistbench.analyses.scores import ForestOptions
from harness_gistbench.metrics import METRICS

from harness.contracts.report import Boxes, Points, Rule, Spans
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


def test_a_bubble_stands_at_the_medians_and_is_as_large_as_the_categories(runs):
    report = scores.precision_recall(runs, ComparisonOptions())
    assert report.sheets[0].rows == (
        ("synthetic", "keen", 50.0, 100.0, pytest.approx(200 / 3), pytest.approx(4 / 3), 3),
        ("synthetic", "shy", 50.0, 25.0, pytest.approx(100 / 3), 1.0, 2),
    )
    [figure] = report.figures
    bubbles = [mark for mark in figure.marks if isinstance(mark, Points)]
    assert bubbles == [
        Points(label="keen", x=(1.0,), y=(0.5,), sizes=(4 / 3,), names=("keen",)),
        Points(label="shy", x=(0.25,), y=(0.5,), sizes=(1.0,), names=("shy",)),
    ]


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
    assert report.sheets[0].columns[2:] == (
        *("users", "IG P", "IG R", "P above R %", "P below 50 %"),
    )
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
    found = {
        f"u{n}": tuple(judged(f"i{m}", m, liked=2 if m < n else 0) for m in range(1, 10))
        for n in range(1, 10)
    }
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


def test_a_model_of_one_user_has_no_interval_and_that_is_said(kept):
    one = kept("lone", {"u1": (judged("trains", 1, liked=2, found=(1, 2)),)})
    report = scores.forest([one], ForestOptions(score="is", statistic="median"))
    assert report.sheets[0].title == "IS (median), in %"
    assert report.sheets[0].rows == (("synthetic", "lone", 50.0, None, None, 1),)
    assert report.sheets[0].notes[-1] == (
        "lone on synthetic: no interval, for fewer than two users: there is nothing to draw from"
    )
    assert report.figures[0].marks == (
        Spans(label="IS (median)", names=("lone",), low=(None,), value=(0.5,), high=(None,)),
    )


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
    assert drawn.values == (
        (1.0, pytest.approx(2 / 3), 0.0),
        (pytest.approx(2 / 3), 0.0),
    )
    assert isinstance(line, Rule)
    assert (line.label, line.at) == ("median of all", pytest.approx(2 / 3))


def test_a_model_without_scores_is_in_the_table_and_not_in_the_figure(kept):
    report = scores.boxes([kept("mute", {"u1": "predict/no_json"})], ComparisonOptions())
    assert report.sheets[0].rows[0] == ("synthetic", "mute", 0, *[None] * 6)
    assert report.figures == ()


def test_interests_without_a_category_do_not_make_a_bubble_larger(kept):
    named = (judged("trains", 1), judged("night trains", 1), judged("odd", None))
    report = scores.precision_recall([kept("first", {"u1": named})], ComparisonOptions())
    assert report.sheets[0].rows[0][5] == 1.0


@pytest.fixture
def first(kept):
    """u1 has IG P 1/4 and IS 1/2 and verifies category 1; u2 has 1 and 1 and verifies 3."""
    return kept(
        "first",
        {
            "u1": (
                judged("trains", 1, liked=2, found=(3, 4)),
                judged("night trains", 1, watched=1, found=(1, 4)),
                judged("owls", 2, skipped=1),
            ),
            "u2": (judged("jazz", 3, watched=3, found=(2, 2)),),
        },
    )


@pytest.fixture
def second(kept):
    """u1 has IG P 1 and IS 2/3 and verifies 1 and 5; u2 has 1/2 and 0 and verifies 4."""
    return kept(
        "second",
        {
            "u1": (
                judged("trains", 1, liked=3, found=(1, 3)),
                judged("chess", 5, liked=2, found=(2, 2)),
            ),
            "u2": (
                judged("looms", 4, liked=2, found=(0, 2)),
                judged("lakes", 6, liked=1),
            ),
        },
    )


def test_scores_are_against_what_all_runs_verified(first, second):
    groundedness, parts, _ = scores.scores([first, second], TableOptions()).sheets
    assert groundedness.columns == ("model", "synthetic IG F1", "synthetic IS")
    # The oracle is 1 and 5 for u1, 3 and 4 for u2. Of `first`, u1 has P = R = F1 = 1/4, and u2 has
    # P = 1, R = 1/2, F1 = 2/3. Of `second`, u1 has 1, 1, 1 and u2 has 1/2, 1/2, 1/2.
    assert groundedness.rows == (
        ("first", pytest.approx(100 * 11 / 24), pytest.approx(75.0)),
        ("second", pytest.approx(75.0), pytest.approx(100 / 3)),
    )
    assert parts.columns == ("model", "synthetic IG P", "synthetic IG R")
    assert parts.rows == (("first", 62.5, 37.5), ("second", 75.0, 75.0))


def test_a_run_alone_misses_nothing_and_that_is_said(first):
    report = scores.scores([first], TableOptions())
    # Recall is of the categories that it verified itself: 1/2 for u1 and 1 for u2.
    assert report.sheets[1].rows == (("first", 62.5, 75.0),)
    assert report.notes == (
        "synthetic: IG R and IG F1 are against what this run verified; "
        "below 3 models there is little to miss",
    )


def test_models_and_datasets_make_a_table_with_gaps(kept):
    found = {"u1": (judged("trains", 1, liked=2, found=(1, 2)),)}
    tasks = [
        kept("first", found, dataset="gist_synthetic"),
        kept("first", found, dataset="gist_mind"),
        kept("second", found, dataset="gist_mind"),
    ]
    sheet = scores.scores(tasks, TableOptions()).sheets[0]
    assert sheet.columns == ("model", "synthetic IG F1", "synthetic IS", "mind IG F1", "mind IS")
    assert sheet.rows == (("first", 100.0, 50.0, 100.0, 50.0), ("second", None, None, 100.0, 50.0))


def test_a_model_that_too_few_users_of_can_be_read_has_no_number(kept):
    users = {
        "u1": (judged("trains", 1, liked=2, found=(1, 2)),),
        "u2": "predict/no_json",
        "u3": "predict/truncated",
    }
    groundedness, _, people = scores.scores([kept("first", users)], TableOptions()).sheets
    assert groundedness.rows == (("first", None, None),)
    assert groundedness.notes[0] == (
        "first on synthetic: no IG F1, for 1 of 3 units have one, less than the required 50%; "
        "over those few it is 1.000"
    )
    assert people.columns == ("dataset", "model", "users", "with IG", "with IS", "why not")
    assert people.rows == (
        ("synthetic", "first", 3, 1, 1, "predict/no_json 1, predict/truncated 1"),
    )


def test_runs_that_were_judged_otherwise_are_left_out_by_name_unless_forced(first, second, kept):
    other = kept("third", {"u1": (judged("chess", 7, liked=2, found=(1, 2)),)}, judge="another")
    # With category 7 in the oracle of u1 `second` finds 2 of 3 there, and 1/2 for u2 as before.
    forced = pytest.approx(100 * (2 / 3 + 1 / 2) / 2)
    for force, names, recall, said in (
        (False, ["first", "second"], 75.0, "left out"),
        (True, ["first", "second", "third"], forced, "taken in by force"),
    ):
        report = scores.scores([first, second, other], TableOptions(force=force))
        assert [row[0] for row in report.sheets[0].rows] == names
        assert report.sheets[1].rows[1] == ("second", 75.0, recall)
        assert report.notes[-1] == (
            f"gist_synthetic: third is {said}: judge's name another against judge-70b"
        )


def test_the_published_tables_stand_below_in_the_same_form(first):
    _, _, table, parts, _ = scores.scores([first], TableOptions(published=True)).sheets
    assert table.columns[:3] == ("model", "synthetic IG F1", "synthetic IS")
    assert table.columns[7] == "amazon music IG F1"
    assert table.rows[0] == (
        *("GPT-OSS-120B", 67.8, 74.0, 56.3, 68.4),
        *(66.7, 66.6, 66.7, 70.6, 58.0, 67.4),
    )
    assert parts.rows[1] == ("DeepSeek-R1", 82.4, 43.9, 89.8, 29.5)
