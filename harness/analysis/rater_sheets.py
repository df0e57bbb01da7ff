"""How far raters agree who said yes or no of items, with each other and with a judge, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

from harness.analysis.human_labels import majority_of, votes_of
from harness.analysis.percentages import percent, share
from harness.contracts.report import Sheet

if TYPE_CHECKING:
    from harness.contracts.report import Cell
    from harness.scoring.stats import Agreement

JUDGE = "judge"
"""The name of the judge in tables; no person may have it."""

Labels: TypeAlias = dict[str, bool]
"""Yes or no by item."""

Rated: TypeAlias = dict[str, dict[str, Labels]]
"""What each rater said, by task."""


def _agreement(first: Labels, second: Labels) -> Agreement:
    from harness.scoring.stats import agreement_of

    common = [item for item in first if item in second]
    return agreement_of([first[item] for item in common], [second[item] for item in common])


def pairs_sheet(raters: Mapping[str, Labels], judge: Labels, question: str) -> Sheet:
    """Cohen's κ of each pair; the judge is the last one."""
    everybody = {**raters, JUDGE: judge}
    names = list(everybody)
    found = {
        (one, other): _agreement(everybody[one], everybody[other])
        for one, other in combinations(names, 2)
    }
    kappas = {pair: each.kappa for pair, each in found.items()}
    known = {pair: kappa for pair, kappa in kappas.items() if isinstance(kappa, float)}
    return Sheet(
        title=f"Cohen's κ in pairs, {question}",
        columns=("rater", *names),
        rows=tuple((one, *(known.get((one, other)) for other in names)) for one in names[:-1]),
        notes=(
            *_mean_note("people", [each for pair, each in found.items() if JUDGE not in pair]),
            *_mean_note("the judge with people", [found[one, JUDGE] for one in raters]),
            *(
                f"{one} and {two}: no κ: {kappa.reason}"
                for (one, two), kappa in kappas.items()
                if not isinstance(kappa, float)
            ),
        ),
        digits=2,
    )


def _mean_note(who: str, pairs: Sequence[Agreement]) -> list[str]:
    known = [(each.n, each.kappa) for each in pairs if isinstance(each.kappa, float)]
    if not known:
        return []
    least, most = min(known)[0], max(known)[0]
    items = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    mean = fmean(kappa for _, kappa in known)
    return [f"mean κ of {who}: {mean:.2f}; pairs: {len(known)}, items of each: {items}"]


def majority_sheet(rated: Rated, judged: Mapping[str, Labels]) -> Sheet:
    """Each rater, and the judge, against the majority of the people."""
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for question, raters in rated.items():
        majority = majority_of(raters, least=len(raters))
        notes.append(
            f"{question}: {len(majority.labels):,} items have a majority; left out: "
            f"{majority.tied:,} tied, {majority.few:,} not labelled by all"
        )
        said = judged[question]
        judge = {item: said[item] for item in votes_of(raters) if item in said}
        for name, labels in {**raters, JUDGE: judge}.items():
            yes = share(sum(labels.values()), len(labels))
            found = _agreement(majority.labels, labels)
            values = {"κ": found.kappa, "F1": found.f1}
            known = [one if isinstance(one, float) else None for one in values.values()]
            rows.append((question, name, len(labels), yes, found.n, percent(found.share), *known))
            why = [f"no {of}: {one.reason}" for of, one in values.items()
                   if not isinstance(one, float)]  # fmt: skip
            why = why if found.n else ["nothing was labelled by both"]
            notes += [f"{question}, {name}: {reason}" for reason in why]
    return Sheet(
        title="Labels against the majority of people",
        columns=("task", "rater", "labels", "yes, %", "compared", "agreement, %", "κ", "F1 of yes"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=(0, 0, 0, 1, 0, 1, 2, 2),
    )


def splits_sheet(rated: Rated) -> Sheet:
    """How often the raters divide in each way, from all of one mind to halves."""
    rows: list[tuple[Cell, ...]] = []
    for question, raters in rated.items():
        people = len(raters)
        whole = [votes for votes in votes_of(raters).values() if votes.total() == people]
        times = Counter(max(votes.values()) for votes in whole)
        rows += [
            (question, f"{most}–{people - most}", times[most], share(times[most], len(whole)))
            for most in range(people, (people - 1) // 2, -1)
        ]
    return Sheet(
        title="How people divide over an item that all labelled",
        columns=("task", "split", "items", "%"),
        rows=tuple(rows),
    )
