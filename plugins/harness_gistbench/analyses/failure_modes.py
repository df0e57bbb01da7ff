"""Why interests were not verified: what share lacked which evidence, by model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from harness.analysis.percentages import share
from harness.contracts.report import Report, Sheet
from harness_gistbench.analyses.compared_runs import Run, TableOptions, compare, published
from harness_gistbench.verification import SHORTCOMINGS, conditions, meets, shortcomings

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

COLUMNS = ("model", "interests", "no verdict", "unverified",
           "short of imp+ %", "short of exp+ %", "too negative %")  # fmt: skip
NOTE = (
    "percentages of all unverified interests, after the evidence filter; several may hold of one "
    "interest; interests whose evidence has no verdict are in no percentage"
)
POOLED = "an interest can be short of a signal only where its dataset has it: — where none has"


def run(tasks: Sequence[FinishedTask], options: TableOptions) -> Report:
    """The failure modes of each model, over all datasets and in each."""
    compared = compare(tasks, options)
    tallies = {(run.dataset, run.model): tally(run) for run in compared.runs}
    datasets = compared.by_dataset()
    pooled = [
        (model, sum((tallies[run.dataset, model] for run in group), start=Counter[str]()))
        for model, group in compared.by_model().items()
    ]
    sheets = [table("Failure modes, all datasets", pooled, (NOTE, POOLED))]
    if len(datasets) > 1:
        sheets += [
            table(
                f"Failure modes, {dataset}",
                [(run.model, tallies[dataset, run.model]) for run in group],
                (NOTE,),
            )
            for dataset, group in datasets.items()
        ]
    return compared.report([*sheets, *published(options, "failure_modes")], recall=False)


def tally(run: Run) -> Counter[str]:
    """How many interests, unverified ones and failures of each mode there are in a run.

    Signals are counted too, once a user whose dataset has them.
    """
    verification = run.options.verification
    counted: Counter[str] = Counter()
    for _, profile in run.profiles():
        rules = conditions(verification, profile.signals)
        counted.update(profile.signals)
        for interest in profile.interests:
            counted["interests"] += 1
            if interest.counts is None:
                counted["no_verdict"] += 1
            elif not meets(interest.counts, rules):
                counted["unverified"] += 1
                counted.update(shortcomings(interest.counts, verification, profile.signals))
    return counted


def table(title: str, tallies: Iterable[tuple[str, Counter[str]]], notes: Sequence[str]) -> Sheet:
    """One row a model."""
    return Sheet(
        title=title,
        columns=COLUMNS,
        rows=tuple((model, *row(counted)) for model, counted in tallies),
        notes=tuple(notes),
    )


def row(counted: Counter[str]) -> tuple[Cell, ...]:
    """The cells of one model; None for a mode that no dataset of the row can have."""
    possible = {
        "short_of_implicit": counted["implicit_positive"],
        "short_of_explicit": counted["explicit_positive"],
        "too_negative": counted["implicit_negative"] or counted["explicit_negative"],
    }
    modes = (
        share(counted[mode], counted["unverified"]) if possible[mode] else None
        for mode in SHORTCOMINGS
    )
    return (counted["interests"], counted["no_verdict"], counted["unverified"], *modes)
