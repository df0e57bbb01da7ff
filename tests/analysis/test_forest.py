"""`forest`: metrics over runs as tables and as the data of figures, of tasks written by hand."""

from types import SimpleNamespace

import pytest
from builders.runs import keep_task, make_metric, make_summary
from builders.runs import make_task as make_declared_task

from harness.analysis.forest import ALONE, ForestOptions, run
from harness.base.errors import UsageError
from harness.contracts.benchmark import NoOptions
from harness.contracts.report import Spans

BENCHMARK = SimpleNamespace(main=("right",), options=NoOptions, stages=())


def metric(value, *ends, n=10, **fields):
    """A metric with its interval, if ends are given."""
    return make_metric(value, n=n, interval=ends or None, **fields)


@pytest.fixture
def kept(tmp_path):
    """A finished task of the run of a model; the summary names the main metrics, if any."""

    def make(name, model, metrics, *, main=(), seed=0):
        task = make_declared_task(name, benchmark="b", metrics=tuple(metrics))
        summary = make_summary(name, metrics=metrics, main=main)
        return keep_task(
            tmp_path / f"run-of-{model}", task, label=model, seed=seed, benchmark=BENCHMARK,
            summary=summary,
        )  # fmt: skip

    return make


def test_a_row_for_each_task_and_run_of_the_main_metric_in_their_order(kept):
    tasks = [
        kept("easy", "ada", {"other": metric(0.9), "right": metric(0.5, 0.4, 0.6)}),
        kept("hard", "ada", {"right": metric(0.3, 0.2, 0.35, missing={"no_json": 2, "cut": 1})}),
        kept("easy", "ben", {"right": metric(0.7, 0.6, 0.9)}),
        kept("hard", "ben", {"right": metric(0.4, 0.1, 0.5, n=7)}),
    ]
    report = run(tasks, ForestOptions())
    [sheet] = report.sheets
    assert sheet.title == "right ↑"
    assert sheet.columns == ("task", "run", "value", "low", "high", "n", "missing")
    assert sheet.rows == (
        ("easy", "ada", 0.5, 0.4, 0.6, 10, 0),
        ("easy", "ben", 0.7, 0.6, 0.9, 10, 0),
        ("hard", "ada", 0.3, 0.2, 0.35, 10, 3),
        ("hard", "ben", 0.4, 0.1, 0.5, 7, 0),
    )
    assert sheet.notes == (f"low and high: 95% interval; {ALONE}",)
    [figure] = report.figures
    assert figure.title == "2 tasks: right ↑"
    assert figure.marks == (
        Spans(label="ada", names=("easy", "hard"), low=(0.4, 0.2), value=(0.5, 0.3),
              high=(0.6, 0.35)),
        Spans(label="ben", names=("easy", "hard"), low=(0.6, 0.1), value=(0.7, 0.4),
              high=(0.9, 0.5)),
    )  # fmt: skip
    assert report.notes == ()


def test_what_is_missing_is_listed_with_its_reason_and_never_0(kept):
    tasks = [
        kept("easy", "ada", {"right": metric(None, n=0, undefined="nothing could be read")}),
        kept("easy", "ben", {"right": metric(0.7, no_interval="one user alone")}),
    ]
    report = run(tasks, ForestOptions())
    assert [row[2:5] for row in report.sheets[0].rows] == [(None,) * 3, (0.7, None, None)]
    assert report.sheets[0].notes == (
        "easy, ada: no value, for nothing could be read",
        "easy, ben: no interval, for one user alone",
    )
    # The runs of one task are named at the axis.
    [figure] = report.figures
    [mark] = figure.marks
    assert (figure.title, mark.label, mark.names) == ("easy: right ↑", "easy", ("ada", "ben"))
    assert (mark.value, mark.low, mark.high) == ((None, 0.7), (None, None), (None, None))


def test_each_metric_has_a_table_for_the_tasks_that_have_it(kept):
    with pytest.raises(UsageError, match="did you mean 'right'"):
        run([kept("easy", "ada", {"right": metric(0.5)})], ForestOptions(metric=("rigth",)))
    found = {"right": metric(0.5), "error": metric(2.5, higher_is_better=False)}
    named = run([kept("easy", "ada", found, main=("error", "right"))], ForestOptions())
    assert [sheet.title for sheet in named.sheets] == ["error ↓", "right ↑"]
    chosen = run([kept("easy", "ada", found)], ForestOptions(metric=("error",)))
    assert [sheet.title for sheet in chosen.sheets] == ["error ↓"]
    assert [figure.x.label for figure in chosen.figures] == ["error ↓"]
    tasks = [
        kept("easy", "ada", {"right": metric(0.5)}),
        kept("hard", "ada", {"right": metric(0.5), "error": metric(1.0)}),
    ]
    [sheet] = run(tasks, ForestOptions(metric=("error",))).sheets
    assert [row[0] for row in sheet.rows] == ["hard"]


@pytest.mark.parametrize(
    ("tasks", "runs", "names"),
    [
        (9, 5, [6, 3]),  # six tasks of five runs are thirty rows
        (2, 8, [8, 8]),  # too many colours: a figure for each task
        (1, 31, [30, 1]),
    ],
)
def test_no_figure_has_more_than_thirty_rows(kept, tasks, runs, names):
    found = [
        kept(f"t{task}", f"m{model}", {"right": metric(0.5, 0.4, 0.6)})
        for model in range(runs)
        for task in range(tasks)
    ]
    figures = run(found, ForestOptions()).figures
    assert [len(figure.marks[0].names) for figure in figures] == names
    drawn = [len(mark.names) for figure in figures for mark in figure.marks]
    assert sum(drawn) == tasks * runs


def test_a_run_that_was_asked_otherwise_is_named(kept):
    found = {"right": metric(0.5, 0.4, 0.6)}
    tasks = [kept("easy", "ada", found), kept("easy", "ben", found)]
    report = run([*tasks, kept("easy", "cleo", found, seed=7)], ForestOptions())
    assert report.notes == ("easy: cleo cannot be compared with the others: seed 7 against 0",)
    assert len(report.sheets[0].rows) == 3
