"""What the numbers of a report leave open: what to look at next, the worst first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from harness.comparison.document import is_significant, least_shown
from harness.contracts.stage import CANDIDATE
from harness.reporting.html.markup import Html, element
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.run_differences import reasons_untested
from harness.reporting.tables import failed_members, missing_share, thought_out
from harness.reporting.text import number, reasons, share
from harness.scoring.summary import main_metrics
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.reporting.html.run_differences import Differences

LOOSE = 0.1
"""If a larger share of the replies was not read, a report says so."""

UNDONE, UNLIKE = 2.0, 1.0
"""How much a run that is not done, and results without a comparison or an interval, weigh next to
a share that is missing."""

MOST_TASKS = 3
"""So many of the tasks with the same trouble are named, the worst first."""

MISSING, UNREAD = "units or parts of units were lost", "replies were not read"
NO_INTERVAL, THOUGHT = "there is no interval", "replies spent their limit on thinking"
NO_VOTE = "calls of panel members failed"
PARTS = {MISSING: "failures", NO_INTERVAL: "samples"}
"""The part of the page about each trouble, where it is not how answers were read."""

LINKS = {
    "samples": "see its samples",
    "failures": "see the failures",
    "reading": "see how answers were read",
    "provenance": "see how the runs were made",
    "differences": "see the differences",
}


class Trouble(NamedTuple):
    """Something that went wrong on a task: how much it weighs, and how much it is, in words."""

    weight: float
    kind: str
    task: str
    much: str


class Doubt(NamedTuple):
    """Something to look at: how much it weighs, what it is, and the part of the page about it."""

    weight: float
    what: str
    part: str


def look_next(runs: Sequence[ReportedRun], found: Differences) -> Html:
    """What the numbers leave open, the worst first, with the part of the page that says more."""
    untested = (
        Doubt(UNLIKE, f"Not tested are differences on {', '.join(tasks)}. {why}.", "provenance")
        for why, tasks in reasons_untested(found.untested).items()
    )
    every = (one for run in runs for one in _of_run(run))
    doubts = sorted([*every, *untested, *_undecided(found)], key=lambda one: -one.weight)
    if not doubts:
        doubts = [Doubt(0, "Nothing is missing, unread or unlike: read some samples.", "samples")]
    lines = []
    for one in doubts:
        place = "samples" if one.part == "failures" else one.part
        link = element("a", LINKS[one.part], href=f"#{place}", data_show=one.part)
        lines.append(element("li", f"{one.what} ", link))
    return element("ul", *lines)


def _of_run(run: ReportedRun) -> Iterator[Doubt]:
    if run.manifest.status != "done":
        status = run.manifest.status.replace("_", " ")
        yield Doubt(UNDONE, f"{run.label}: the run is {status}.", "provenance")
    by_kind: dict[str, list[Trouble]] = {}
    for one in sorted(_troubles(run), key=lambda each: -each.weight):
        same = by_kind.setdefault(one.kind, [])
        if one.task not in {each.task for each in same}:
            same.append(one)
    for kind, worst in by_kind.items():
        named = ", ".join(f"{one.much} on {one.task}" for one in worst[:MOST_TASKS])
        rest = len(worst) - MOST_TASKS
        more = f", and on {rest:,} {'other task' if rest == 1 else 'others'}" if rest > 0 else ""
        what = f"{run.label}: {kind}: {named}{more}."
        yield Doubt(worst[0].weight, what, PARTS.get(kind, "reading"))


def _troubles(run: ReportedRun) -> Iterator[Trouble]:
    """What went wrong on each task; a repeat has the name of its task."""
    for summary in run.summaries:
        task, repeat = task_and_repeat(summary.task)
        of_repeat = f" in repeat {repeat}" if repeat > 1 else ""
        for name in main_metrics(summary.main, summary.metrics)[:1]:
            result = summary.metrics[name]
            if (lost := missing_share(result)) > 0:
                much = f"{share(lost, 1)} of the parts of {name}"
                if units := sum(result.missing.values()):
                    many = f"{units:,} of {result.n + units:,} units of {name}"
                    much = f"{many} ({reasons(result.missing)})"
                yield Trouble(lost, MISSING, task, much + of_repeat)
            if result.value is not None and result.interval is None:
                why = f"{name}, for {result.no_interval},"
                yield Trouble(UNLIKE, NO_INTERVAL, task, why)
        for name, (failed, calls) in failed_members([summary]).items():
            yield Trouble(failed / calls, NO_VOTE, task, f"{failed:,} of {calls:,} of {name}")
        if spent := thought_out(summary):
            yield Trouble(UNLIKE, THOUGHT, task, f"{spent:,}")
        for name, stage in summary.stages.items():
            if CANDIDATE not in stage.roles:
                continue
            use = stage.roles[CANDIDATE]
            calls, read = use.calls, sum(use.rungs.values())
            if calls - read > LOOSE * calls:
                again = ", some from another try" if calls - read > stage.items - stage.done else ""
                much = f"{share(calls - read, calls)} of {calls:,} replies of {name}"
                kept = f"{stage.done:,} of {stage.items:,} items have a value{again}"
                # What was asked for again and then read is no loss.
                weight = max((calls - read) / calls / 2, 1 - stage.done / stage.items)
                yield Trouble(weight, UNREAD, task, f"{much} ({kept})")


def _undecided(found: Differences) -> Iterator[Doubt]:
    every = [(task, each) for task, each, _ in found.tested() if each.interval is not None]
    undecided = [(task, each) for task, each in every if not is_significant(each)]
    can_show = [
        f"{each.users:,} people can show {number(least)} in {each.metric} on {task}"
        for task, each in undecided
        if (least := least_shown(each))
    ]
    if undecided:
        said = f"{len(undecided):,} of {len(every):,} comparisons establish no difference"
        what = "; ".join([said, *dict.fromkeys(can_show)][: MOST_TASKS + 1])
        yield Doubt(UNLIKE, f"{what}.", "differences")
