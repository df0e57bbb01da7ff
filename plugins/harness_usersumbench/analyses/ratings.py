"""People's ratings of summaries: their agreement with Q_s and with each other, as in Table 2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.analysis.human_labels import Pairs, kappa_cells, labels_by_rater, read_human_labels
from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness_usersumbench.analyses.examples import Example, StopShare, examples_of
from harness_usersumbench.metrics import quality
from harness_usersumbench.paper import TABLES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

CALLED = {"item": "example", "label": "rating"}
MEANING = {"good": True, "bad": False}
POOLED = "all raters"

AGREEMENT_NOTES = (
    "TP: Q_s and the rater say good; FP: Q_s says good and the rater bad; FN: Q_s says bad and the "
    "rater good; TN: both say bad; MAA: TP and TN of all; low and high: bootstrap over users",
)


class RatingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `usersum-agree`."""

    ratings: Annotated[
        tuple[str, ...], Meta(description="table of ratings: columns example, rater, rating")
    ]
    asked_in: Annotated[
        int, Meta(ge=1, description="the run of the predictor whose answers give Q_s")
    ] = 1
    stop_share: StopShare = 0.8


@dataclass(frozen=True, kw_only=True)
class RatedTask:
    """The rated examples of a task, each rater's ratings, and Q_s of the examples that have it."""

    task: FinishedTask
    examples: Mapping[str, Example]
    raters: Mapping[str, Mapping[str, bool]]
    good: Mapping[str, bool]

    @property
    def name(self) -> tuple[str, str]:
        """The model and the name of the task."""
        return self.task.label, self.task.task.name

    def seed(self, *of: str) -> int:
        """The seed of an interval."""
        return stable_int("usersum", self.task.manifest.seed, *self.name, *of)


def rated_tasks(
    tasks: Sequence[FinishedTask], options: RatingOptions
) -> tuple[list[RatedTask], tuple[str, ...]]:
    """The tasks with rated examples, and notes on what is missing.

    DataError for an example of none of the tasks, for a second rating of an example by one rater,
    and for ratings other than good and bad.
    """
    labels = read_human_labels(options.ratings, called=CALLED)
    raters = labels_by_rater(labels.rows, lambda row: row.means(MEANING, "good or bad"))
    if not raters:
        raise UsageError(
            "nobody has rated anything",
            where=", ".join(options.ratings),
            expected="rows with an example, a rater, and good or bad",
            hint="give the sheet of usersum-sheet once raters have filled in rater and rating",
        )
    every = examples_of(tasks, stop_share=options.stop_share)
    for task, _ in every:
        if options.asked_in > task.options.runs:
            raise UsageError(
                f"{task.task.name} has no such run of the predictor",
                where="--asked_in",
                found=str(options.asked_in),
                expected=f"1 to {task.options.runs}",
                hint="leave it out to take the first",
            )
    for row in labels.rows:
        if not any(row.item in examples for _, examples in every):
            raise row.bad(
                "item", row.item, "an example of these runs and tasks: give all that the sheet has"
            )
    found = [_rated(task, examples, raters, options.asked_in) for task, examples in every]
    notes = [
        f"{', '.join(one.name)}: rated examples without Q_s, left out: {without:,}"
        for one in found
        if (without := len(one.examples) - len(one.good))
    ]
    notes += [f"rows without a rating: {blank:,}"] if (blank := labels.blank.total()) else []
    return [one for one in found if one.examples], tuple(notes)


def agree(tasks: Sequence[FinishedTask], options: RatingOptions) -> Report:
    """The report of `usersum-agree`: by rater and pooled, and κ of raters of the same examples."""
    found, notes = rated_tasks(tasks, options)
    by_rater: list[tuple[Cell, ...]] = []
    overlaps: list[tuple[Cell, ...]] = []
    remarks: list[str] = []
    for one in found:
        pooled = {POOLED: list(one.raters)} if len(one.raters) > 1 else {}
        for rater, of in ({name: [name] for name in one.raters} | pooled).items():
            cells, why = agreement(one, of)
            by_rater.append((*one.name, rater, *cells))
            remarks += [f"{', '.join(one.name)}, {rater}: {reason}" for reason in why]
        for pair in combinations(one.raters, 2):
            cells, why = overlap(one, *pair)
            overlaps += [(*one.name, *pair, *cells)] if cells else []
            remarks += [f"{', '.join(one.name)}, {' and '.join(pair)}: {each}" for each in why]
    return Report(
        sheets=(
            Sheet(
                title="Q_s and people's ratings",
                columns=("model", "task", "rater", "ratings", "TP", "FP", "FN", "TN",
                         "MAA %", "low", "high"),
                rows=tuple(by_rater),
                notes=AGREEMENT_NOTES,
            ),
            Sheet(
                title="Raters of the same examples",
                columns=("model", "task", "rater", "other", "both rated", "alike, %",
                         "Cohen's κ", "interval"),
                rows=tuple(overlaps),
                notes=tuple(remarks),
                digits=(1, 1, 1, 1, 1, 1, 2, 1),
            ),
            TABLES.read("agreement").sheet(),
        ),
        notes=notes,
    )  # fmt: skip


def agreement(one: RatedTask, raters: Sequence[str]) -> tuple[tuple[Cell, ...], list[str]]:
    """The ratings of these raters, the four counts, and MAA with its interval."""
    both = [
        (one.good[name], label, one.examples[name].user)
        for rater in raters
        for name, label in one.raters[rater].items()
        if name in one.good
    ]
    said = Counter((good, label) for good, label, _ in both)
    counts = (said[True, True], said[True, False], said[False, True], said[False, False])
    cells, why = share_cells(both, one.task, seed=one.seed("maa", *raters))
    return (len(both), *counts, *cells), why


def overlap(one: RatedTask, first: str, second: str) -> tuple[tuple[Cell, ...], list[str]]:
    """The number of examples of both raters, and their agreement; no cells without an example."""
    both = [
        (label, one.raters[second][name], one.examples[name].user)
        for name, label in one.raters[first].items()
        if name in one.raters[second]
    ]
    cells, why = kappa_cells(both, one.task, seed=one.seed("kappa", first, second))
    return ((len(both), *cells), why) if both else ((), [])


def _rated(
    task: FinishedTask,
    examples: Mapping[str, Example],
    raters: Mapping[str, Mapping[str, bool]],
    asked_in: int,
) -> RatedTask:
    """The examples of a task that are rated, with Q_s of one run of the predictor."""
    rated = {name for given in raters.values() for name in given}
    known = {name: one for name, one in examples.items() if name in rated}
    right = {
        one.user: one.details.right[asked_in - 1 :][:1] for one in task.scores() if one.details
    }
    qualities = {
        name: quality(answers, task.options.threshold)
        for name, one in known.items()
        for answers in right[one.user]
    }
    own = {rater: {name: given[name] for name in known if name in given}
           for rater, given in raters.items()}  # fmt: skip
    return RatedTask(
        task=task,
        examples=known,
        raters={rater: given for rater, given in own.items() if given},
        good={name: value == 1.0 for name, value in qualities.items() if value is not None},
    )


def share_cells(
    both: Pairs, task: FinishedTask, *, seed: int
) -> tuple[tuple[Cell, ...], list[str]]:
    """The share of equal labels in %, and the bounds of its interval over users."""
    import numpy as np

    from harness.scoring.stats import Interval, bootstrap_interval

    if not both:
        return (None, None, None), ["nothing was labelled by both"]
    same = np.array([100.0 * (first == second) for first, second, _ in both])
    users = np.array([stable_int(user) for *_, user in both], dtype=np.uint64)
    settings = msgspec.structs.asdict(task.task.interval)
    drawn = bootstrap_interval(same, users, seed=seed, **settings)
    if not isinstance(drawn, Interval):
        return (float(same.mean()), None, None), [f"no interval: {drawn.reason}"]
    return (float(same.mean()), drawn.low, drawn.high), []
