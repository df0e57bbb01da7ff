"""Grids of results: rows, averages, what is not shown, and published rows beside, by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.analysis.result_grid import Average, Line, ResultGrid, neighbours, published_lines
from harness.analysis.score_columns import ScoreColumn, interval_of_means, score_columns
from harness.contracts.published import PublishedResult
from harness.contracts.records import Score
from harness.scoring.stats import Interval, NoInterval

GRID = ResultGrid(
    name="quiz",
    headings={"a": "A", "b": "B"},
    cell=lambda task: task.options.level,
    setting=lambda task: task.options.how,
    units="questions",
)


def task(level, values, *, model="ada", how="", run="2026-ada-1", limit=None, seed=0):
    """A task whose units have these values; a text is why a unit has none."""
    scores = [
        Score(id=str(number), user=f"u{number}", missing={"right": one})
        if isinstance(one, str)
        else Score(id=str(number), user=f"u{number}", values={"right": one})
        for number, one in enumerate(values)
    ]
    return SimpleNamespace(
        run=run,
        manifest=SimpleNamespace(
            model=model,
            label=model,
            run_id=run,
            seed=seed,
            limit=limit,
            roles={},
            settings={},
            sessions=(),
        ),
        summary=SimpleNamespace(roles={}),
        options=SimpleNamespace(level=level, how=how),
        task=SimpleNamespace(
            name=f"quiz_{level}", interval=SimpleNamespace(draws=200, confidence=0.95)
        ),
        scores=lambda: iter(scores),
    )


def lines(*tasks):
    rows = GRID.rows(tasks, ("right",))
    cells = GRID.filled(rows, "right")
    return rows, [GRID.line(row, "right", cells) for row in rows], cells


def test_a_row_has_its_tasks_in_the_order_of_the_columns_and_their_mean():
    rows, made, cells = lines(task("b", [1.0, 0.0]), task("a", [1.0, 1.0]))
    assert [list(row.tasks) for row in rows] == [["a", "b"]]
    sheet = GRID.sheet("right", made, cells)
    assert sheet.columns == ("model", "A", "B", "avg.", "low", "high")
    # Drawn together, u0 twice gives (1 + 1) / 2, u1 twice (1 + 0) / 2.
    assert sheet.rows == (("ada", 1.0, 0.5, 0.75, 0.5, 1.0),)


def test_tasks_asked_otherwise_have_a_row_of_their_own():
    rows, _, _ = lines(
        task("a", [1.0]),
        task("a", [0.0], how="strict"),
        task("b", [0.0], model="ben", run="2026-ben-1"),
        task("b", [0.0], limit=5, run="2026-ada-2"),
    )
    assert [row.name for row in rows] == ["ada 1", "ada, strict", "ben", "ada 2"]
    assert [list(row.tasks) for row in rows] == [["a"], ["a"], ["b"], ["b"]]


def test_roles_that_are_not_named_may_differ_within_a_row():
    def asked(level, **roles):
        one = task(level, [1.0])
        one.summary.roles = roles
        one.manifest.roles = {
            role: SimpleNamespace(identity={"model": model}) for role, model in roles.items()
        }
        return one

    tasks = [asked("a", predictor="p"), asked("b", predictor="p", verifier="v")]
    assert [len(row.tasks) for row in GRID.rows(tasks, ())] == [1, 1]
    grid = replace(GRID, roles=("predictor",))
    assert [len(row.tasks) for row in grid.rows(tasks, ())] == [2]
    tasks = [asked("a", predictor="p"), asked("b", predictor="q")]
    assert [len(row.tasks) for row in grid.rows(tasks, ())] == [1, 1]


def test_a_second_task_of_a_cell_begins_another_row_and_tasks_of_no_cell_are_left_out():
    rows, _, _ = lines(task("a", [1.0]), task("a", [0.0]), task("c", [1.0]))
    assert [row.name for row in rows] == ["ada quiz_a", "ada quiz_a"]


def test_a_cell_with_too_many_unreadable_units_is_withheld_with_its_causes():
    values = [1.0] * 8 + ["no_json", "timeout"]
    rows, made, cells = lines(task("a", values), task("b", [1.0, 1.0]))
    assert made[0].cells == {"a": None, "b": 1.0}
    assert GRID.remarks(rows[0], "right", made[0]) == [
        "ada, a: 2 of 10 questions could not be read (no_json 1, timeout 1), over 15%",
        "ada: no average without all cells; not shown: 1 of 2",
    ]
    readable = GRID.line_of_readable(rows[0], "right", cells, "ada")
    assert (readable.cells["a"], readable.average.value) == (1.0, 1.0)
    assert GRID.line_of_readable(rows[0], "right", cells, "ada", but={"a"}).average.value is None


def test_up_to_the_share_unreadable_units_count_0():
    [column] = score_columns(task("a", [1.0] * 17 + ["x"] * 3).scores(), ("right",)).values()
    assert (column.counted, column.dropped, column.unreadable) == (0.85, 1.0, 3)


def test_a_row_without_all_cells_has_no_average():
    _, made, _ = lines(task("a", [1.0, 0.0]), task("b", [1.0, 1.0], model="ben"))
    assert [line.average.why for line in made] == [
        "no average without all cells; not there: 1 of 2"
    ] * 2
    assert GRID.sheet("right", made, ["a"]).columns == ("model", "A")


def test_no_unit_at_all_is_a_reason_too():
    _, made, _ = lines(task("a", []))
    assert made[0].average == Average(why="no unit has a value")


def published(model, task, value):
    return PublishedResult(task=task, metric="right", model=model, value=value, source="Table 1")


def test_published_results_become_lines_with_the_average_of_the_group():
    cells = {"quiz_a": "a", "quiz_b": "b"}
    found = published_lines(
        [published("X", "quiz_a", 0.5), published("X", "quiz", 0.4), published("Y", "quiz_b", 0.1)],
        lambda one: cells.get(one.task),
    )
    assert found == [
        Line(names=("published: X",), cells={"a": 0.5}, average=Average(value=0.4)),
        Line(names=("published: Y",), cells={"b": 0.1}),
    ]


@pytest.mark.parametrize(
    ("average", "named"),
    [(0.35, ["X", "W"]), (0.9, ["X"]), (0.05, ["Z"]), (0.3, ["Z", "V"])],
)
def test_neighbours_are_next_by_average_and_of_equal_ones_by_cells(average, named):
    every = [
        Line(names=(name,), cells={"a": cell}, average=Average(value=value))
        for name, cell, value in (
            ("X", 0.5, 0.4), ("W", 0.4, 0.3), ("Z", 0.1, 0.3), ("V", 0.1, 0.2), ("none", 0.3, None),
        )
    ]  # fmt: skip
    if average == 0.05:
        every = every[:3]
    assert [line.names[0] for line in neighbours(every, average)] == named


def test_units_of_one_cluster_move_together_in_all_cells():
    # Whichever of the two items are drawn, the means of the two cells cancel each other.
    even = ScoreColumn(clusters=("i", "j"), values=(1.0, -1.0))
    odd = ScoreColumn(clusters=("i", "j"), values=(-1.0, 1.0))
    drawn = interval_of_means([even, odd], seed=0, draws=500, confidence=0.95)
    assert drawn == Interval(0.0, 0.0)
    # Of three cells that agree, all are high in a quarter of the draws, and not in a 64th.
    drawn = interval_of_means([even, even, even], seed=0, draws=500, confidence=0.95)
    assert drawn == Interval(-1.0, 1.0)


def test_cells_count_alike_in_the_interval_whatever_their_units():
    # Cell one has i three times and cell two once: i alone gives (1 + -1) / 2 and not 1/2.
    first = ScoreColumn(clusters=("i", "i", "i", "j"), values=(1.0, 1.0, 1.0, 1.0))
    second = ScoreColumn(clusters=("i", "j"), values=(-1.0, None))
    drawn = interval_of_means([first, second], seed=0, draws=500, confidence=0.95)
    # j alone gives (1 + 0) / 2, its unreadable group counted 0.
    assert drawn == Interval(0.0, 0.5)


def test_without_two_clusters_or_without_a_cell_in_a_draw_there_is_no_interval():
    one = ScoreColumn(clusters=("i",), values=(1.0,))
    other = ScoreColumn(clusters=("j",), values=(1.0,))
    assert interval_of_means([one], seed=0, draws=9, confidence=0.95) == NoInterval(
        "fewer than two items: there is nothing to draw from"
    )
    drawn = interval_of_means([one, other], seed=0, draws=500, confidence=0.95)
    assert isinstance(drawn, NoInterval)
    assert "has no value in" in drawn.reason
