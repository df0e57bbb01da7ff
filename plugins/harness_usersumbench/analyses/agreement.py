"""The agreement of Q_s with people's ratings, and of the raters with each other: Table 2."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness_usersumbench.analyses.rated import RatedTask, RatingOptions, rated_tasks
from harness_usersumbench.paper import TABLES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness.scoring.stats import Interval, NoInterval

POOLED = "all raters"

AGREEMENT_NOTES = (
    "TP: Q_s and the rater say good; FP: Q_s says good and the rater bad; FN: Q_s says bad and the "
    "rater good; TN: both say bad; MAA: (TP + TN) of all",
    "a user's summary that several people rated is drawn with all its ratings",
)


def agree(tasks: Sequence[FinishedTask], options: RatingOptions) -> Report:
    """The report of `usersum-agree`: by rater and pooled, and κ of raters of the same examples."""
    found, notes = rated_tasks(tasks, options)
    by_rater: list[tuple[Cell, ...]] = []
    overlaps: list[tuple[Cell, ...]] = []
    remarks: list[str] = []
    for one in found:
        raters = {**one.raters, **({POOLED: {}} if len(one.raters) > 1 else {})}
        for rater in raters:
            cells, why = agreement_cells(one, [rater] if rater != POOLED else list(one.raters))
            by_rater.append((*one.name, rater, *cells))
            remarks += [f"{', '.join((*one.name, rater))}: no interval, for {why}"] if why else []
        for first, second in combinations(one.raters, 2):
            if shared := [name for name in one.raters[first] if name in one.raters[second]]:
                cells, why = kappa_cells(one, first, second, shared)
                overlaps.append((*one.name, first, second, *cells))
                pair = ", ".join((*one.name, f"{first} and {second}"))
                remarks += [f"{pair}: {why}"] if why else []
    sheets = [
        Sheet(
            title="Q_s and people's ratings",
            columns=("model", "task", "rater", "examples", "TP", "FP", "FN", "TN",
                     "MAA %", "low", "high"),
            rows=tuple(by_rater),
            notes=(*AGREEMENT_NOTES, *remarks),
        ),
        Sheet(
            title="Raters of the same examples",
            columns=("model", "task", "rater", "other", "both rated", "same %", "κ", "low", "high"),
            rows=tuple(overlaps),
            digits=(1, 1, 1, 1, 1, 1, 2, 2, 2),
        ),
        TABLES.read("agreement").sheet(),
    ]  # fmt: skip
    return Report(sheets=tuple(sheets), notes=notes)


def agreement_cells(one: RatedTask, raters: Iterable[str]) -> tuple[tuple[Cell, ...], str]:
    """The counts and MAA with its interval over these raters, and why there is no interval."""
    from harness.scoring.stats import NoInterval, bootstrap_interval

    pairs = [
        (one.examples[name].user, one.good[name], label)
        for rater in raters
        for name, label in one.raters[rater].items()
        if name in one.good
    ]
    counts = [
        sum((good, label) == cell for _, good, label in pairs)
        for cell in ((True, True), (True, False), (False, True), (False, False))
    ]
    if not pairs:
        return (0, *counts, None, None, None), "no example has Q_s"
    same = [float(good == label) for _, good, label in pairs]
    interval = one.task.task.interval
    import numpy as np

    drawn = bootstrap_interval(
        np.array(same),
        np.array([stable_int(user) for user, _, _ in pairs], dtype=np.uint64),
        seed=stable_int("maa", one.task.manifest.seed, *one.name),
        draws=interval.draws,
        confidence=interval.confidence,
        method=interval.method,
    )
    cells = (len(pairs), *counts, 100 * sum(same) / len(same), *bounds(drawn, scale=100))
    return cells, drawn.reason if isinstance(drawn, NoInterval) else ""


def kappa_cells(
    one: RatedTask, first: str, second: str, shared: Sequence[str]
) -> tuple[tuple[Cell, ...], str]:
    """The agreement of two raters over the examples of both, and why κ or its interval is missing."""
    from harness.scoring.stats import NoInterval, Undefined, agreement_of, kappa_interval

    ours, theirs = ([one.raters[rater][name] for name in shared] for rater in (first, second))
    found = agreement_of(ours, theirs)
    same = 100 * found.same / found.n
    if isinstance(found.kappa, Undefined):
        return (found.n, same, None, None, None), f"κ is undefined: {found.kappa.reason}"
    interval = one.task.task.interval
    drawn = kappa_interval(
        ours,
        theirs,
        [one.examples[name].user for name in shared],
        seed=stable_int("kappa", one.task.manifest.seed, *one.name),
        draws=interval.draws,
        confidence=interval.confidence,
        method=interval.method,
    )
    why = f"no interval, for {drawn.reason}" if isinstance(drawn, NoInterval) else ""
    return (found.n, same, found.kappa, *bounds(drawn)), why


def bounds(
    drawn: Interval | NoInterval, *, scale: float = 1.0
) -> tuple[float | None, float | None]:
    """The two ends of an interval, None without one."""
    from harness.scoring.stats import NoInterval

    if isinstance(drawn, NoInterval):
        return None, None
    return scale * drawn.low, scale * drawn.high
