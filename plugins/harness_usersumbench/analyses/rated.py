"""People's ratings of summaries, matched with the quality Q_s of the same summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from harness.analysis.human_labels import HumanLabels, labels_by_rater, read_human_labels, votes_of
from harness.base.errors import UsageError
from harness_usersumbench.analyses.examples import Example, examples_of, summarising
from harness_usersumbench.analyses.rating_sheet import StopShare
from harness_usersumbench.analyses.results import qualities

if TYPE_CHECKING:
    from harness import FinishedTask

CALLED = {"item": "example", "label": "rating"}
MEANING = {"good": True, "bad": False}


class RatingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options that the analyses of ratings share."""

    ratings: Annotated[
        tuple[str, ...], Meta(description="table of ratings: columns example, rater, rating")
    ]
    asked_in: Annotated[
        int, Meta(ge=1, description="the run of the predictor whose answers give Q_s")
    ] = 1
    stop_share: StopShare = 0.8


@dataclass(frozen=True, kw_only=True)
class RatedTask:
    """The rated examples of one task: the ratings of each rater by example, and Q_s by example.

    An example without Q_s has questions that could not be read, and is not in `good`.
    """

    task: FinishedTask
    examples: Mapping[str, Example]
    raters: Mapping[str, Mapping[str, bool]]
    good: Mapping[str, bool]

    @property
    def name(self) -> tuple[str, str]:
        """The model and the name of the task."""
        return self.task.label, self.task.task.name

    def shares(self) -> dict[str, float]:
        """The share of raters who call each example good."""
        return {name: votes[True] / votes.total() for name, votes in votes_of(self.raters).items()}


def rated_tasks(
    tasks: Sequence[FinishedTask], options: RatingOptions
) -> tuple[list[RatedTask], tuple[str, ...]]:
    """The tasks with rated examples, and what to say about the ratings that are not used.

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
    every = {
        number: {one.name: one for one in examples_of(task, stop_share=options.stop_share)}
        for number, task in enumerate(summarising(tasks))
    }
    _refuse_unknown(labels, {name for examples in every.values() for name in examples})
    found, notes = [], []
    for number, task in enumerate(summarising(tasks)):
        rated = {
            rater: {name: label for name, label in given.items() if name in every[number]}
            for rater, given in raters.items()
        }
        good = qualities(task, run=options.asked_in)
        names = {name for given in rated.values() for name in given}
        examples = {name: every[number][name] for name in sorted(names)}
        if names:
            one = RatedTask(
                task=task,
                examples=examples,
                raters={rater: given for rater, given in rated.items() if given},
                good={
                    name: good[each.user] for name, each in examples.items() if each.user in good
                },
            )
            found.append(one)
            if without := len(names) - len(one.good):
                notes.append(
                    f"{task.label}, {task.task.name}: rated examples without Q_s: {without:,}"
                )
    if blank := labels.blank.total():
        notes.append(f"rows without a rating: {blank:,}")
    return found, tuple(notes)


def _refuse_unknown(labels: HumanLabels, known: set[str]) -> None:
    """Raise DataError for the first rating of an example that no task has."""
    for row in labels.rows:
        if row.item not in known:
            raise row.bad("item", row.item, "an example of the runs; name all that the sheet is of")
