"""Agreement of judges: the members of a panel with each other, and any judge with people."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Annotated

import msgspec

from harness.analysis.human_labels import (
    HumanLabels,
    Label,
    kappa_cells,
    majority_of,
    read_human_labels,
)
from harness.base.errors import UsageError
from harness.base.hashing import stable_int
from harness.contracts.report import Report, Sheet
from harness_judges.decisions import Decision, Matching, decisions_of, match

if TYPE_CHECKING:
    from harness import FinishedTask
    from harness.contracts.report import Cell

MAJORITY = "majority of people"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `judge-agreement`: `labels` are the files of people's labels."""

    labels: Annotated[
        tuple[str, ...],
        msgspec.Meta(
            description="table of people's labels, with the columns item and label, and task, "
            "stage, question, option and rater where labels would be ambiguous without them"
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """The decisions of a panel in one stage of one task, one for each option and text."""

    task: FinishedTask
    stage: str
    role: str
    decisions: tuple[Decision, ...]

    @property
    def row_labels(self) -> tuple[str, str, str]:
        """The first cells of its rows: model, task, and stage with role."""
        return self.task.label, self.task.task.name, f"{self.stage}, {self.role}"

    @property
    def members(self) -> tuple[str, ...]:
        """The labels of all members, including those that never voted."""
        return tuple(dict.fromkeys(name for each in self.decisions for name in each.votes))


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The labels of a rater and a judge for the same decisions.

    `both` holds the rater's label, the judge's label and the user of each decision. `silent` counts
    the decisions that only the rater labelled, by cause.
    """

    task: FinishedTask
    stage: str
    role: str
    judge: str
    rater: str
    both: tuple[tuple[Label, Label, str], ...]
    silent: Counter[str]

    @property
    def row_labels(self) -> tuple[str, ...]:
        """The first cells of its rows: model, task, stage with role, judge and rater."""
        return (
            self.task.label, self.task.task.name, f"{self.stage}, {self.role}", self.judge,
            self.rater or "people",
        )  # fmt: skip


def panel_agreement(tasks: Sequence[FinishedTask], _options: object) -> Report:
    """The report of `judge-panel`: each panel, its members, and its pairs of members."""
    panels = [panel for task in tasks for panel in panels_of(task)]
    if not panels:
        raise UsageError(
            "no task of these runs has a panel as judge",
            found=", ".join(dict.fromkeys(task.task.name for task in tasks)),
            expected="a run with --judge panel:SPEC+SPEC+…",
        )
    return Report(
        sheets=(panels_sheet(panels), members_sheet(panels), pairs_sheet(panels)),
        notes=("a decision is about a single option or text; a question may have many",),
    )


def panels_of(task: FinishedTask) -> Iterator[Panel]:
    """The panels of a task, one for each stage and role."""
    found: dict[tuple[str, str], list[Decision]] = {}
    for decision in decisions_of(task):
        if decision.votes:
            found.setdefault((decision.stage, decision.role), []).append(decision)
    for (stage, role), decisions in found.items():
        yield Panel(task=task, stage=stage, role=role, decisions=tuple(decisions))


def panels_sheet(panels: Sequence[Panel]) -> Sheet:
    """A sheet with Fleiss' κ of the decisions of all members, and the tied and undecided ones."""
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for panel in panels:
        name = ", ".join(panel.row_labels)
        whole = [each for each in panel.decisions if None not in each.votes.values()]
        kappa, why = fleiss(whole)
        if why:
            notes.append(f"{name}: no κ: {why}")
        lost = Counter(each.why for each in panel.decisions if each.said is None)
        if lost:
            notes.append(f"{name}: undecided: {format_causes(lost)}")
        tied = sum(is_tied(each) for each in panel.decisions)
        rows.append((
            *panel.row_labels, len(panel.members), len(panel.decisions), lost.total(), tied,
            len(whole), kappa,
        ))  # fmt: skip
    return Sheet(
        title="Panels",
        columns=("model", "task", "stage, role", "members", "decisions", "undecided", "tied",
                 "voted on by all", "Fleiss' κ"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=2,
    )  # fmt: skip


def fleiss(decisions: Sequence[Decision]) -> tuple[float | None, str]:
    """Fleiss' κ of decisions that all members made; None and the reason if it is undefined."""
    from harness.scoring.stats import Undefined, fleiss_kappa

    labels = list(dict.fromkeys(said for each in decisions for said in each.votes.values()))
    counts = [[list(each.votes.values()).count(label) for label in labels] for each in decisions]
    found = fleiss_kappa(counts)
    return (None, found.reason) if isinstance(found, Undefined) else (found, "")


def is_tied(decision: Decision) -> bool:
    """True if two labels have the most votes: the panel then takes neither."""
    votes = Counter(said for said in decision.votes.values() if said is not None)
    first = votes.most_common(2)
    return len(first) == 2 and first[0][1] == first[1][1]


def members_sheet(panels: Sequence[Panel]) -> Sheet:
    """A sheet with each member's number of votes, and how often it agreed with the panel."""
    rows: list[tuple[Cell, ...]] = []
    for panel in panels:
        for member in panel.members:
            voted = [each for each in panel.decisions if each.votes.get(member) is not None]
            both = [each for each in voted if each.said is not None]
            same = sum(each.votes[member] == each.said for each in both)
            share = 100 * same / len(both) if both else None
            rows.append((*panel.row_labels, member, len(voted), len(both), share))
    return Sheet(
        title="Members and the panel",
        columns=("model", "task", "stage, role", "member", "voted", "panel decided",
                 "as the panel, %"),
        rows=tuple(rows),
    )  # fmt: skip


def pairs_sheet(panels: Sequence[Panel]) -> Sheet:
    """A sheet with Cohen's κ of each pair of members, with its interval over users."""
    rows: list[tuple[Cell, ...]] = []
    notes: list[str] = []
    for panel in panels:
        for pair in combinations(panel.members, 2):
            both = [
                (first, second, each.user)
                for each in panel.decisions
                for first, second in [[each.votes.get(member) for member in pair]]
                if first is not None and second is not None
            ]
            names = " and ".join(pair)
            seed = stable_int("panel", panel.task.manifest.seed, panel.stage, *pair)
            cells, why = kappa_cells(both, panel.task, seed=seed)
            notes += [f"{', '.join(panel.row_labels)}: {names}: {reason}" for reason in why]
            rows.append((*panel.row_labels, names, len(both), *cells))
    return Sheet(
        title="Members in pairs",
        columns=("model", "task", "stage, role", "members", "decisions", "alike, %", "Cohen's κ",
                 "interval"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=(0, 0, 0, 0, 0, 1, 2, 0),
    )  # fmt: skip


def people_agreement(tasks: Sequence[FinishedTask], options: Options) -> Report:
    """The report of `judge-agreement`: judges and members against raters and their majority."""
    labels = read_human_labels(options.labels)
    if not labels.rows:
        raise UsageError(
            "the files contain no labels",
            where=", ".join(options.labels),
            expected="rows with an item and a label",
        )
    matched = [(task, match(labels, decisions_of(task), task=task.task.name)) for task in tasks]
    compared = [each for task, matching in matched for each in compared_in(task, matching)]
    if not compared:
        items = tuple(dict.fromkeys(row.item for row in labels.rows))
        raise UsageError(
            "no label fits a decision of these runs",
            where=", ".join(options.labels),
            found=f"items {', '.join(items[:3])}" + (", …" if len(items) > 3 else ""),
            expected="the ids of items, as in `harness show RUN --sample ITEM`",
        )
    return Report(
        sheets=(people_sheet(compared), confusion_sheet(compared)),
        notes=tuple(notes_on(labels, matched)),
    )


def notes_on(
    labels: HumanLabels, matched: Sequence[tuple[FinishedTask, Matching]]
) -> Iterator[str]:
    """Notes on the number of labels, and on those that fit no decision."""
    blank = labels.blank.total()
    yield f"labels: {len(labels.rows):,}" + (f"; blank: {blank:,}" if blank else "")
    for task, matching in matched:
        number = sum(len(said) for raters in matching.raters.values() for said in raters.values())
        lost = f"; {format_causes(matching.unmatched)}" if matching.unmatched else ""
        yield f"{task.label}, {task.task.name}: matched {number:,}{lost}"
        for (stage, role), raters in matching.raters.items():
            if len(raters) > 1:
                majority = majority_of(raters, least=2)
                without = Counter({"labelled by one rater": majority.few, "tied": majority.tied})
                if causes := format_causes(+without):
                    yield f"{task.label}, {task.task.name}, {stage}, {role}: no majority: {causes}"
    if shared := of_other_subjects(matching for _, matching in matched):
        yield (
            f"labels that fit decisions on different subjects in several runs: {shared:,}; add a "
            "column question that holds the subject"
        )


def of_other_subjects(matchings: Iterable[Matching]) -> int:
    """The number of labels that fit decisions on different subjects in several tasks."""
    subjects: dict[tuple[str, str, int, str], set[str | None]] = defaultdict(set)
    for matching in matchings:
        for raters in matching.raters.values():
            for rater, said in raters.items():
                for what in map(matching.decisions.__getitem__, said):
                    subjects[rater, what.item, what.question, what.option].add(what.subject)
    return sum(len(some) > 1 for some in subjects.values())


def compared_in(task: FinishedTask, matching: Matching) -> Iterator[Compared]:
    """Each rater compared with each judge of a task."""
    for place, by_rater in matching.raters.items():
        raters: dict[str, Mapping[int, Label]] = dict(by_rater)
        if len(raters) > 1:
            raters[MAJORITY] = majority_of(by_rater, least=2).labels
        members = dict.fromkeys(
            name
            for said in by_rater.values()
            for number in said
            for name in matching.decisions[number].votes
        )
        for judge in ("", *members):
            for rater, said in raters.items():
                labelled = [(label, matching.decisions[number]) for number, label in said.items()]
                yield compare(task, place, judge, rater, labelled)


def compare(
    task: FinishedTask,
    place: tuple[str, str],
    judge: str,
    rater: str,
    labelled: Sequence[tuple[Label, Decision]],
) -> Compared:
    """A rater compared with the judge of a role, or with one member of its panel."""
    both: list[tuple[Label, Label, str]] = []
    silent: Counter[str] = Counter()
    for label, decision in labelled:
        said = decision.votes.get(judge) if judge else decision.said
        if said is None:
            silent[decision.why or "no vote"] += 1
        else:
            both.append((label, said, decision.user))
    entries = task.manifest.roles
    role = entries.get(f"{task.task.name}/{place[1]}", entries.get(place[1]))
    return Compared(
        task=task, stage=place[0], role=place[1],
        judge=judge or (role.name if role else place[1]), rater=rater,
        both=tuple(both), silent=silent,
    )  # fmt: skip


def people_sheet(compared: Sequence[Compared]) -> Sheet:
    """A sheet with n, the share of equal labels, and κ with its interval; notes give gaps."""
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for each in compared:
        name = ", ".join(each.row_labels)
        if each.silent:
            notes.append(f"{name}: not judged: {format_causes(each.silent)}")
        seed = stable_int("people", each.task.manifest.seed, *each.row_labels[1:])
        cells, why = kappa_cells(each.both, each.task, seed=seed)
        notes += [f"{name}: {reason}" for reason in why]
        rows.append((*each.row_labels, len(each.both), each.silent.total(), *cells))
    return Sheet(
        title="Judges against people",
        columns=("model", "task", "stage, role", "judge", "rater", "n", "not judged", "alike, %",
                 "Cohen's κ", "interval"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=(0, 0, 0, 0, 0, 0, 0, 1, 2, 0),
    )  # fmt: skip


def confusion_sheet(compared: Sequence[Compared]) -> Sheet:
    """A sheet with the number of decisions for each pair of labels."""
    rows: list[tuple[Cell, ...]] = []
    for each in compared:
        times = Counter(
            (format_label(people), format_label(judge)) for people, judge, _ in each.both
        )
        rows += [(*each.row_labels, *pair, times[pair]) for pair in sorted(times)]
    return Sheet(
        title="Who said what",
        columns=("model", "task", "stage, role", "judge", "rater", "people say", "judge says", "n"),
        rows=tuple(rows),
    )


def format_causes(causes: Mapping[str, int]) -> str:
    """Causes with their numbers, formatted for notes."""
    return ", ".join(f"{cause} {number:,}" for cause, number in sorted(causes.items()))


def format_label(label: Label) -> str:
    """A label, formatted for tables."""
    return label if isinstance(label, str) else "yes" if label else "no"
