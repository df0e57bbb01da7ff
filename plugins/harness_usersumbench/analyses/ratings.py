"""People's ratings of summaries: their agreement with Q_s and with each other, as in Table 2."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from harness.analysis.human_labels import labels_by_rater, read_human_labels
from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness_usersumbench.analyses.examples import Example, StopShare, examples_of
from harness_usersumbench.metrics import quality
from harness_usersumbench.paper import TABLES

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell
    from harness.scoring.stats import Interval, NoInterval

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

    def users(self, names: Iterable[str]) -> list[str]:
        """The user of each of these examples."""
        return [self.examples[name].user for name in names]

    def drawn(self, *of: str) -> dict[str, Any]:
        """How an interval is drawn, with a seed for what it is of."""
        seed = stable_int("usersum", self.task.manifest.seed, *self.name, *of)
        return {"seed": seed, **msgspec.structs.asdict(self.task.task.interval)}


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
        )
    every = examples_of(tasks, stop_share=options.stop_share)
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
    doubts: list[str] = []
    for one in found:
        pooled = {POOLED: list(one.raters)} if len(one.raters) > 1 else {}
        for rater, of in ({name: [name] for name in one.raters} | pooled).items():
            cells, why = agreement(one, of)
            by_rater.append((*one.name, rater, *cells))
            remarks += [f"{', '.join(one.name)}, {rater}: {why}"] if why else []
        for pair in combinations(one.raters, 2):
            cells, why = overlap(one, *pair)
            overlaps += [(*one.name, *pair, *cells)] if cells else []
            doubts += [f"{', '.join(one.name)}, {' and '.join(pair)}: {why}"] if why else []
    return Report(
        sheets=(
            Sheet(
                title="Q_s and people's ratings",
                columns=("model", "task", "rater", "ratings", "TP", "FP", "FN", "TN",
                         "MAA %", "low", "high"),
                rows=tuple(by_rater),
                notes=(*AGREEMENT_NOTES, *remarks),
            ),
            Sheet(
                title="Raters of the same examples",
                columns=("model", "task", "rater", "other", "both rated", "same %",
                         "κ", "low", "high"),
                rows=tuple(overlaps),
                notes=tuple(doubts),
                digits=(1, 1, 1, 1, 1, 1, 2, 2, 2),
            ),
            TABLES.read("agreement").sheet(),
        ),
        notes=notes,
    )  # fmt: skip


def agreement(one: RatedTask, raters: Sequence[str]) -> tuple[tuple[Cell, ...], str]:
    """The counts and MAA of these raters with its interval, and why there is none."""
    import numpy as np

    from harness.scoring.stats import bootstrap_interval

    rated = [
        (name, one.good[name], label)
        for rater in raters
        for name, label in one.raters[rater].items()
        if name in one.good
    ]
    said = [(good, label) for _, good, label in rated]
    counts = [said.count(cell) for cell in ((True, True), (True, False), (False, True))]
    counts.append(len(said) - sum(counts))
    if not said:
        return (0, *counts, None, None, None), "no example has Q_s"
    same = np.array([100.0 * (good == label) for good, label in said])
    users = [stable_int(user) for user in one.users(name for name, *_ in rated)]
    drawn = bootstrap_interval(same, np.array(users, dtype=np.uint64), **one.drawn("maa", *raters))
    bounds, why = ends(drawn)
    return (len(said), *counts, float(same.mean()), *bounds), why


def overlap(one: RatedTask, first: str, second: str) -> tuple[tuple[Cell, ...], str]:
    """The agreement of two raters over the examples of both, and why κ or its interval is missing;
    no cells without such an example."""
    from harness.scoring.stats import Undefined, agreement_of, kappa_interval

    shared = [name for name in one.raters[first] if name in one.raters[second]]
    if not shared:
        return (), ""
    ours, theirs = ([one.raters[rater][name] for name in shared] for rater in (first, second))
    found = agreement_of(ours, theirs)
    known = (found.n, 100 * found.same / found.n)
    if isinstance(found.kappa, Undefined):
        return (*known, None, None, None), f"κ is undefined: {found.kappa.reason}"
    bounds, why = ends(
        kappa_interval(ours, theirs, one.users(shared), **one.drawn("kappa", first, second))
    )
    return (*known, found.kappa, *bounds), why


def ends(drawn: Interval | NoInterval) -> tuple[tuple[float | None, float | None], str]:
    """The ends of an interval, and why there is none."""
    from harness.scoring.stats import NoInterval

    if isinstance(drawn, NoInterval):
        return (None, None), f"no interval, for {drawn.reason}"
    return (drawn.low, drawn.high), ""


def _rated(
    task: FinishedTask,
    examples: Mapping[str, Example],
    raters: Mapping[str, Mapping[str, bool]],
    asked_in: int,
) -> RatedTask:
    own = {
        rater: {name: label for name, label in given.items() if name in examples}
        for rater, given in raters.items()
    }
    found = {
        name: examples[name] for name in sorted({one for given in own.values() for one in given})
    }
    right = {one.user: one.details.right[asked_in - 1 : asked_in] for one in task.scores()}
    values = {
        name: quality(answers, task.options.threshold)
        for name, one in found.items()
        for answers in right.get(one.user, ())
    }
    return RatedTask(
        task=task,
        examples=found,
        raters={rater: given for rater, given in own.items() if given},
        good={name: bool(value) for name, value in values.items() if value is not None},
    )
