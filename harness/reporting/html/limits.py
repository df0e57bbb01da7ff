"""What limits the results of a report: each in a few words, and in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from harness.contracts.stage import CANDIDATE
from harness.reporting.html.compared_runs import ComparedRuns
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.results import Result
from harness.reporting.tables import members_note
from harness.reporting.text import counted
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

FEW = 2
"""More reasons and tasks than this are counted in a badge, and named in the sentence."""


class Limit(NamedTuple):
    """A limit of the results: the words of its badge, and the sentences that explain it."""

    badge: str
    because: tuple[str, ...]


def limits_of(
    runs: Sequence[ReportedRun], results: Sequence[Result], found: ComparedRuns
) -> Iterator[Limit]:
    """What a reader must know before using the results, the gravest first."""
    states = grouped(
        ((run.status, bool(run.manifest.problem or run.problems)), run) for run in runs
    )
    for (status, _), own in states.items():
        why = [f"{run.label}: {one}" for run in own
               for one in (run.manifest.problem, *run.problems) if one]  # fmt: skip
        if status != "done" or why:
            said = status if status != "done" else "in part not read"
            yield Limit(f"{_some([run.label for run in own])}: {said}", (*why,) or (said,))
    for run in runs:
        if failed := members_note(run.summaries):
            yield Limit(f"{run.label}: calls of its panel failed", (failed,))
    yield from _not_comparable(runs)
    ruled = [
        run.label
        for run in runs
        if any(run.manifest.by_rule(task, CANDIDATE) for task in run.manifest.tasks)
    ]
    if ruled:
        said = "It answers by a rule, so that its values say nothing about a language model."
        yield Limit(f"no language model: {_some(ruled)}", (said,))
    first = [result for result in results if result.first]
    beaten = grouped((rule.short, one.name) for one in first if (rule := one.beaten_by))
    for name, on in beaten.items():
        said = f"On {', '.join(on)} the rule {name} has a better value than every run."
        yield Limit(f"{name} beats every run on {_some(on)}", (said,))
    moved = [
        f"{one.name}: {one.leader() or 'no run'} leads; {one.leader(other=True) or 'no run'} does "
        f"where what is missing {'is left out' if counts else f'counts as {one.counts_as}'}."
        for one in first
        for counts in [any(value.counts for value in one.values.values())]
        if len(one.values) > 1 and one.leader() != one.leader(other=True)
    ]
    if moved:
        yield Limit(f"what is missing decides {counted(len(moved), 'task')}", (*moved,))
    if found.apart:
        said = "not compared: " + _some([*dict.fromkeys(label for label, _ in found.apart)])
        named = ((label, ", ".join(on), why) for (label, why), on in found.apart.items())
        yield Limit(said, tuple(f"{label} on {on}: {why}." for label, on, why in named))
    if found.problems:
        yield Limit("not everything is compared", found.problems)
    doubts = [f"{one.task}: {doubt}" for one in found.document.comparisons for doubt in one.doubts]
    doubts += [
        f"{one.task}: {one.oracle.warning}"
        for one in found.document.comparisons
        if one.oracle and one.oracle.warning
    ]
    if doubts:
        yield Limit("doubts about the comparison", (*doubts,))


def _not_comparable(runs: Sequence[ReportedRun]) -> Iterator[Limit]:
    because: dict[str, dict[str, set[str]]] = {}
    finished = {run.label: {task_and_repeat(one.task)[0] for one in run.summaries} for run in runs}
    for run in runs:
        for summary in run.summaries:
            task = task_and_repeat(summary.task)[0]
            for why in summary.not_comparable_because:
                because.setdefault(why, {}).setdefault(run.label, set()).add(task)
    if because:
        sentences = []
        for why, whose in because.items():
            on = sorted(set().union(*whose.values()))
            every = whose == {label: tasks for label, tasks in finished.items() if tasks}
            of = "" if every else f" ({', '.join(whose)} on {', '.join(on)})"
            sentences.append(f"{why}{of}")
        yield Limit(f"not comparable with the papers: {_some([*because])}", (*sentences,))


def _some(names: Sequence[str]) -> str:
    named = [name if len(name) <= 48 else f"{name[:47]}…" for name in names[:FEW]]
    left = len(names) - len(named)
    return f"{', '.join(named)}{f' and {left:,} more' if left else ''}"
