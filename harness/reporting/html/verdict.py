"""The answer of a report in a line or two: who leads, what is established, and what is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.contracts.stage import CANDIDATE
from harness.reporting.comparison_tables import p_value
from harness.reporting.html.markup import Html, element
from harness.reporting.html.reported_run import ReportedRun
from harness.reporting.html.result_lines import Line
from harness.reporting.html.run_differences import Differences, Established
from harness.reporting.html.untested import untested_pairs
from harness.reporting.text import number
from harness.scoring.grouping import grouped
from harness.scoring.paired_differences import Difference

FEW_NAMED = 4
"""More tasks than this are counted, and not named."""

UNDECIDED = "No model can be chosen on this alone"


def verdict_html(runs: Sequence[ReportedRun], lines: Sequence[Line], found: Differences) -> Html:
    """The verdict, and what limits it."""
    limits = [element("li", one) for one in _limits(runs, lines, found)]
    answer, why = verdict(runs, lines, found)
    return element(
        "div",
        element("p", element("strong", answer), class_="answer"),
        element("p", why) if why else None,
        element("ul", *limits) if limits else None,
        class_="verdict",
    )


def verdict(
    runs: Sequence[ReportedRun], lines: Sequence[Line], found: Differences
) -> tuple[str, str]:
    """Whether a model can be chosen, and why: who leads on how many tasks, and what of it is sure.

    The second text is empty if there is nothing to compare.
    """
    if len(runs) < 2:
        return f"One run, of {runs[0].label}: there is nothing to compare it with.", ""
    tasks = [
        line
        for line in lines
        if line.first and line.metric and not line.is_group and len(line.order()) > 1
    ]
    if not tasks:
        return "No task is finished by two of these runs: there is nothing to compare.", ""
    leads = Counter(leader for line in tasks if (leader := line.best) is not None)
    most = max(leads.values(), default=0)
    first = [label for label in leads if leads[label] == most]
    unsure = sum(line.is_open for line in tasks)
    if not first:
        leading = "No run is alone in the lead on any task"
        leading += f", {unsure:,} of {len(tasks):,} open" if unsure else ""
    elif len(tasks) == 1:
        leading = f"The value of {first[0]} is best on {tasks[0].name}"
    else:
        named = sorted((run.label for run in runs), key=lambda label: -leads[label])
        led = {label: [line.name for line in tasks if line.best == label] for label in named}
        counts = [f"that of {label} on {leads[label]:,}{_names(led[label])}" for label in named]
        counts[0] = (
            f"By the first metric of each task, the value of {named[0]} is best on {most:,} of "
            f"{len(tasks):,} tasks{_names(led[named[0]])}"
        )
        ties = len(tasks) - leads.total() - unsure
        counts += [f"{ties:,} tied" if ties else "none tied"]
        leading = ", ".join([*counts, *([f"{unsure:,} open"] if unsure else [])])
    answer, sure = _established(runs, first, found)
    return answer, f"{leading}; {sure}."


def _established(
    runs: Sequence[ReportedRun], first: Sequence[str], found: Differences
) -> tuple[str, str]:
    """Whether the comparisons are enough to choose the first, and how many are established."""
    every = [*found.tested()]
    if not every:
        why = f" ({found.problems[0].rstrip('.')})" if found.problems else ""
        return f"{UNDECIDED}.", f"no difference was tested{why}"
    sure = [*found.established()]
    are = "is" if len(sure) == 1 else "are"
    counted = f"{len(sure):,} of {len(every):,} comparisons {are} established after Holm"
    if len(every) == 1:
        known = [_size(every[0][1]), *(each.without for each in sure if each.without)]
        counted = f"the difference {'is' if sure else 'is not'} established ({'; '.join(known)})"
    elif 0 < len(sure) <= 2:
        named = (
            (f"{each.task}, {each.metric}: {each.winner} is better than {each.loser}", each.known)
            for each in sure
        )
        counted += f" ({'; '.join(', '.join(filter(None, one)) for one in named)})"
    elif shaky := sum(not each.holds for each in sure):
        counted += f", {shaky:,} of them not without the units that one of the two runs lost"
    if why := _why_not(runs, first, sure):
        return f"{UNDECIDED}: {why}.", counted
    if len(every) == 1:
        return f"{first[0]} is better than {sure[0].loser}.", counted
    other = "the other run" if len(runs) == 2 else "each other run"
    as_better = f"{first[0]} is established as better than {other} in some metric"
    return f"{as_better}, and as worse in none.", counted


def _why_not(runs: Sequence[ReportedRun], first: Sequence[str], sure: Sequence[Established]) -> str:
    """Why the run that leads on most tasks cannot be chosen; empty if it can."""
    if len(first) != 1:
        return f"{_listed(first)} lead on equally many tasks" if first else "no run leads on a task"
    (best,) = first
    won = [each for each in sure if each.winner == best]
    if worse := next((each for each in sure if each.loser == best), None):
        return f"{best} leads, but {worse.winner} is better on {worse.task} ({worse.metric})"
    beaten = {best, *(each.loser for each in won if each.holds)}
    left = [run.label for run in runs if run.label not in beaten]
    shaky = " without lost units" if {each.loser for each in won} & {*left} else ""
    as_better = f"not established as better than {_listed(left)} in any metric{shaky}"
    return f"{best} leads, but is {as_better}" if left else ""


def _size(each: Difference) -> str:
    if each.value is None or each.interval is None:
        return each.no_interval or "the value of one is undefined"
    ends = sorted(end if each.value > 0 else -end for end in each.interval)
    p = "" if each.p_holm is None else f", p {p_value(each.p_holm)}"
    return f"{number(abs(each.value))} [{number(ends[0])}, {number(ends[1])}]{p}"


def _limits(
    runs: Sequence[ReportedRun], lines: Sequence[Line], found: Differences
) -> Iterator[str]:
    ruled = [
        run.label
        for run in runs
        if any(run.manifest.by_rule(task, CANDIDATE) for task in run.manifest.tasks)
    ]
    if ruled:
        every = len(ruled) == len(runs) > 1
        who = "Every model here" if every else _listed(ruled)
        are = "is a stand-in" if every or len(ruled) == 1 else "are stand-ins"
        yield f"{who} {are} for a language model, about which the values say nothing."
    tasks = [line for line in lines if line.first and not line.is_group and line.order()]
    beaten = grouped((rule.name, line.name) for line in tasks for rule in line.beaten_by)
    for rule_name, names in beaten.items():
        on = _of(names, len(tasks))
        than = "has a better value than every model"
        yield f"The baseline {rule_name}, without a model, {than} on {on}."
    moved = [line.name for line in tasks if line.is_open]
    if moved:
        yield (
            f"On {_of(moved, len(tasks))} no run is counted as best: its lead was not tested, "
            "depends on how lost units count, or is lost on the units that both runs have."
        )
    if apart := untested_pairs(found.untested):
        named = _of([*apart], len(tasks))
        yield f"Not tested: {named}; “What to look at next” says why."


def _of(names: Sequence[str], of: int) -> str:
    return names[0] if len(names) == 1 else f"{len(names):,} of {of:,} tasks{_names(names)}"


def _names(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if 0 < len(names) <= FEW_NAMED else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
