"""Scores and ranks under other thresholds, from stored verdicts alone: no model is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import msgspec

from harness.analysis.percentages import percent
from harness.contracts.report import Axis, Figure, Report, Sheet
from harness_gistbench.analyses.compared_runs import (
    TITLES,
    ComparisonOptions,
    Run,
    compare,
    curves,
    people,
    rescored,
    results,
)
from harness_gistbench.metrics import NOT_ASKED
from harness_gistbench.records import Signal

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.scoring.summary import MetricResult

Threshold: TypeAlias = Literal[
    "min_explicit_positive",
    "min_implicit_positive",
    "mixed_explicit_positive",
    "mixed_implicit_positive",
    "max_implicit_negative",
    "max_explicit_negative",
]
Found: TypeAlias = "Mapping[str, Mapping[str, MetricResult]]"
"""The scores of each model."""

NEEDS: dict[Threshold, frozenset[Signal]] = {
    "min_explicit_positive": frozenset({"explicit_positive"}),
    "min_implicit_positive": frozenset({"implicit_positive"}),
    "mixed_explicit_positive": frozenset({"explicit_positive", "implicit_positive"}),
    "mixed_implicit_positive": frozenset({"explicit_positive", "implicit_positive"}),
    "max_implicit_negative": frozenset({"implicit_negative"}),
    "max_explicit_negative": frozenset({"explicit_negative"}),
}
"""The six numbers, each with the signals that a dataset must have for it to matter."""

SCORES = ("ig_f1", "is")
MEDIAN, RANK = "median", "rank"
NOT_ASKED_TITLE = "users without IS, for the retrieval was not asked"
STATED = (
    "the prompts stated the numbers that were asked with: had they stated others, the models might "
    "have answered otherwise"
)
NOTES = (
    "one number is varied at a time, and the oracle is rebuilt each time",
    "rank 1 is best, equal scores share a rank",
)
NOT_ASKED_NOTE = (
    "where looser numbers verify a category of which the run asked no retrieval, the user has no "
    "IS, which is not an IS of 0; runs made with `ask_all` have none of these"
)


class ThresholdOptions(ComparisonOptions, frozen=True, kw_only=True):
    """How far the numbers are varied, and which of them."""

    steps: Annotated[
        int, msgspec.Meta(ge=1, le=10, description="how far to go to either side of a number")
    ] = 2
    threshold: Annotated[
        tuple[Threshold, ...], msgspec.Meta(description="vary this number and no other")
    ] = ()


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One number changed, and the scores of each model under it."""

    threshold: Threshold
    value: int
    stated: bool
    found: Found

    def numbers(self) -> dict[tuple[str, str], dict[str, float | None]]:
        """By kind and score, each model's number; None where its score is not shown."""
        scores = {
            name: {model: percent(of[name].value) for model, of in self.found.items()}
            for name in SCORES
        }
        not_asked = {model: of["is"].missing.get(NOT_ASKED, 0) for model, of in self.found.items()}
        return {
            **{(MEDIAN, name): of_models for name, of_models in scores.items()},
            **{(RANK, name): ranks(of_models) for name, of_models in scores.items()},
            (NOT_ASKED_TITLE, "is"): {**not_asked},
        }


def ranks(scores: Mapping[str, float | None]) -> dict[str, float | None]:
    """Each model's rank by its score."""
    known = [score for score in scores.values() if score is not None]
    return {
        model: None if score is None else 1 + sum(other > score for other in known)
        for model, score in scores.items()
    }


def run(tasks: Sequence[FinishedTask], options: ThresholdOptions) -> Report:
    """Each number varied alone, for every dataset."""
    compared = compare(tasks, options)
    sheets: list[Sheet] = []
    figures: list[Figure] = []
    notes = [STATED, *compared.oracle_notes(), *compared.notes]
    for dataset, together in compared.by_dataset().items():
        held = [replace(one, scores=list(one.scores()).copy) for one in together]
        signals = {one for run in held for _, profile in run.profiles() for one in profile.signals}
        settings = []
        found = found_of(held)
        for name in dict.fromkeys(options.threshold or NEEDS):
            if NEEDS[name] <= signals:
                varied = list(vary(held, name, options.steps, as_stated=found))
                settings += varied
                figures += figures_of(dataset, varied)
            else:
                notes.append(f"{dataset}: {name} does nothing, for the data has no such signal")
        sheets += tables(dataset, settings)
    return Report(
        sheets=(*sheets, people(compared.runs)), figures=tuple(figures), notes=tuple(notes)
    )


def found_of(runs: Sequence[Run]) -> Found:
    """The scores of each model against what the runs verified together."""
    return {one.model: results(one, scores) for one, scores in rescored(runs)}


def vary(
    runs: Sequence[Run], name: Threshold, steps: int, *, as_stated: Found
) -> Iterator[Setting]:
    """All runs under each value of one number, the others as they were stated."""
    stated = {getattr(one.options.verification, name) for one in runs}
    least = 0 if name.startswith("max") else 1
    for value in range(max(least, min(stated) - steps), max(stated) + steps + 1):
        changed = []
        for one in runs:
            numbers = msgspec.structs.replace(one.options.verification, **{name: value})
            options = msgspec.structs.replace(one.options, verification=numbers)
            changed.append(replace(one, options=options))
        yield Setting(
            threshold=name,
            value=value,
            stated=value in stated,
            found=as_stated if stated == {value} else found_of(changed),
        )


def tables(dataset: str, settings: Sequence[Setting]) -> Iterator[Sheet]:
    """Scores, ranks and missing retrievals: a row a setting, a column a model."""
    numbers = [one.numbers() for one in settings]
    titles = {
        **{(MEDIAN, name): (f"{TITLES[name]}, medians in %", NOTES) for name in SCORES},
        **{(RANK, name): (f"ranks by {TITLES[name]}", ()) for name in SCORES},
        (NOT_ASKED_TITLE, "is"): (NOT_ASKED_TITLE, (NOT_ASKED_NOTE,)),
    }
    for key, (title, notes) in titles.items():
        yield Sheet(
            title=f"{dataset}: {title}",
            columns=("threshold", "asked with", *(settings[0].found if settings else ())),
            rows=tuple(
                (f"{one.threshold} {one.value}", "yes" if one.stated else "", *of[key].values())
                for one, of in zip(settings, numbers, strict=True)
            ),
            notes=notes,
        )


def figures_of(dataset: str, settings: Sequence[Setting]) -> Iterator[Figure]:
    """Scores and ranks over the values of one number, a curve a model; rank 1 is at the top."""
    threshold, models = settings[0].threshold, list(settings[0].found)
    numbers = [(one.value, one.numbers()) for one in settings]
    for name in SCORES:
        for kind, axis in (
            (MEDIAN, Axis(label=f"{TITLES[name]} (median), %")),
            (RANK, Axis(label=f"rank by {TITLES[name]}", low=len(models) + 0.5, high=0.5)),
        ):
            yield Figure(
                title=f"{dataset}: {axis.label} by {threshold}",
                x=Axis(label=threshold, ticks=tuple(value for value, _ in numbers)),
                y=axis,
                marks=curves(
                    {
                        model: [(value, of[kind, name][model]) for value, of in numbers]
                        for model in models
                    }
                ),
                note=STATED,
            )
