"""Grids of results: rows, averages, what is not shown, and published rows beside, by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from harness.analysis.result_grid import Average, Line, ResultGrid, neighbours, published_lines
from harness.analysis.score_columns import score_columns
from harness.contracts.published import PublishedResult
from harness.contracts.records import Score
from harness.contracts.task import IntervalSpec

GRID = ResultGrid(
    name="quiz",
    headings={"a": "A", "b": "B"},
    cell=lambda task: task.options.level,
    setting=lambda task: task.options.how,
    units="questions",
)


def task(level, values, *, model="ada", how="", run="2026-ada-1", limit=None, seed=0, users=None):
    """A task whose units have these values; a text is why a unit has none."""
    scores = [
        Score(id=str(number), user=user, missing={"right": one})
        if isinstance(one, str)
        else Score(id=str(number), user=user, values={"right": one})
        for number, (user, one) in enumerate(
            zip(users or [f"u{number}" for number in range(len(values))], values, strict=True)
        )
    ]
    return SimpleNamespace(
        run=run,
        manifest=SimpleNamespace(
            model=model, label=model, run_id=run, seed=seed, limit=limit, roles={}, settings={},
            groups={}, sessions=(),
        ),
        summary=SimpleNamespace(roles={}),
        options=SimpleNamespace(level=level, how=how),
        task=SimpleNamespace(name=f"quiz_{level}", interval=IntervalSpec(draws=200)),
        scores=lambda: iter(scores),
    )  # fmt: skip


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
        task("no column", [1.0]),
    )
    assert [row.name for row in rows] == ["ada 1", "ada, strict", "ben", "ada 2"]
    assert [list(row.tasks) for row in rows] == [["a"], ["a"], ["b"], ["b"]]
    # A second task of a cell begins another row.
    rows, _, _ = lines(task("a", [1.0]), task("a", [0.0]))
    assert [row.name for row in rows] == ["ada quiz_a", "ada quiz_a"]


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


def test_of_units_that_cannot_be_read_few_count_0_and_parts_as_in_the_metric():
    [column] = score_columns(task("a", [1.0] * 17 + ["x"] * 3).scores(), ("right",)).values()
    assert (column.counted, column.dropped, column.unreadable) == (0.85, 1.0, 3)
    scores = [
        Score(id="1", user="u", values={"right": 1.0}),
        Score(id="2", user="v", values={"right": 0.8}, lost={"right": 0.25}),
        Score(id="3", user="w", values={"right": 0.8}, lost={"right": 0.25}, worst={"right": 0.1}),
    ]
    [column] = score_columns(scores, ("right",)).values()
    # A quarter of 0.8 is missing: 0.6 is left. The third says itself what is left.
    assert [value for _, value in column.units] == pytest.approx([1.0, 0.6, 0.1])
    assert column.counted == pytest.approx(1.7 / 3)
    assert column.dropped == pytest.approx(2.6 / 3)


def test_a_row_without_all_cells_has_no_average():
    _, made, _ = lines(task("a", [1.0, 0.0]), task("b", [1.0, 1.0], model="ben"))
    found = [line.average.why for line in made]
    assert found == ["no average without all cells; not there: 1 of 2"] * 2
    assert GRID.sheet("right", made, ["a"]).columns == ("model", "A")


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
    ("average", "named"), [(0.35, ["X", "W"]), (0.9, ["X"]), (0.3, ["Z", "V"])]
)
def test_neighbours_are_next_by_average_and_of_equal_ones_by_cells(average, named):
    every = [
        Line(names=(name,), cells={"a": cell}, average=Average(value=value))
        for name, cell, value in (
            ("X", 0.5, 0.4), ("W", 0.4, 0.3), ("Z", 0.1, 0.3), ("V", 0.1, 0.2), ("none", 0.3, None),
        )
    ]  # fmt: skip
    assert [line.names[0] for line in neighbours(every, average)] == named


def ends(*tasks):
    """The bounds of the average of one row, and why there are none."""
    _, [line], _ = lines(*tasks)
    return line.average.low, line.average.high, line.average.why


def test_units_of_a_cluster_move_together_and_cells_count_alike():
    # Whichever of the two users are drawn, the means of the two cells cancel each other.
    assert ends(task("a", [1.0, -1.0]), task("b", [-1.0, 1.0])) == (0.0, 0.0, "")
    # In two cells that agree, both are high in a quarter of the draws.
    assert ends(task("a", [1.0, -1.0]), task("b", [1.0, -1.0])) == (-1.0, 1.0, "")
    # u0 has ten units in one cell and one in the other: u0 alone gives (1 - 1) / 2. Of the others,
    # u1 alone gives (1 + 0) / 2, its seventh unit in the second cell counted 0.
    first = task("a", [1.0] * 11, users=["u0"] * 10 + ["u1"])
    second = task("b", [-1.0] + [0.0] * 6 + ["x"], users=["u0"] + ["u1"] * 7)
    assert ends(first, second) == (0.0, 0.5, "")
    assert ends(task("a", [1.0])) == (
        None, None, "no interval, for fewer than two users: there is nothing to draw from",
    )  # fmt: skip
    assert ends(task("a", [])) == (None, None, "no unit has a value")
    _, _, why = ends(task("a", [1.0], users=["i"]), task("b", [1.0], users=["j"]))
    assert "has no value in" in why


def test_draws_are_those_of_the_group_whose_tasks_the_cells_are():
    values = [0.1, 0.7, 0.4, 0.9]

    def of(*groups):
        tasks = [task("a", values), task("b", values)]
        for one in tasks:
            one.manifest.groups = dict.fromkeys(groups, ("quiz_a", "quiz_b"))
            one.manifest.tasks = {"quiz_a": None, "quiz_b": None}
        return ends(*tasks)

    assert of() == of("quiz") != of("both")
    assert of("both") == of("both", "quiz")
