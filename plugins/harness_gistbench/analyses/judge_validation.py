"""People's labels against one another and against the judge's: Tables 17 to 19."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, TypeAlias

import msgspec

from harness.errors import UsageError
from harness.results.human_labels import HumanLabels, majority_of, read_human_labels, votes_of
from harness.results.report import Report, Sheet
from harness_gistbench.analyses.comparing import percent, runs_of, share
from harness_gistbench.analyses.pairs import QUESTIONS, Question, pairs_of

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.report import Cell
    from harness.stats import Agreement
    from harness.tasks.task import Column
    from harness_gistbench.analyses.comparing import Run

JUDGE = "judge"
"""What tables call the judge; no person may go by it."""

Labels: TypeAlias = dict[str, bool]
"""Yes or no by item."""

Rated: TypeAlias = dict[str, dict[str, Labels]]
"""What each rater said, by task."""


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

    labels = read_human_labels(options.labels, columns(complete=False))
    rated = raters_of(labels)
    if not rated:
        raise UsageError(
            "nobody has labelled anything",
            where=", ".join(options.labels),
            expected="rows with a rater and yes or no",
        )
    key = read_key(options.key) if options.key else None
    runs = runs_of(tasks)
    judged: dict[str, Labels] = {
        question: key[question] if key else said_in(runs, question, votes_of(rated[question]))
        for question in QUESTIONS
        if question in rated
    }
    sheets = [pairs_sheet(raters, judged[question], question) for question, raters in rated.items()]
    sheets += [majority_sheet(rated, judged), splits_sheet(rated)]
    if options.published:
        kinds = (rows.RaterPair, rows.RaterMajority, rows.RaterSplit)
        sheets += [published_sheet(kind, digits=2) for kind in kinds]
    return Report(sheets=tuple(sheets), notes=notes_on(rated, judged, labels.blank))


def notes_on(
    rated: Rated, judged: Mapping[str, Labels], blank: Mapping[str, int]
) -> tuple[str, ...]:
    """What there is of labels, and what is missing."""
    notes = []
    for question, raters in rated.items():
        items = votes_of(raters)
        unknown = sum(item not in judged[question] for item in items)
        line = f"{question}: raters {len(raters)}, items {len(items):,}"
        if blank[question]:
            line += f"; rows without a label: {blank[question]:,}"
        if unknown:
            line += f"; items of which it is not known what the judge said: {unknown:,}"
        notes.append(line)
    return tuple(notes)


def raters_of(labels: HumanLabels) -> Rated:
    """What each rater said of the items of each task; a task that nobody labelled is left out."""
    rated: Rated = {question: {} for question in QUESTIONS}
    for row in labels.rows:
        label = row.says_yes()
        if row.rater in ("", JUDGE):
            raise row.bad("rater", row.rater or None, f"a name, other than {JUDGE!r}")
        said = rated[row.where["task"]].setdefault(row.rater, {})
        if row.item in said:
            raise row.bad("item", row.item, f"one label of each item by {row.rater!r}")
        said[row.item] = label
    return {question: raters for question, raters in rated.items() if raters}


def read_key(path: str) -> dict[str, Labels]:
    """What the judge said of each item, from the key that was exported with them."""
    found: dict[str, Labels] = {question: {} for question in QUESTIONS}
    for row in read_human_labels([path], columns(complete=True)).rows:
        found[row.where["task"]][row.item] = row.says_yes()
    return found


def said_in(runs: Iterable[Run], question: Question, items: Collection[str]) -> Labels:
    """What the judge said of the items, from the records of the runs that they were drawn from."""
    wanted = frozenset(items)
    return {
        pair.item: pair.label
        for run in runs
        for _, pairs in pairs_of(run, question)
        for pair in pairs
        if pair.item in wanted
    }


def columns(*, complete: bool) -> dict[str, Column]:
    """The columns of a file of labels; rows that wait for a rater are not complete."""
    from harness.tasks.task import Column

    return {
        "task": Column(one_of=QUESTIONS),
        "item": Column(),
        "label": Column(type="any", required=complete),
    }


def agreement(first: Labels, second: Labels) -> Agreement:
    """How far two agree over the items that both labelled."""
    from harness.stats import agreement_of

    common = [item for item in first if item in second]
    return agreement_of([first[item] for item in common], [second[item] for item in common])


def pairs_sheet(raters: Mapping[str, Labels], judge: Labels, question: str) -> Sheet:
    """Table 17: κ of each pair, the judge as the last one."""
    everybody = {**raters, JUDGE: judge}
    names = list(everybody)
    found = {
        (one, other): agreement(everybody[one], everybody[other])
        for one, other in combinations(names, 2)
    }
    kappas = {pair: each.kappa for pair, each in found.items()}
    known = {pair: kappa for pair, kappa in kappas.items() if isinstance(kappa, float)}
    return Sheet(
        title=f"Cohen's κ in pairs, {question}",
        columns=("rater", *names),
        rows=tuple((one, *(known.get((one, other)) for other in names)) for one in names[:-1]),
        notes=(
            *mean_note("people", [each for pair, each in found.items() if JUDGE not in pair]),
            *mean_note("the judge with people", [found[one, JUDGE] for one in raters]),
            *(
                f"{one} and {two}: no κ: {kappa.reason}"
                for (one, two), kappa in kappas.items()
                if not isinstance(kappa, float)
            ),
        ),
        digits=2,
    )


def mean_note(who: str, pairs: Sequence[Agreement]) -> list[str]:
    """The mean κ of pairs, with how many there are and over how many items each."""
    known = [(each.n, each.kappa) for each in pairs if isinstance(each.kappa, float)]
    if not known:
        return []
    least, most = min(known)[0], max(known)[0]
    items = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    mean = fmean(kappa for _, kappa in known)
    return [f"mean κ of {who}: {mean:.2f}; pairs: {len(known)}, items of each: {items}"]


def majority_sheet(rated: Rated, judged: Mapping[str, Labels]) -> Sheet:
    """Table 18: each rater, and the judge, against the majority of the people."""
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
            cells, why = against(labels, majority.labels)
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
    found = agreement(majority, labels)
    values = {"κ": found.kappa, "F1": found.f1}
    known = [value if isinstance(value, float) else None for value in values.values()]
    why = [
        f"no {name}: {value.reason}"
        for name, value in values.items()
        if not isinstance(value, float)
    ]
    if not found.n:
        why = ["nothing was labelled by both"]
    return (found.n, percent(found.share), *known), why


def splits_sheet(rated: Rated) -> Sheet:
    """Table 19: how often the raters divide so, from all of one mind to halves."""
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
