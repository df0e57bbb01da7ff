"""Judges against people: agreement, Cohen's κ with its interval, and who said what how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.errors import UsageError
from harness.hashing import stable_int
from harness.results.decisions import Label, decisions_of
from harness.results.human_labels import (
    HumanLabels,
    Matched,
    Matching,
    match,
    read_human_labels,
)
from harness.results.report import Report, Sheet
from harness_judges.panel_agreement import told

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.report import Cell

MAJORITY = "majority of people"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Where the labels are."""

    labels: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description="table of people's labels: columns item and label, and task, stage, "
            "question, option and rater where they are needed"
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """What a rater and a judge said of the same things, and whose things these are.

    Of `silent` things that the rater labelled, the judge said nothing, by cause.
    """

    task: KeptTask
    stage: str
    role: str
    judge: str
    rater: str
    people: tuple[Label, ...]
    judged: tuple[Label, ...]
    users: tuple[str, ...]
    silent: Counter[str]

    @property
    def named(self) -> tuple[str, ...]:
        """What its rows are called."""
        return (
            self.task.label, self.task.task.name, f"{self.stage}, {self.role}", self.judge,
            self.rater or "people",
        )  # fmt: skip


def run(tasks: Sequence[KeptTask], options: Options) -> Report:
    """Every judge, and every member of a panel, against every rater and their majority."""
    labels = read_human_labels(options.labels)
    if not labels.rows:
        raise UsageError(
            "nobody has labelled anything",
            where=", ".join(options.labels),
            expected="rows with an item and a label",
        )
    matchings = {id(task): match(labels, decisions_of(task), task=task.task.name) for task in tasks}
    compared = [each for task in tasks for each in compared_in(task, matchings[id(task)].found)]
    if not compared:
        items = tuple(dict.fromkeys(row.item for row in labels.rows))
        raise UsageError(
            "no label is of anything that these runs judged",
            where=", ".join(options.labels),
            found=f"items {', '.join(items[:3])}" + (", …" if len(items) > 3 else ""),
            expected="items as `harness show RUN --sample ITEM` knows them",
        )
    return Report(
        sheets=(agreement_sheet(compared), confusion_sheet(compared)),
        notes=tuple(notes_on(labels, tasks, matchings)),
    )


def notes_on(
    labels: HumanLabels, tasks: Sequence[KeptTask], matchings: Mapping[int, Matching]
) -> Iterator[str]:
    """What there is of labels, and which are of nothing."""
    blank = f"; without a label: {labels.blank:,}" if labels.blank else ""
    yield f"labels: {len(labels.rows):,}{blank}"
    for task in tasks:
        matching = matchings[id(task)]
        lost = [f"{why} {count:,}" for why, count in sorted(matching.unmatched.items())]
        told_lost = f"; {', '.join(lost)}" if lost else ""
        yield f"{task.label}, {task.task.name}: matched {len(matching.found):,}{told_lost}"
        for (stage, role), raters in raters_of(matching.found).items():
            left_out = majority_of(raters).unmatched if len(raters) > 1 else Counter[str]()
            if left_out:
                causes = ", ".join(f"{why} {count:,}" for why, count in sorted(left_out.items()))
                yield f"{task.label}, {task.task.name}, {stage}, {role}: no majority: {causes}"
    if shared := of_other_subjects(matchings.values()):
        yield (
            f"labels of decisions with another subject in another run: {shared:,}; the column "
            "question, with the subject, says which is meant"
        )


def of_other_subjects(matchings: Iterable[Matching]) -> int:
    """How many labels were matched in several tasks with decisions on different subjects."""
    subjects: dict[tuple[str, str, int, str], set[str | None]] = defaultdict(set)
    for matching in matchings:
        for each in matching.found:
            what = each.decision
            subjects[each.rater, what.item, what.question, what.option].add(what.subject)
    return sum(len(some) > 1 for some in subjects.values())


def raters_of(found: Sequence[Matched]) -> dict[tuple[str, str], dict[str, list[Matched]]]:
    """What each rater labelled, by stage and role."""
    groups: dict[tuple[str, str], dict[str, list[Matched]]] = defaultdict(lambda: defaultdict(list))
    for each in found:
        groups[each.decision.stage, each.decision.role][each.rater].append(each)
    return groups


def compared_in(task: KeptTask, found: Sequence[Matched]) -> Iterator[Compared]:
    """Each rater with each judge of a task."""
    for (stage, role), by_rater in raters_of(found).items():
        raters = dict(by_rater)
        if len(raters) > 1:
            raters[MAJORITY] = majority_of(by_rater).found
        members = dict.fromkeys(
            name for some in by_rater.values() for each in some for name in each.decision.votes
        )
        for judge in ("", *members):
            for rater, some in raters.items():
                yield compare(task, (stage, role), judge, rater, some)


def compare(
    task: KeptTask, place: tuple[str, str], judge: str, rater: str, found: Sequence[Matched]
) -> Compared:
    """A rater with the judge of a role, or with one member of it."""
    people, judged, users = [], [], []
    silent: Counter[str] = Counter()
    for each in found:
        decision = each.decision
        said = decision.votes.get(judge) if judge else decision.said
        if said is None:
            silent[decision.why or "no vote"] += 1
            continue
        people.append(each.label)
        judged.append(said)
        users.append(decision.user)
    entries = task.manifest.roles
    role = entries.get(f"{task.task.name}/{place[1]}", entries.get(place[1]))
    return Compared(
        task=task, stage=place[0], role=place[1],
        judge=judge or (role.name if role else place[1]), rater=rater,
        people=tuple(people), judged=tuple(judged), users=tuple(users), silent=silent,
    )  # fmt: skip


def majority_of(raters: Mapping[str, Sequence[Matched]]) -> Matching:
    """What more people said than anything else, of what two or more labelled without a tie."""
    said: dict[int, list[Matched]] = defaultdict(list)
    for some in raters.values():
        for each in some:
            said[id(each.decision)].append(each)
    majority = Matching()
    for some in said.values():
        first = Counter(each.label for each in some).most_common(2)
        if len(some) == 1:
            majority.unmatched["labelled by one alone"] += 1
        elif len(first) == 2 and first[0][1] == first[1][1]:
            majority.unmatched["tied"] += 1
        else:
            majority.found.append(
                Matched(rater=MAJORITY, label=first[0][0], decision=some[0].decision)
            )
    return majority


def agreement_sheet(compared: Sequence[Compared]) -> Sheet:
    """n, the share of the same, κ with its interval; what has none says why."""
    from harness.stats import Interval, Undefined, cohen_kappa, kappa_interval

    rows: list[tuple[Cell, ...]] = []
    notes = []
    for each in compared:
        name = ", ".join(each.named)
        same = sum(one == other for one, other in zip(each.people, each.judged, strict=True))
        share = 100 * same / len(each.people) if each.people else None
        kappa = cohen_kappa(each.people, each.judged)
        silent = each.silent.total()
        if each.silent:
            causes = ", ".join(f"{why} {many:,}" for why, many in sorted(each.silent.items()))
            notes.append(f"{name}: the judge said nothing: {causes}")
        if isinstance(kappa, Undefined):
            notes.append(f"{name}: no κ: {kappa.reason}")
            rows.append((*each.named, len(each.people), silent, share, None, None))
            continue
        asked = each.task.task.interval
        drawn = kappa_interval(
            each.people, each.judged, each.users,
            seed=stable_int("people", each.task.manifest.seed, *each.named[1:]),
            draws=asked.draws, confidence=asked.confidence, method=asked.method,
        )  # fmt: skip
        if not isinstance(drawn, Interval):
            notes.append(f"{name}: no interval: {drawn.reason}")
        rows.append((*each.named, len(each.people), silent, share, kappa, told(drawn)))
    return Sheet(
        title="Judges against people",
        columns=("model", "task", "stage, role", "judge", "rater", "n", "not judged", "alike, %",
                 "Cohen's κ", "interval"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=(0, 0, 0, 0, 0, 0, 0, 1, 2, 0),
    )  # fmt: skip


def confusion_sheet(compared: Sequence[Compared]) -> Sheet:
    """How often the judge said what of what people said."""
    rows: list[tuple[Cell, ...]] = []
    for each in compared:
        times = Counter(zip(map(spelt, each.people), map(spelt, each.judged), strict=True))
        rows += [(*each.named, *pair, times[pair]) for pair in sorted(times)]
    return Sheet(
        title="Who said what",
        columns=("model", "task", "stage, role", "judge", "rater", "people say", "judge says", "n"),
        rows=tuple(rows),
    )


def spelt(label: Label) -> str:
    """A label as tables show it."""
    return label if isinstance(label, str) else "yes" if label else "no"
