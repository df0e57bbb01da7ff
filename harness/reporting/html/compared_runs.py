"""What the comparison of a report's runs decides: by row who is better, and a sentence for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from harness.base.errors import HarnessError, UsageError
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.text import number
from harness.scoring.differences import Difference, is_established, least_shown
from harness.scoring.grouping import grouped
from harness.tasks.repeats import task_and_repeat

if TYPE_CHECKING:
    from harness.scoring.comparison import ComparisonDocument
    from harness.scoring.finished_task import FinishedTask

MOST_COMPARED = 12
"""More runs than this are ranked, not compared: each pair takes its time."""

FEW = 3
ALONE = "no other run has finished it"


class Pair(NamedTuple):
    """A difference of two runs in a metric of a task or group, and whether higher is better."""

    task: str
    difference: Difference
    higher: bool

    @property
    def better(self) -> tuple[str, str]:
        """The two runs, the one with the better value first."""
        each = self.difference
        ahead = ((each.value or 0.0) > 0) == self.higher
        return (each.first, each.second) if ahead else (each.second, each.first)


class Decision(NamedTuple):
    """Who is better in a row, in words, and how sure that is; the runs are labels."""

    kind: Literal["wins", "worse", "undecided"]
    words: str
    how: str
    winner: str = ""
    losers: tuple[str, ...] = ()


class ComparedRuns(NamedTuple):
    """The comparisons of a report, its tasks by run, and why runs are not compared.

    `problems` are about all runs, `apart` are by task, run and reason, `slices` the parts of the
    data by which the runs could be compared, if they are not. `base` is the label of the run that
    the user chose others to be compared with, in place of the best.
    """

    document: ComparisonDocument
    problems: tuple[str, ...] = ()
    apart: tuple[tuple[str, str, str], ...] = ()
    slices: tuple[str, ...] = ()
    base: str = ""

    @property
    def labels(self) -> dict[str, str]:
        """By run its label."""
        return {run.run: run.label for one in self.document.comparisons for run in one.runs}

    def pairs(self) -> Iterator[Pair]:
        """The tested differences; that of the mean over repeats stands for its repeats."""
        for mean in self.document.mean_differences or ():
            yield Pair(mean.name, mean.difference, mean.higher_is_better)
        for one in self.document.comparisons:
            for each in one.differences:
                if each.p is None or each.p_holm is not None:
                    higher = one.runs[0].metrics[each.metric].higher_is_better
                    yield Pair(one.task, each, higher)


def compared_runs(
    runs: Sequence[ReportedRun], by: str | None = None, bases: Collection[str] = ()
) -> ComparedRuns:
    """The comparisons of all runs with one of `bases`, else with the best one by each metric."""
    from harness.scoring.comparison import (
        ComparedTasks,
        ComparisonDocument,
        best_runs,
        check_slice,
        compare,
        main_of,
    )
    from harness.scoring.score_run import chosen_metrics

    if by is not None and len(runs) < 2:
        raise UsageError(
            "one run has nothing to be compared with", where="--by", expected="two runs or more"
        )
    if not 1 < len(runs) <= MOST_COMPARED:
        many = f"{len(runs)} runs are too many to compare each with the best one on a page"
        ranks = (f"{many}: `harness report RUN… --rank` ranks them",) if len(runs) > 1 else ()
        return ComparedRuns(ComparisonDocument(comparisons=()), ranks)
    found = ComparedTasks([], [], [])
    problems, apart = [], []
    best: dict[str, dict[str, str]] = {}
    by_name = grouped((task.task.name, task) for run in runs for task in run.tasks)
    for name, tasks in by_name.items():
        base = task_and_repeat(name)[0]
        if len(tasks) < 2:
            if len(by_name[base]) < 2:
                apart.append((base, tasks[0].label, ALONE))
            continue
        only = main_of(tasks[0], chosen_metrics(tasks[0].task, tasks[0].benchmark))
        # All repeats of a task are compared with the same runs, so that their mean is too.
        against = best.setdefault(base, best_runs(tasks, only, bases))
        try:
            parts_by = None if found.compares_repeat_of(name) else by
            found.compared.append(compare(tasks, only=only, against=against, by=parts_by))
        except HarnessError as error:
            problems.append(f"{name}: {error.problem}")
            continue
        refused = found.compared[-1].comparison.refused
        apart += [(base, one.label, "; ".join(one.because)) for one in refused]
    if by is not None:
        check_slice(by, found.compared)
    known = dict.fromkeys(name for one in found.compared for name in _slices(one.tasks))
    return ComparedRuns(
        found.document(), (*problems,), (*dict.fromkeys(apart),), (*known,) if by is None else (),
        ", ".join(run.label for run in runs if run.manifest.run_id in bases),
    )  # fmt: skip


def _slices(tasks: Sequence[FinishedTask]) -> Collection[str]:
    return tasks[0].summary.slices or ()


def decisions_of(found: ComparedRuns) -> Mapping[tuple[str, str], Decision]:
    """By task or group and metric, who is better."""
    by_row = grouped(((one.task, one.difference.metric), one) for one in found.pairs())
    return {row: _decision(pairs, found.labels) for row, pairs in by_row.items()}


def _decision(pairs: Sequence[Pair], labels: Mapping[str, str]) -> Decision:
    sure = [one for one in pairs if is_established(one.difference)]
    if not sure:
        shown = [least for one in pairs if (least := least_shown(one.difference)) is not None]
        why = next((one.difference.no_interval for one in pairs if one.difference.no_interval), "")
        how = f"can show {short(max(shown))}" if shown else why or "no common people"
        return Decision("undecided", "undecided", how)
    worst = max((one.difference.p_holm or 0.0 for one in sure), default=0.0)
    tested = all(one.difference.p_holm is None for one in sure)
    how = "outside the interval" if tested else f"p {'<.001' if worst < 0.001 else short(worst)}"
    losers = tuple(dict.fromkeys(labels[one.better[1]] for one in sure))
    others = {run for one in pairs for run in one.better}
    winners = Counter(one.better[0] for one in sure)
    winner, beaten = winners.most_common(1)[0]
    if beaten == len(others) - 1:
        return Decision("wins", f"{labels[winner]} wins", how, labels[winner], losers)
    named = ", ".join(losers) if len(losers) < FEW else f"{len(losers)} of {len(others)}"
    return Decision("worse", f"{named} worse", how, losers=losers)


def verdict_of(
    found: ComparedRuns, decisions: Mapping[str, Decision], people: int
) -> tuple[str, str]:
    """The sentence that answers which run is better on these tasks, and what limits it.

    `decisions` are by task, for its first metric, `people` the most of a task.
    """
    if not decisions:
        why = [*found.problems, *dict.fromkeys(why for *_, why in found.apart if why != ALONE)]
        return "No two of these runs can be compared on a task.", "; ".join(why)
    many = len(decisions)
    on_all = f"on all {many} tasks" if many > 1 else f"on {next(iter(decisions))}"
    open_tasks = sum(one.kind == "undecided" for one in decisions.values())
    wins = Counter(one.winner for one in decisions.values() if one.winner)
    worse = Counter(label for one in decisions.values() for label in one.losers)
    most = max(wins.values(), default=0)
    first = [label for label, times in wins.items() if times == most]
    named = [f"{label} is worse on {times}" for label, times in worse.items()]
    if len(first) == 1:
        lost = worse[first[0]] or "none"
        also = f"{most} of {many} tasks and is worse on {lost}"
        answer = f"{first[0]} wins on {also if many > 1 else next(iter(decisions))}"
    elif first:
        answer = f"{' and '.join(first)} each win on {most} of {many} tasks"
    elif named:
        answer = f"No run wins {on_all}; {', '.join(named[:FEW])}"
    else:
        answer = f"Undecided {on_all}: no difference is significant"
    rest = f"; {open_tasks} undecided" if open_tasks and (first or named) else ""
    least = sorted(
        (value, one.difference.metric)
        for one in found.pairs()
        if not is_established(one.difference) and (value := least_shown(one.difference)) is not None
    )
    limits = [f"Differences are paired over {people:,} people and their p adjusted after Holm."]
    if least:
        (low, low_of), (high, high_of) = least[0], least[-1]
        ends = short(low), short(high)
        if low_of != high_of:
            ends = f"{ends[0]} ({low_of})", f"{ends[1]} ({high_of})"
        span = f"from {ends[0]} to {ends[1]}" if ends[0] != ends[1] else f"from {ends[0]} up"
        limits.append(f"Where it is undecided, so many can show differences {span}.")
    return f"{answer}{rest}.", " ".join(limits)


def short(value: float) -> str:
    """A number as a picture has room for it: `.05`, `.21`, `1.32`."""
    text = f"{value:.2f}" if abs(value) >= 0.0995 else f"{value:.3f}".rstrip("0")
    return number(value) if text in ("0.", "-0.") else text.replace("0.", ".", 1)
