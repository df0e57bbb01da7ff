"""People's labels against one another and against the judge's: Tables 17 to 19."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.errors import UsageError
from harness.results.report import Report, Sheet
from harness_gistbench.analyses.comparing import percent, runs_of, share
from harness_gistbench.analyses.labels import (
    JUDGE,
    Labels,
    Rated,
    read_key,
    read_labels,
    said_in,
)

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.report import Cell
    from harness_gistbench.analyses.pairs import Question


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Where the labels are."""

    labels: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="table of people's labels: columns task, item, rater, label"),
    ]
    key: Annotated[
        str, msgspec.Meta(description="the exported key.csv, in the place of the runs' records")
    ] = ""
    published: Annotated[bool, msgspec.Meta(description="show the paper's tables beside")] = False


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """Agreement in pairs, with the majority, and how the raters divide; the judge is one more."""
    from harness_gistbench.published import published_sheet, rows

    rated = read_labels(options.labels)
    if not rated:
        raise UsageError(
            "nobody has labelled anything",
            where=", ".join(options.labels),
            expected="rows with a rater and yes or no",
        )
    key = read_key(options.key) if options.key else None
    runs = runs_of(tasks)
    judged = {
        question: said_in(runs, question, each.items) if key is None else key.get(question, {})
        for question, each in rated.items()
    }
    sheets = [pairs_sheet(each, judged[question], question) for question, each in rated.items()]
    sheets += [majority_sheet(rated, judged), splits_sheet(rated)]
    if options.published:
        kinds = (rows.RaterPair, rows.RaterMajority, rows.RaterSplit)
        sheets += [published_sheet(kind, digits=2) for kind in kinds]
    return Report(sheets=tuple(sheets), notes=notes_on(rated, judged))


def notes_on(rated: Mapping[Question, Rated], judged: Mapping[Question, Labels]) -> tuple[str, ...]:
    """What there is of labels, and what is missing."""
    notes = []
    for question, each in rated.items():
        items = each.items
        unknown = sum(item not in judged[question] for item in items)
        line = f"{question}: raters {len(each.raters)}, items {len(items):,}"
        if each.blank:
            line += f"; rows without a label: {each.blank:,}"
        if unknown:
            line += f"; items of which it is not known what the judge said: {unknown:,}"
        notes.append(line)
    return tuple(notes)


@dataclass(frozen=True, kw_only=True)
class Kappa:
    """Cohen's κ of two raters over the items that both labelled, or why it has no value."""

    items: int
    value: float | None = None
    why: str = ""


def kappa(first: Labels, second: Labels) -> Kappa:
    """How far two raters agree."""
    from harness.stats import Undefined, agreement_of

    common = [item for item in first if item in second]
    found = agreement_of([first[item] for item in common], [second[item] for item in common])
    if isinstance(found, Undefined):
        return Kappa(items=len(common), why=found.reason)
    if isinstance(found.kappa, Undefined):
        return Kappa(items=len(common), why=found.kappa.reason)
    return Kappa(items=len(common), value=found.kappa)


def pairs_sheet(rated: Rated, judge: Labels, question: Question) -> Sheet:
    """Table 17: κ of each pair, the judge as the last one."""
    everybody = {**rated.raters, JUDGE: judge}
    names = list(everybody)
    found = {
        (one, other): kappa(everybody[one], everybody[other])
        for one, other in combinations(names, 2)
    }
    nothing = Kappa(items=0)
    return Sheet(
        title=f"Cohen's κ in pairs, {question}",
        columns=("rater", *names),
        rows=tuple(
            (one, *(found.get((one, other), nothing).value for other in names))
            for one in names[:-1]
        ),
        notes=(
            *mean_note("people", [each for pair, each in found.items() if JUDGE not in pair]),
            *mean_note("the judge with people", [found[one, JUDGE] for one in rated.raters]),
            *(
                f"{one} and {two}: no κ: {each.why}"
                for (one, two), each in found.items()
                if each.why
            ),
        ),
        digits=2,
    )


def mean_note(who: str, pairs: Sequence[Kappa]) -> list[str]:
    """The mean κ of pairs, with how many there are and over how many items each."""
    known = [each.value for each in pairs if each.value is not None]
    if not known:
        return []
    sizes = sorted(each.items for each in pairs if each.value is not None)
    items = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    return [f"mean κ of {who}: {fmean(known):.2f}; pairs: {len(known)}, items of each: {items}"]


def votes_of(rated: Rated) -> dict[str, int]:
    """How many said yes to each item that every rater labelled."""
    raters = list(rated.raters.values())
    whole = [item for item in rated.items if all(item in labels for labels in raters)]
    return {item: sum(labels[item] for labels in raters) for item in whole}


def majority_of(rated: Rated) -> Labels:
    """What more than half of the people said, of the items that all labelled; a tie is left out."""
    people = len(rated.raters)
    return {item: 2 * yes > people for item, yes in votes_of(rated).items() if 2 * yes != people}


def majority_sheet(rated: Mapping[Question, Rated], judged: Mapping[Question, Labels]) -> Sheet:
    """Table 18: each rater, and the judge, against the majority of the people."""
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for question, each in rated.items():
        majority, votes = majority_of(each), votes_of(each)
        notes.append(
            f"{question}: {len(majority):,} items have a majority; left out: "
            f"{len(votes) - len(majority):,} tied, {len(each.items) - len(votes):,} not labelled "
            "by all"
        )
        judge = {item: judged[question][item] for item in each.items if item in judged[question]}
        for name, labels in {**each.raters, JUDGE: judge}.items():
            yes = share(sum(labels.values()), len(labels))
            cells, why = against(labels, majority)
            rows.append((question, name, len(labels), yes, *cells))
            notes += [f"{question}, {name}: {reason}" for reason in why]
    return Sheet(
        title="Labels against the majority of people",
        columns=("task", "rater", "labels", "yes, %", "compared", "agreement, %", "κ", "F1 of yes"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=(0, 0, 0, 1, 0, 1, 2, 2),
    )


def against(labels: Labels, majority: Labels) -> tuple[tuple[Cell, ...], list[str]]:
    """Items compared, agreement, κ and F1 with the majority; and why one of them is missing."""
    from harness.stats import Undefined, agreement_of

    common = [item for item in majority if item in labels]
    found = agreement_of([labels[item] for item in common], [majority[item] for item in common])
    if isinstance(found, Undefined):
        return (0, None, None, None), [found.reason]
    cells: list[Cell] = [found.n, percent(found.share)]
    why = []
    for name, value in (("κ", found.kappa), ("F1", found.f1)):
        if isinstance(value, Undefined):
            why.append(f"no {name}: {value.reason}")
        cells.append(None if isinstance(value, Undefined) else value)
    return tuple(cells), why


def splits_sheet(rated: Mapping[Question, Rated]) -> Sheet:
    """Table 19: how often the raters divide so, from all of one mind to halves."""
    rows: list[tuple[Cell, ...]] = []
    for question, each in rated.items():
        people = len(each.raters)
        votes = Counter(max(yes, people - yes) for yes in votes_of(each).values())
        rows += [
            (
                question,
                f"{larger}–{people - larger}",
                votes[larger],
                share(votes[larger], votes.total()),
            )
            for larger in range(people, (people - 1) // 2, -1)
        ]
    return Sheet(
        title="How people divide over an item that all labelled",
        columns=("task", "split", "items", "%"),
        rows=tuple(rows),
    )
