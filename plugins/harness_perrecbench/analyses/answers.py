"""Analyses of answers: ptc against rating errors, as in Figure 3, and position bias."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from harness.analysis.result_grid import additions, row_name
from harness.analysis.score_columns import score_columns
from harness.contracts.report import Axis, Figure, Points, Report, Sheet
from harness_perrecbench.analyses.grid import no_task, rows_of, setting_of
from harness_perrecbench.paper import COLUMN, OURS, TAU_NOTES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

ALONE = "behaviours"
GROUPS = "groups"
ERRORS = ("MAE", "RMSE")
FEWEST = 3
"""Any two configurations correlate perfectly."""

MOST_NAMED = 15
"""With more configurations, the dots have no names."""


class Configuration(NamedTuple):
    """A model in one setting, with its ptc at a level and the errors of its predictions.

    `source` is what the errors are over: single behaviours, or the members of the same groups.
    """

    model: str
    setting: str
    level: str
    groups: int
    ptc: float | None
    mae: float | None
    rmse: float | None
    source: str
    predicted: int
    published: float | None


Pairs: TypeAlias = "Mapping[tuple[str, str], list[tuple[float, float, Configuration]]]"


def errors(tasks: Sequence[FinishedTask], options: object) -> Report:
    """Pearson's r over configurations at each level, and a figure for MAE and for RMSE."""
    found = list(configurations(tasks))
    if not found:
        raise no_task(
            tasks,
            "no task predicts ratings of groups",
            expected="a task with ask: pointwise, ideally with a task with ask: rating",
        )
    sheet = Sheet(
        title="Configurations: ptc, and errors of predicted ratings",
        columns=("model", "setting", "level", "groups", "ptc", *ERRORS, "of", "predicted", COLUMN),
        rows=tuple(found),
        notes=(
            f"MAE and RMSE: of {ALONE}, from a task with ask: rating in the same setting; without "
            f"one, of {GROUPS}, from the pointwise task itself",
            "unreadable groups count 0 in ptc; MAE and RMSE leave out unreadable answers",
        ),
        digits=3,
    )
    pairs = {name: pairs_of(found, name) for name in ERRORS}
    return Report(
        sheets=(sheet, correlations(pairs)),
        figures=tuple(figures(pairs, named=len(found) <= MOST_NAMED)),
        notes=TAU_NOTES,
    )


def configurations(tasks: Sequence[FinishedTask]) -> Iterator[Configuration]:
    """Each pointwise task, with the errors of the rating task in the same setting if it exists."""
    alone = {_asked(task): task for task in tasks if task.options.ask == "rating"}
    pointwise = [task for task in tasks if task.options.ask == "pointwise"]
    runs = additions(pointwise)
    times = Counter(map(_named, pointwise))
    for task in pointwise:
        key = _asked(task)
        apart = runs[task.run] if times[_named(task)] > 1 else ""
        taus = score_columns(task.scores(), (OURS, COLUMN))
        own = score_columns(alone.get(key, task).scores(), ("mae", "squared_error"))
        square = own["squared_error"].dropped
        yield Configuration(
            model=row_name(task.manifest.label, apart, ""),
            setting=setting_of(task) or "same as the nine tasks",
            level=task.options.level,
            groups=len(taus[OURS].values),
            ptc=taus[OURS].counted,
            published=taus[COLUMN].counted,
            mae=own["mae"].dropped,
            rmse=None if square is None else square**0.5,
            predicted=len(own["mae"].readable),
            source=ALONE if key in alone else GROUPS,
        )


def pairs_of(found: Sequence[Configuration], name: str) -> Pairs:
    """Error and ptc of the configurations that have both, by level and source of the errors."""
    both = defaultdict(list)
    for one in found:
        error = one.mae if name == "MAE" else one.rmse
        if one.ptc is not None and error is not None:
            both[one.level, one.source].append((error, one.ptc, one))
    return both


def correlations(pairs: Mapping[str, Pairs]) -> Sheet:
    """A sheet with Pearson's r of ptc and each error, by level and source of the errors."""
    rows: list[tuple[Cell, ...]] = [
        (name, level, source, len(both), *pearson([(error, ptc) for error, ptc, _ in both]))
        for name, of_error in pairs.items()
        for (level, source), both in of_error.items()
    ]
    return Sheet(
        title="Pearson's r with ptc, over configurations",
        columns=("error", "level", "of", "configurations", "r", "95% interval"),
        rows=tuple(rows),
        notes=(
            f"r needs {FEWEST} configurations or more, and two variables that vary",
            "intervals by Fisher's z, from four configurations on, as if no two shared a model",
        ),
        digits=2,
    )


def pearson(both: Sequence[tuple[float, float]]) -> tuple[float | None, str | None]:
    """Pearson's r of pairs and its interval; None if there are too few pairs or it is undefined."""
    from harness.scoring.stats import Interval, Undefined, fisher_interval
    from harness.scoring.stats import pearson as pearson_of

    if len(both) < FEWEST:
        return None, None
    r = pearson_of(*zip(*both, strict=True))
    if isinstance(r, Undefined):
        return None, None
    interval = fisher_interval(r, len(both))
    if not isinstance(interval, Interval):
        return r, None
    return r, f"{interval.low:.2f} to {interval.high:.2f}"


def figures(pairs: Mapping[str, Pairs], *, named: bool) -> Iterator[Figure]:
    """A figure for each error, with a dot per configuration."""
    note = "each dot is a model in one setting, as listed in the first table"
    for name, of_error in pairs.items():
        marks = []
        for (level, source), both in of_error.items():
            x, y, of = zip(*both, strict=True)
            names = tuple(row_name(one.model, "", one.setting) for one in of) if named else ()
            marks.append(Points(label=f"{level}, of {source}", x=x, y=y, names=names))
        if marks:
            yield Figure(
                title=f"ptc and {name} of configurations",
                x=Axis(label=name),
                y=Axis(label="ptc"),
                marks=tuple(marks),
                note=note if named else f"{note}; more than {MOST_NAMED} dots have no names",
            )


def _asked(task: FinishedTask) -> tuple[Any, ...]:
    """The settings that a rating task shares with its pointwise task."""
    manifest = task.manifest
    origin = task.entry.data.get("origin")
    return manifest.model, setting_of(task), origin, manifest.limit, manifest.seed


def _named(task: FinishedTask) -> tuple[str, ...]:
    """The name of a configuration, without its run."""
    return task.manifest.label, setting_of(task), task.options.level


COLUMNS = (
    "groups", "answers", "first", "first %", "pairs", "read twice", "contrary", "contrary %",
    "undecided", "undecided %",
)  # fmt: skip
SHARES = {"first %": "answers", "contrary %": "read twice", "undecided %": "pairs"}
"""Share → the column of its denominator."""

NOTES = (
    "answers: readable answers; first: answers that name the first user, where 50% means no "
    "position bias",
    "contrary: pairs that were read in both orders, and whose answers name different users",
    "undecided: pairs without a preference, because they are contrary or unreadable",
    "shares are over all answers or pairs; the metrics of a task are means over its groups",
)


def positions(tasks: Sequence[FinishedTask], options: object) -> Report:
    """The report of `perrec-positions`: a row for each model and level, and one for all levels."""
    rows: list[tuple[Cell, ...]] = []
    for row in rows_of(tasks, ()):
        levels: dict[str, Counter[str]] = {
            level: tally_of(task) for (level, ask), task in row.tasks.items() if ask == "pairwise"
        }
        if len(levels) > 1:
            levels["all"] = sum(levels.values(), Counter())
        for level, tally in levels.items():
            shares = {
                share: 100 * tally[share.removesuffix(" %")] / tally[whole]
                if tally[whole]
                else None
                for share, whole in SHARES.items()
            }
            rows.append((row.name, level, *(shares.get(name, tally[name]) for name in COLUMNS)))
    if not rows:
        raise no_task(tasks, "no task asks pairwise", expected="a task with ask: pairwise")
    sheet = Sheet(
        title="Pairwise answers by position",
        columns=("model", "level", *COLUMNS),
        rows=tuple(rows),
        notes=NOTES,
    )
    return Report(sheets=(sheet,))


def tally_of(task: FinishedTask) -> Counter[str]:
    """The counts of a task's comparisons; failed groups have none."""
    tally: Counter[str] = Counter()
    for _, compared in task.records("compare").values():
        tally["groups"] += 1
        for one in compared.comparisons:
            tally["answers"] += len(one.sides)
            tally["first"] += one.sides.count("A")
            tally["pairs"] += 1
            tally["read twice"] += len(one.sides) == 2
            tally["contrary"] += len(one.sides) == 2 and one.forth == one.back
            tally["undecided"] += one.preferred is None
    return tally
