"""Bubbles, dots, forests and boxes, as tables and as the data of figures."""

from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from builders.gistbench import judged
from harness_gistbench.analyses import scores
from harness_gistbench.analyses.compared_runs import ComparisonOptions
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
