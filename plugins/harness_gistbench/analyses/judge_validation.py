"""The judge against people: items for people to label, and their labels against the judge's.

Tables 17 to 19 of the paper.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec

from harness import Done
from harness.analysis.human_labels import (
    HumanLabel,
    labels_by_rater,
    majority_of,
    read_human_labels,
    votes_of,
)
from harness.analysis.percentages import percent, share
from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness.reporting.label_files import csv_bytes, refuse_taken, write_files
from harness_gistbench.analyses.compared_runs import Run, published, runs_of

if TYPE_CHECKING:
    from harness import FinishedTask, Record
    from harness.contracts.report import Cell
    from harness.contracts.task import Column
    from harness.scoring.stats import Agreement

Question: TypeAlias = Literal["evidence", "retrieval"]
QUESTIONS: tuple[Question, ...] = ("evidence", "retrieval")
STAGES: dict[Question, str] = {"evidence": "verify", "retrieval": "specificity"}
JUDGES: dict[Question, str] = {"evidence": "judge", "retrieval": "retrieval_judge"}

JUDGE = "judge"
"""The name of the judge in tables; no person may have it."""

Labels: TypeAlias = dict[str, bool]
"""Yes or no by item."""

Rated: TypeAlias = dict[Question, dict[str, Labels]]
"""What each rater said, by task."""

Stratum: TypeAlias = tuple[str, int | None]
"""A model and a category, None for interests without one: what items are spread over."""

ITEM_COLUMNS: dict[Question, tuple[str, ...]] = {
    "evidence": ("task", "item", "interest", "engagement", "text", "rater", "label"),
    "retrieval": ("task", "item", "interest", "text", "rater", "label"),
}
KEY_COLUMNS = ("task", "item", "label", "judge", "run", "dataset", "model", "user", "category",
               "object")  # fmt: skip

AnyT = TypeVar("AnyT", bound=Hashable)


class ExportOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How many items are drawn, and where they go."""

    out: Annotated[str, msgspec.Meta(description="folder for the items and their key")]
    items: Annotated[int, msgspec.Meta(ge=1, description="items of each task")] = 1000
    seed: Annotated[int, msgspec.Meta(description="which items are drawn")] = 0


class ValidationOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the labels are."""

    labels: Annotated[
        tuple[str, ...],
        msgspec.Meta(description="table of people's labels: columns task, item, rater, label"),
    ]
    key: Annotated[
        str, msgspec.Meta(description="the exported key.csv, in the place of the runs' records")
    ] = ""
    published: Annotated[bool, msgspec.Meta(description="show the paper's tables beside")] = False


@dataclass(frozen=True, kw_only=True)
class Pair:
    """An interest with one object, and whether the judge let them go together.

    `item` is its name to raters, without meaning. `engagement` is empty for retrieval,
    whose judge does not know it either.
    """

    item: str
    interest: str
    object: str
    text: str
    engagement: str
    label: bool


@dataclass(frozen=True)
class Drawn:
    """One item with where it comes from."""

    pair: Pair
    run: Run
    user: str
    category: int | None

    @property
    def origin(self) -> tuple[str, str, int | None, str]:
        """What items are spread over."""
        return self.run.model, self.run.dataset, self.category, self.user


def pairs_of(run: Run, question: Question) -> Iterator[tuple[str, list[Pair]]]:
    """Each user with all that a judge of the run was asked about and answered."""
    for user, records in run.task.records(STAGES[question]).by_user():
        yield user, [pair for record in records for pair in pairs_in(run, question, record)]


def pairs_in(run: Run, question: Question, record: Record[Any, Any]) -> Iterator[Pair]:
    """The pairs of one question; none where it has no answer."""
    if not isinstance(record.outcome, Done):
        return
    evidence = question == "evidence"
    if not evidence and not record.outcome.value.asked:
        return
    asked = record.item
    chosen = frozenset(record.outcome.value.positions)
    for position, one in enumerate(asked.evidence if evidence else asked.objects):
        signals = one.signals if evidence else ()
        yield Pair(
            item=item_name(run, question, record.user, asked.number, one.object),
            interest=asked.interest,
            object=one.object,
            text=one.text,
            engagement=", ".join(signal.replace("_", " ") for signal in signals),
            label=position in chosen,
        )


def item_name(run: Run, question: Question, *parts: str | int) -> str:
    """A stable name without meaning.

    It begins with a letter, for spreadsheets take some names made of digits alone for numbers.
    """
    place = stable_int(question, run.task.run, run.task.task.name, *parts)
    return f"{question[0]}{place:016x}"


def judge_of(run: Run, question: Question) -> str:
    """The judge that the run asked."""
    return run.task.summary.roles.get(JUDGES[question], "unknown")


def export(tasks: Sequence[FinishedTask], options: ExportOptions) -> Report:
    """Writes the items of both tasks and, apart from them, what the judge said of each."""
    runs = runs_of(tasks)
    folder = Path(options.out).expanduser()
    refuse_unlike(runs)
    refuse_taken(folder, (*(f"{question}.csv" for question in QUESTIONS), "key.csv"))
    drawn = {one: draw(runs, one, items=options.items, seed=options.seed) for one in QUESTIONS}
    write(folder, drawn)
    rows = tuple(
        (
            question,
            len(items),
            *(len(set(part)) for part in zip(*(one.origin for one in items), strict=True)),
            100 * sum(one.pair.label for one in items) / len(items),
        )
        for question, items in drawn.items()
        if items
    )
    columns = ("task", "items", "models", "datasets", "categories", "users", "judge said yes, %")
    notes = [
        f"{question}: {len(items):,} items are all there are; {options.items:,} were asked for"
        for question, items in drawn.items()
        if len(items) < options.items
    ]
    return Report(
        sheets=(Sheet(title="Items to label", columns=columns, rows=rows, notes=tuple(notes)),),
        notes=(
            f"written to {folder}: evidence.csv and retrieval.csv for the raters, who add their "
            "name and yes or no; key.csv, which they must not see, says what the judge said",
            "models have even shares, within each its categories, and users come before second "
            "items of the same user; shares of yes are therefore not those of all that was judged",
        ),
    )


def refuse_unlike(runs: Iterable[Run]) -> None:
    """Raise UsageError where runs had different judges: labels say something about one."""
    for question in QUESTIONS:
        judges = {run.task.run: judge_of(run, question) for run in runs}
        if len(set(judges.values())) > 1:
            raise UsageError(
                f"the runs had different judges of {question}",
                found=", ".join(f"{judge} in {name}" for name, judge in judges.items()),
                expected="runs of one judge",
                hint="export the items of each judge apart",
            )


def draw(runs: Sequence[Run], question: Question, *, items: int, seed: int) -> list[Drawn]:
    """Items spread evenly over models, within each over categories, and there over users.

    The judgements are read twice, so that no more than the items drawn are ever held.
    """
    sizes: Counter[Stratum] = Counter()
    for cell, found in judged(runs, question):
        sizes[cell] += len(found)
    shares = spread(sizes, items, seed)
    kept: dict[Stratum, list[tuple[int, int, Drawn]]] = defaultdict(list)
    for cell, found in judged(runs, question):
        found.sort(key=lambda one: stable_int(seed, one.pair.item))
        places = [(turn, stable_int(seed, one.pair.item), one) for turn, one in enumerate(found)]
        kept[cell] = heapq.nsmallest(
            shares[cell], [*kept[cell], *places], key=lambda each: each[:2]
        )
    drawn = [one for cell in kept.values() for _, _, one in cell]
    return sorted(drawn, key=lambda one: stable_int(seed, "order", one.pair.item))


def judged(runs: Iterable[Run], question: Question) -> Iterator[tuple[Stratum, list[Drawn]]]:
    """What was judged of each user and category of each run."""
    for run in runs:
        categories = {interest.name: interest.category for interest in run.interests()}
        for user, pairs in pairs_of(run, question):
            of_category: dict[int | None, list[Drawn]] = defaultdict(list)
            for pair in pairs:
                category = categories.get(pair.interest)
                of_category[category].append(Drawn(pair, run, user, category))
            for category, drawn in of_category.items():
                yield (run.model, category), drawn


def spread(sizes: Mapping[Stratum, int], total: int, seed: int) -> dict[Stratum, int]:
    """How many of the total each cell gives: models alike, and within each its categories."""
    models: Counter[str] = Counter()
    for (model, _), size in sizes.items():
        models[model] += size
    shares: dict[Stratum, int] = {}
    for model, quota in even(models, total, seed).items():
        shares |= even(
            {cell: size for cell, size in sizes.items() if cell[0] == model}, quota, seed
        )
    return shares


def write(folder: Path, drawn: Mapping[Question, Sequence[Drawn]]) -> None:
    """Writes the items and their key into the folder."""
    rows = {question: [cells(question, one) for one in items] for question, items in drawn.items()}
    files = {
        f"{question}.csv": csv_bytes(
            ITEM_COLUMNS[question], ({**row, "label": ""} for row in items)
        )
        for question, items in rows.items()
    }
    key = csv_bytes(KEY_COLUMNS, (row for items in rows.values() for row in items))
    write_files(folder, {**files, "key.csv": key})


def cells(question: Question, one: Drawn) -> dict[str, str]:
    """An item with the judge's label; raters are shown a part and write labels of their own."""
    pair, run = one.pair, one.run
    return {
        "task": question,
        "item": pair.item,
        "interest": pair.interest,
        "engagement": pair.engagement,
        "text": pair.text,
        "rater": "",
        "label": "yes" if pair.label else "no",
        "judge": judge_of(run, question),
        "run": run.task.run,
        "dataset": run.dataset,
        "model": run.model,
        "user": one.user,
        "category": "" if one.category is None else str(one.category),
        "object": pair.object,
    }


def validate(tasks: Sequence[FinishedTask], options: ValidationOptions) -> Report:
    """Agreement in pairs, with the majority, and how the raters divide; the judge is one more."""
    labels = read_human_labels(options.labels, columns(complete=False))
    rated: Rated = {}
    for question in QUESTIONS:
        rows = (row for row in labels.rows if row.where["task"] == question)
        if raters := labels_by_rater(rows, HumanLabel.says_yes, but=(JUDGE,)):
            rated[question] = raters
    if not rated:
        raise UsageError(
            "nobody has labelled anything",
            where=", ".join(options.labels),
            expected="rows with a rater and yes or no",
        )
    key: dict[Question, Labels] = {question: {} for question in QUESTIONS}
    keys = [options.key] if options.key else []
    for row in read_human_labels(keys, columns(complete=True)).rows:
        key[row.where["task"]][row.item] = row.says_yes()
    runs = runs_of(tasks)
    judged: dict[Question, Labels] = {
        question: key[question]
        if options.key
        else said_in(runs, question, votes_of(rated[question]))
        for question in QUESTIONS
        if question in rated
    }
    sheets = [pairs_sheet(raters, judged[question], question) for question, raters in rated.items()]
    sheets += [majority_sheet(rated, judged), splits_sheet(rated)]
    sheets += published(options, "rater_pairs", "rater_majority", "rater_splits", digits=2)
    return Report(sheets=tuple(sheets), notes=notes_on(rated, judged, labels.blank))


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
    from harness.contracts.task import Column

    label = Column(type="any", required=complete)
    return {"task": Column(one_of=QUESTIONS), "item": Column(), "label": label}


def even(sizes: Mapping[AnyT, int], total: int, seed: int) -> dict[AnyT, int]:
    """Shares of a total, as equal as the sizes allow; the seed decides about the remainder."""
    shares = dict.fromkeys(sizes, 0)
    waiting = sorted(sizes, key=lambda name: stable_int(seed, repr(name)))
    left = min(total, sum(sizes.values()))
    while left:
        each = max(1, left // len(waiting))
        for name in waiting:
            more = min(each, sizes[name] - shares[name], left)
            shares[name] += more
            left -= more
        waiting = [name for name in waiting if shares[name] < sizes[name]]
    return shares
