"""ptc by examples and retrieved behaviours, as in Figure 6."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from harness.analysis.result_grid import additions, mean_of
from harness.analysis.score_columns import score_columns
from harness.contracts.report import Axis, Figure, Grid, Report, Sheet
from harness_perrecbench.analyses.grid import GRID, no_task, ranked, setting_of
from harness_perrecbench.paper import COLUMN, OURS, TAU_NOTES, WAYS

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness_perrecbench.records import Ask

Place: TypeAlias = tuple[int, int]
"""Numbers of examples and of retrieved behaviours."""

Values: TypeAlias = dict[Place, float | None]


def run(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `perrec-shots`: for each model and level, a map per way and one of the mean."""
    maps = {
        f"{title}, {way}: {tau}": values
        for tau in (OURS, COLUMN)
        for title, ways in grids_of(tasks, tau).items()
        for way, values in maps_of(ways).items()
    }
    if not maps:
        raise no_task(
            tasks,
            "no model has results for several numbers of examples or behaviours",
            expected="tasks that differ in the options shots or k",
        )
    shown = [abs(value) for values in maps.values() for value in values.values() if value]
    sheets, figures = [], []
    for title, values in maps.items():
        shots, ks = (sorted({place[axis] for place in values}) for axis in (0, 1))
        rows = [(str(shot), *(values.get((shot, k)) for k in ks)) for shot in shots]
        sheets.append(
            Sheet(
                title=f"{title}, unreadable groups counted 0",
                columns=("shots", *(f"k = {k}" for k in ks)),
                rows=tuple(rows),
                digits=2,
            )
        )
        if not title.endswith(COLUMN):
            grid = Grid(
                label="ptc",
                across=tuple(map(str, ks)),
                down=tuple(map(str, shots)),
                values=tuple(tuple(row[1:]) for row in rows),
                deepest=max(shown, default=None),
            )
            figures.append(
                Figure(
                    title=title,
                    x=Axis(label="k"),
                    y=Axis(label="shots"),
                    marks=(grid,),
                    note="white is 0; all maps share one scale of colours",
                )
            )
    return Report(sheets=tuple(sheets), figures=tuple(figures), notes=TAU_NOTES)


def grids_of(tasks: Sequence[FinishedTask], tau: str) -> dict[str, dict[Ask, Values]]:
    """The values of each way of asking, by model, setting and level; of equal tasks the first.

    If these titles are equal for different data, what tells the runs apart is added.
    """
    found: dict[tuple[Any, ...], dict[Ask, Values]] = defaultdict(lambda: defaultdict(dict))
    runs: dict[tuple[Any, ...], FinishedTask] = {}
    for task in ranked(tasks):
        options = task.options
        setting = setting_of(task, but=("shots", "k"))
        title = ", ".join(filter(None, (task.manifest.label, setting, options.level)))
        key = (title, GRID.ground(task))
        column = score_columns(task.scores(), (tau,))[tau]
        if column.values:
            runs.setdefault(key, task)
            found[key][options.ask].setdefault((options.shots, options.k), column.counted)
    times = Counter(title for title, _ in found)
    added = additions(runs.values())
    return {
        key[0] if times[key[0]] == 1 else f"{key[0]} ({added[runs[key].run]})": ways
        for key, ways in found.items()
    }


def maps_of(ways: Mapping[Ask, Values]) -> dict[str, Values]:
    """The ways of asking in their order, and the mean of several, where all have a value.

    All have the same places; without several places there is no map.
    """
    places = {place: None for values in ways.values() for place in values}
    if len(places) < 2:
        return {}
    maps = {ask: {**places, **ways[ask]} for ask in WAYS if ask in ways}
    means = {
        place: mean_of({way: values.get(place) for way, values in ways.items()}, ways)
        for place in places
    }
    return {**maps, **({"mean": means} if len(ways) > 1 else {})}
