"""How far the members of a panel agree: with the panel, in pairs, and all together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from harness.errors import UsageError
from harness.hashing import stable_int
from harness.results.decisions import Decision, decisions_of
from harness.results.report import Report, Sheet

if TYPE_CHECKING:
    from harness import KeptTask
    from harness.results.report import Cell


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What a panel decided in one stage of one task, option by option and text by text."""

    task: KeptTask
    stage: str
    role: str
    decisions: tuple[Decision, ...]

    @property
    def named(self) -> tuple[str, str, str]:
        """What rows of its are called: model, task, and stage with role."""
        return self.task.label, self.task.task.name, f"{self.stage}, {self.role}"

    @property
    def members(self) -> tuple[str, ...]:
        """Everybody who voted or should have."""
        return tuple(dict.fromkeys(name for each in self.decisions for name in each.votes))


def run(tasks: Sequence[KeptTask], options: object) -> Report:
    """Each panel as a whole, its members, and its members in pairs."""
    panels = [panel for task in tasks for panel in panels_of(task)]
    if not panels:
        raise UsageError(
            "no task of these runs was judged by a panel",
            found=", ".join(dict.fromkeys(task.task.name for task in tasks)),
            expected="a run with --judge panel:SPEC+SPEC+…",
        )
    return Report(
        sheets=(together(panels), members_sheet(panels), pairs_sheet(panels)),
        notes=("decisions are of single options and texts, of which a question may have many",),
    )


def panels_of(task: KeptTask) -> Iterator[Panel]:
    """The panels of a task, a stage and role each."""
    found: dict[tuple[str, str], list[Decision]] = {}
    for decision in decisions_of(task):
        if decision.votes:
            found.setdefault((decision.stage, decision.role), []).append(decision)
    for (stage, role), decisions in found.items():
        yield Panel(task=task, stage=stage, role=role, decisions=tuple(decisions))


def together(panels: Sequence[Panel]) -> Sheet:
    """Fleiss' κ over what all members decided, and what was tied or undecided."""
    rows: list[tuple[Cell, ...]] = []
    notes = []
    for panel in panels:
        whole = [each for each in panel.decisions if None not in each.votes.values()]
        kappa, why = fleiss(whole)
        if why:
            notes.append(f"{', '.join(panel.named)}: no κ: {why}")
        lost = Counter(each.why for each in panel.decisions if each.said is None)
        if lost:
            causes = ", ".join(f"{cause} {count:,}" for cause, count in sorted(lost.items()))
            notes.append(f"{', '.join(panel.named)}: undecided: {causes}")
        tied = sum(is_tied(each) for each in panel.decisions)
        rows.append((
            *panel.named, len(panel.members), len(panel.decisions), lost.total(), tied,
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
    """Fleiss' κ of decisions that all members made, or why there is none."""
    from harness.stats import Undefined, fleiss_kappa

    labels = list(dict.fromkeys(said for each in decisions for said in each.votes.values()))
    counts = [[list(each.votes.values()).count(label) for label in labels] for each in decisions]
    found = fleiss_kappa(counts)
    return (None, found.reason) if isinstance(found, Undefined) else (found, "")


def is_tied(decision: Decision) -> bool:
    """Whether as many votes as for the first were for another: the panel then takes neither."""
    votes = Counter(said for said in decision.votes.values() if said is not None)
    first = votes.most_common(2)
    return len(first) == 2 and first[0][1] == first[1][1]


def members_sheet(panels: Sequence[Panel]) -> Sheet:
    """Each member: how much it decided, and how often as the panel did."""
    rows: list[tuple[Cell, ...]] = []
    for panel in panels:
        for member in panel.members:
            voted = [each for each in panel.decisions if each.votes.get(member) is not None]
            both = [each for each in voted if each.said is not None]
            same = sum(each.votes[member] == each.said for each in both)
            share = 100 * same / len(both) if both else None
            rows.append((*panel.named, member, len(voted), len(both), share))
    return Sheet(
        title="Members and the panel",
        columns=("model", "task", "stage, role", "member", "voted", "panel decided",
                 "as the panel, %"),
        rows=tuple(rows),
    )  # fmt: skip


def pairs_sheet(panels: Sequence[Panel]) -> Sheet:
    """Cohen's κ of each two members, with its interval over users."""
    from harness.stats import Interval, Undefined, cohen_kappa, kappa_interval

    rows: list[tuple[Cell, ...]] = []
    notes = []
    for panel in panels:
        asked = panel.task.task.interval
        for pair in combinations(panel.members, 2):
            both = [
                (each.votes[pair[0]], each.votes[pair[1]], each.user)
                for each in panel.decisions
                if all(each.votes.get(member) is not None for member in pair)
            ]
            first, second, users = zip(*both, strict=True) if both else ((), (), ())
            named = " and ".join(pair)
            same = sum(one == other for one, other in zip(first, second, strict=True))
            share = 100 * same / len(both) if both else None
            kappa = cohen_kappa(first, second)
            if isinstance(kappa, Undefined):
                notes.append(f"{', '.join(panel.named)}: {named}: no κ: {kappa.reason}")
                rows.append((*panel.named, named, len(both), share, None, None))
                continue
            drawn = kappa_interval(
                first, second, users,
                seed=stable_int("panel", panel.task.manifest.seed, panel.stage, *pair),
                draws=asked.draws, confidence=asked.confidence, method=asked.method,
            )  # fmt: skip
            if not isinstance(drawn, Interval):
                notes.append(f"{', '.join(panel.named)}: {named}: no interval: {drawn.reason}")
            rows.append((*panel.named, named, len(both), share, kappa, told(drawn)))
    return Sheet(
        title="Members in pairs",
        columns=("model", "task", "stage, role", "members", "decisions", "alike, %", "Cohen's κ",
                 "interval"),
        rows=tuple(rows),
        notes=tuple(notes),
        digits=(0, 0, 0, 0, 0, 1, 2, 0),
    )  # fmt: skip


def told(drawn: object) -> str | None:
    """An interval as a cell, None where there is none."""
    from harness.stats import Interval

    return f"{drawn.low:.2f} to {drawn.high:.2f}" if isinstance(drawn, Interval) else None
